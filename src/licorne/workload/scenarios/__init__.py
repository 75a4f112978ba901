"""Scenarios: clusters, queues, arrivals and events that a YAML file describes, and the workloads that are made of them.

Modules, from the top down: `scenario` is the public class; `outline` says what a scenario comes to; `stream` makes the lines of a
workload, `timeline` those of nodes and events, `rates` the times of arrivals; `plan` understands a document as a whole,
`configurations` reads its queue configurations, `terms` says what pods demand of each other, `unused` warns of what nothing
matches, `values` says what its texts mean; `document` defines what may stand in it, `draws` are the random numbers.
docs/use/scenarios.md describes the format.
"""
