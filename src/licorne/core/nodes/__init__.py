"""Nodes, and the question on which of them an ask has room.

A cluster has thousands of nodes and every decision asks this question, so the nodes are kept in an index that excludes
most of them without looking at them one by one.

node            a node, the node constraints of asks, and the score that orders nodes
index           the nodes in order, in blocks, and the search for the first one with room
block           a block of nodes, and a group of blocks
columns         what is free, in columns that a search compares at once
constraints     labels, affinity and taints, with the meaning that Kubernetes gives them
terms           what a pod is, and the terms by which pods demand each other near, far or spread
counted         which pods a term counts, and by which label of nodes
domains         how many of them run in each topology domain, and which asks that shuts out
attached        how many volumes of a driver are attached to each node
claimed         which nodes have devices for the claims of asks
topology        which terms concern which pods, as these come, run and go
preferences     which of the nodes that take an ask it is better placed on
images          what images of containers nodes have, and what that is worth
needs           which nodes meet which constraints, as bitmaps
reading         strict reading of the JSON texts of constraints and terms
devices         devices of a node, such as GPUs
foreign         what occupies a node and is not scheduled here
check           the proof that an index agrees with its nodes
"""
