"""Metrics and history: counters, durations and figures of queues, and their text for Prometheus.

counts          counters of the scheduler's output messages
latencies       how long scheduling takes; `histogram`: in buckets; `lag`: how late the event loop is
queue_figures   figures of queues
history         the numbers of applications and containers, minute by minute
metrics         all of these as text; `metric_texts`: their help
"""
