"""Which groups a user is in, for resource managers that do not say.

resolver        asks the sources, and caches their answers
table           groups from a file
system          groups of the operating system
"""
