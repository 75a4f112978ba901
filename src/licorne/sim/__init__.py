"""The simulator: the core under a virtual clock, with a model of a resource manager.

Files of this package, by what decides there: `lines` says what a line of a workload file may hold, `workload`
reads and checks such files, `openb` turns a real cluster's trace into the same lines, `generate` makes them from
a seed; `model` is the resource manager, `runner` the clock, `measure` the observations, `report` the result;
`script` writes the trace that recordings are compared with; `bench` times the core alone.

Nothing here decides where a pod runs: that is the core's, and the same core's as in a live cluster.
"""
