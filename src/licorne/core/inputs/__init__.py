"""Handling of the messages of resource managers.

Each message is checked completely before anything is changed.

admission       applications are added and removed
intake          asks and allocations are added and changed
releases        asks and allocations end
node_changes    nodes are added, changed and removed
lifecycle       the states of applications: which event fires when
numbering       which resource types have a number of their own
ages            what of the age of asks outlasts a restart of the program
"""
