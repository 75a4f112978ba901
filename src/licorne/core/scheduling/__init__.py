"""Scheduling decisions: which ask is placed on which node now.

descent         one decision: from the root queue to a leaf queue, an application, an ask, a node
host_orders     orders of queues, applications and nodes that the host program gives
reservations    nodes that are kept for asks that wait for them
deadlines       what is done when a timer is due, by kind of timer
outstanding     asks that wait for room on nodes and for nothing else: the hint for autoscaling
"""
