"""Nodes, and the question on which of them an ask has room.

A cluster has thousands of nodes and every decision asks this, so nodes stand in an index that rules out most of them
without a look.

node            a node, the node constraints of asks, and the score that orders nodes
index           nodes in order, in blocks, and the search for the first one with room
block           a block of nodes, and a group of blocks
columns         what is free, in columns that a search compares at once
constraints     labels, affinity and taints, with the meaning that Kubernetes gives them
needs           which nodes meet which constraints, as bits
check           the proof that an index agrees with its nodes
"""
