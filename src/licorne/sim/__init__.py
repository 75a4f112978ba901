"""The simulator: the core under a virtual clock, with a model of a resource manager.

Modules, by responsibility: `lines` defines the lines of a workload file; `workload` reads and checks such files; `openb`
turns the trace of a real cluster into the same lines; `generate`, `contended` and `week` make them from a seed; `inputs`
makes the core's messages of them. `model` is the resource manager, `simulation` connects it to a scheduler, `runner` is the
clock, `measure` the observations, `report` the result; `script` writes the trace that is compared with recordings. The
package `licorne.measure` times the core alone.

Nothing here decides where a pod runs: that is the core's task, and it is the same core as in a live cluster.
"""
