"""The help texts of metrics, those of the original to the letter (docs/spec/metrics.md)."""

from __future__ import annotations

from typing import Final

RANGES: Final = ("[0,10%]", *(f"({ten}%,{ten + 10}%]" for ten in range(10, 100, 10)))
QUEUE_CONTAINER_HELP: Final = "Queue container metrics. State of the attempt includes `allocated`, `released`."
_QUEUE_APP: Final = (
    "Queue application metrics. State of the application includes `new`, `accepted`, `rejected`, `running`, `failing`, "
    "`failed`, `resuming`, `completing`, `completed`."
)
OF_HOST: Final = {
    "licorne_shadow_pods": ("outcome",),
    "licorne_writes": ("kind", "result"),
    "licorne_api_requests": ("method", "code"),
    "licorne_news_age_seconds": ("kind",),
    "licorne_lease_held": (),
}
"""The labels of metrics that only some hosts of the scheduler have."""
COUNTERS_OF_HOST: Final = ("licorne_shadow_pods", "licorne_writes", "licorne_api_requests")
HELP: Final = {
    "yunikorn_scheduler_container_allocation_attempt": "Total number of attempts to allocate containers. State of the "
    "attempt includes `allocated`, `rejected`, `error`, `released`",
    "yunikorn_scheduler_application_submission": "Total number of application submissions. State of the attempt "
    "includes `new`, `accepted` and `rejected`.",
    "yunikorn_scheduler_application_total": "Total number of applications. State of the application includes "
    "`running`, `resuming`, `failing`, `completing`, `completed` and `failed`.",
    "yunikorn_scheduler_node": "Total number of nodes. State of the node includes `active` and `failed`.",
    "yunikorn_scheduler_scheduling_latency_milliseconds": "Latency of the main scheduling routine, in seconds.",
    "yunikorn_scheduler_scheduling_cycle_milliseconds": "Time taken for a scheduling cycle, in seconds.",
    "yunikorn_scheduler_node_sorting_latency_milliseconds": "Latency of all nodes sorting, in seconds.",
    "yunikorn_scheduler_trynode_latency_milliseconds": "Latency of node condition checks for container allocations, "
    "such as placement constraints, in seconds.",
    "yunikorn_scheduler_trynode_evaluation_milliseconds": "Time taken to evaluate nodes for a pod, in seconds.",
    "yunikorn_scheduler_trypreemption_latency_milliseconds": "Latency of preemption condition checks for container "
    "allocations, in seconds.",
    "yunikorn_queue_app": _QUEUE_APP,
    "yunikorn_queue_resource": "Queue resource metrics. State of the resource includes `guaranteed`, `max`, "
    "`allocated`, `pending`, `preempting`, `maxRunningApps`.",
    "yunikorn_event_total_created": "Total events created.",
    "yunikorn_event_total_channeled": "Total events channeled.",
    "yunikorn_event_total_not_channeled": "Total events not channeled.",
    "yunikorn_event_total_processed": "Total events processed.",
    "yunikorn_event_total_stored": "Total events stored.",
    "yunikorn_event_total_not_stored": "Total events not stored.",
    "yunikorn_event_total_collected": "Total events collected.",
    "licorne_decisions": "Allocations that the scheduler has made.",
    "licorne_decisions_per_second": "Allocations made per second, over the last second.",
    "licorne_parked_asks": "Pending asks by why they are not tried now, as counted some seconds ago.",
    "licorne_work": "Work that deciding took, by kind.",
    "licorne_wakeups": "Applications that were woken to be tried again.",
    "licorne_preemption_searches": "Searches for victims of preemption.",
    "licorne_reservations": "Reservations of nodes.",
    "licorne_waiting_seconds": "Time from ask to allocation, by queue.",
    "licorne_loop_lag_seconds": "How late a clock in the loop is that should tick every 10 ms.",
    "licorne_loop_lag_seconds_max": "The latest that clock was, since this was asked last.",
    "licorne_decision_gap_seconds": "Time between two slices of decisions, while there is more to decide.",
    "licorne_decision_gap_seconds_max": "The longest of these times, since this was asked last.",
    "licorne_messages": "Messages in and out, by resource manager.",
    "licorne_shadow_pods": "Pods that another scheduler has bound or that have ended, by how licorne had decided.",
    "licorne_writes": "Requests to the API server that bind, evict and so on, by kind and by what became of them.",
    "licorne_api_requests": "All requests to the API server, by method and status; error: without an answer.",
    "licorne_news_age_seconds": "Time since a watch of the API server told something last, if only how far it is.",
    "licorne_lease_held": "1 if this process holds the Lease, and so is the one that schedules.",
    "licorne_recording_state": "1 for the state of the recording: inputs are recorded, none has begun, or it has ended.",
    "licorne_recording_bytes": "Bytes that were recorded, compressed.",
    "licorne_recording_entries": "Entries that were recorded.",
    "licorne_recording_runs": "Runs that were begun.",
    "licorne_recording_gaps": "Runs that have ended because inputs could not be recorded.",
    "licorne_recording_queue_bytes": "What waits to be recorded, in bytes.",
    "licorne_recording_lag_seconds": "For how long something has waited to be recorded.",
    "licorne_clock_offset_seconds": "How far the machine's clock is ahead of the scheduler's, which is set at the start.",
    "licorne_log_lines_dropped": "Lines of the log that were dropped, since too many waited to be written.",
    "licorne_build_info": "Always 1; the labels say what runs.",
}
"""By name, for counters without `_total`."""
