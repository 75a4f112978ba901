"""What a message of a resource manager changes.

Everything is checked before anything is changed.

admission       applications come and go
intake          asks and allocations come and change
releases        asks and allocations end
node_changes    nodes come, change and go
lifecycle       the life of an application: which event fires when
numbering       which resource types have a number
"""
