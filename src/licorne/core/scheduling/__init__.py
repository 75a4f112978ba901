"""What is decided: which ask goes to which node now.

descent         one decision: from the root down to a leaf queue, an application, an ask, a node
reservations    nodes that are kept for asks that wait for them
deadlines       what happens because time has come
outstanding     asks that wait for room on nodes and for nothing else: the hint for autoscaling
"""
