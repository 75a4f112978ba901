"""Amounts of resources.

A resource is a map from type names to integers. The core holds it as a vector, so that adding and comparing are loops
over numbers.

vectors     vectors, and the numbers that resource types have in them
sums        sums that cannot overflow, and from which all that was added can be taken back
minima      the smallest of many amounts: does any of them fit?
faults      which amounts a message may hold
"""
