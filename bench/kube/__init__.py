"""Measurements of `licorne kube`, beside kube-scheduler and a bare client on the same control plane.

`plane` starts and ends programs, `api` loads the API server and watches it, `played` is an API server that is played, for
clusters that are too large for this machine, `run` measures, `report` keeps and shows. `clients` compares HTTP clients.
"""
