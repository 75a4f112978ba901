"""Measure the service under load: `licorne serve` in a process of its own, and its clients in others, on loopback.

server      the service's process: start, end, what its metrics say
wire        a resource manager that sends prepared bytes
work        what resource managers send: the benchmark's workloads as bytes
restload    clients of the REST interface
client      the program of a process of clients, which performs a task
tasks       these tasks, and their outcomes
cases       what is measured, against which targets
run         the measurements
report      their results
"""
