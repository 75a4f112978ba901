"""Published tables, made again by the scheduler: `licorne reproduce` (docs/spec/experiments.md).

reproduction    what a function returns that makes a table again: cells, expected and got
rlscheduler     average bounded slowdown of orders of batch jobs (SC '20)
fgd             GPU shares on a real cluster under six orders of nodes (ATC '23)
placements      the runs of fgd: pods that arrive and stay, until a share of the cluster is asked for
node_orders     its orders of nodes, as predicates that allow the best node alone
fragmentation   its measure: how much of what is free the typical pod cannot use
gpu_policies    six published policies for GPUs, for any workload
"""
