"""The Scheduler Interface over gRPC, from both sides.

service/        the service for resource managers, with REST and metrics beside it (`licorne serve`)
client/         a resource manager's side, with the methods of `SchedulerAPI`
demo/           the simulated cluster of `licorne serve --demo`, which talks to the service by the client
"""
