"""The requests of a resource manager: a benchmark workload of any size as bytes of the 1.9 interface, made in advance."""

from __future__ import annotations

from bench.measure.boundary import allocation_requests, application_request, ask_messages, node_request
from bench.worker import prepared
from bench.workloads.generate import Options, Size
from licorne.si import v19
from licorne.si.constants import DOMAIN_K8S, GROUP_META, KEY_NAMESPACE, KEY_POD_NAME
from licorne.si.wire import encode

NAME, NAMESPACE = DOMAIN_K8S + GROUP_META + KEY_POD_NAME, DOMAIN_K8S + GROUP_META + KEY_NAMESPACE


class Work:
    """The requests of one resource manager. `releases` end all pods that `asks` ask for.

    `tagged`: each pod has two tags, its name and its namespace, as on Kubernetes.
    """

    def __init__(self, size: Size, rm_id: str, *, tagged: bool = False) -> None:
        workload = prepared("b", Options(shape="unique"), size)
        nodes, applications = node_request(workload), application_request(workload)
        self.requests = allocation_requests(ask_messages(workload.lines))
        nodes.rm_id = applications.rm_id = rm_id
        for request in self.requests:
            request.rm_id = rm_id
            if tagged:
                for ask in request.allocations:
                    ask.allocation_tags = {NAME: ask.allocation_key, NAMESPACE: ask.application_id}
        self.rm_id = rm_id
        self.registration = v19.RegisterResourceManagerRequest(rm_id=rm_id, config=workload.config or "")
        self.node_request, self.application_request = nodes, applications
        self.nodes = encode(nodes)
        self.applications = encode(applications)
        self.asks = [encode(request) for request in self.requests]
        self.pods = sum(len(request.allocations) for request in self.requests)
        self.releases = [encode(releases(request)) for request in self.requests]


def releases(request: v19.AllocationRequest) -> v19.AllocationRequest:
    """Return the request that ends all pods of a request."""
    return v19.AllocationRequest(
        rm_id=request.rm_id,
        releases=v19.AllocationReleasesRequest(allocations_to_release=[release(ask) for ask in request.allocations]),
    )


def release(ask: v19.Allocation) -> v19.AllocationRelease:
    """Return the release that ends the pod of an ask."""
    return v19.AllocationRelease(
        partition_name="default",
        application_id=ask.application_id,
        allocation_key=ask.allocation_key,
        termination_type=v19.TerminationType.STOPPED_BY_RM,
    )
