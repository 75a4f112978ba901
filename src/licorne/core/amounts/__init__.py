"""Amounts of resources.

A resource is a map from type names to integers. The core holds it as a vector, so that adding and comparing are loops
over numbers.

vectors     vectors, and sums that cannot overflow and from which all that was added can be taken back
types       the resource types of a partition, and the numbers that they have in vectors
minima      the smallest of many amounts: does any of them fit?
faults      which amounts a message may hold
"""
