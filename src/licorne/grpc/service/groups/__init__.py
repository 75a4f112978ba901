"""Finding the groups of users, for resource managers that do not name them.

resolver        asks the sources, and caches their answers
system          groups of the operating system
"""
