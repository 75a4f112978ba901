"""The network's side of the scheduler: REST and metrics for people and tools that watch it."""
