"""Measures the service under load: `licorne serve` in a process of its own, and its clients in others, on loopback.

server      the service's process: start, end, what its metrics say
wire        a resource manager that sends prepared bytes
work        what resource managers send: the benchmark's workloads as bytes
restload    clients of the REST interface
client      what a process of clients does, by a task it is given
tasks       these tasks, and what comes of them
run         the measurements
report      their results
"""
