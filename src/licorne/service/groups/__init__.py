"""Which groups a user is in, for resource managers that do not say.

resolver        asks the sources, and keeps their answers for a while
table           groups from a file
system          groups of the operating system
"""
