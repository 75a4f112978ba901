"""Metrics and history: counters, durations and figures of queues, and their text for Prometheus.

counts          counters of what the scheduler says
latencies       how long things take; `histogram`: in buckets; `lag`: how long the loop keeps its own waiting
queue_figures   figures of queues
history         how many applications and containers there were
metrics         all of these as text; `metric_texts`: their help
"""
