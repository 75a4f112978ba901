"""REST, metrics, events and health of a scheduler that runs in this process.

The gRPC service (`licorne.service`) mounts it, and so can anything else that runs a `SchedulerAPI` on an asyncio loop:

    backend = Backend(api, clock)
    monitor = Monitor(backend)     # before the first resource manager registers
    app = make_app(monitor)        # an ASGI application

backend         what is needed of a scheduler
monitor         counts what the scheduler says, keeps its events and history, and looks after its health
health          the health checks
event_ring      the last events
usage           what an application has used, told in the log when it ends
figures/        metrics and history
rest/           the REST interface as an ASGI application
server          HTTP in the loop of the scheduler; `http`: how answers are written; `courtesy`: whether somebody waits
"""
