"""Placement: the choice of the queue for an application.

Placement reads only a configuration and an application, so that it can be tried without a scheduler (`licorne
place`).

placer          the rules of a partition in their order
rules           what each kind of rule answers
filters         which users and groups a rule applies to
static_tree     the queues of a configuration, without a scheduler
"""
