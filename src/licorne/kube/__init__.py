"""licorne as the scheduler of a Kubernetes cluster.

- `objects`: the objects of the API server, with the fields that are used here alone. `backoff`: the wait before what has failed
  is tried again.
- `api`: the client of the API server; `reflector`: a copy of a collection of objects that follows its changes.
- `pods`: what a pod, a node or a namespace means to the scheduler.
- `manager`: what follows from each change and each decision, as commands; it does nothing itself.
- `runner`: connects all of these. `reading`: what is watched, and where it goes; `health`: metrics and health checks of a process.
- `configuring`: what follows from each change of a ConfigMap; `configmaps`: both as one configuration; `settings`: what
  it sets. `importing`: a workload from objects that kubectl prints.
- `lease`: which of several processes writes. `pauses`: notices that the process was paused, so that nothing is sent
  before the cluster has been read again, or without the lease.
- `failing`: leaves workers to other namespaces while the requests of one fail. `results`: what becomes of writes.
- `binder`: carries the bindings out; `shadow`: compares them with those of another scheduler instead.
- `writer`: carries the other commands out; `unseen`: placeholders that it created and nobody has seen.

What decides is free of input and output, and what reads and writes decides nothing. The scheduler is used in process.

What talks to the API server needs the extra `kube` (`api`, `runner`), what only reads its objects does not.
"""
