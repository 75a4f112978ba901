"""A scheduler as it was: restored from a state dump or a recording, and copied.

source          where a dump comes from: a file, or a running scheduler
dump            reads the state dump of YuniKorn or licorne, and says what in it is unknown
configuration   the running configuration, from the form in which REST and dumps have it, to a text
restored        a scheduler to start from, and what its user must know of it
restore         a scheduler in the state of a dump, and what had to be assumed for it
exact           the same of a dump that has a checkpoint, with nothing assumed
copies          runs something on a copy of this process
recording/      all inputs of a scheduler in files, and a scheduler that is given them once more
"""
