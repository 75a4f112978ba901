"""A resource manager: it has nodes, runs applications on them, and asks a scheduler which pod goes where.

    licorne serve &
    python examples/resource_manager.py [ADDRESS [SECONDS]] [--token-file FILE] [--tls-ca FILE]

Pods "run" for a second, or as many as are given; a real resource manager would start containers. What it shows: report
nodes and applications, ask, take decisions, release what is done, and keep the state from which everything can be
reported again when the connection breaks or the scheduler is restarted (try it: end `licorne serve` while this runs,
and start it again).
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

import grpc

from licorne import RegistrationError, ResourceManagerCallback
from licorne.grpc.client import SchedulerClient, SchedulerUnreachableError
from licorne.si import v19

RM = "example"
NODES = {"node-1": 4000, "node-2": 4000, "node-3": 2000}  # thousandths of a core
APPLICATIONS = {"report": (8, 1000), "training": (2, 3000)}  # pods, and what each of them needs


class Cluster(ResourceManagerCallback):
    """What there is. Each change is written down here first, and told to the scheduler then."""

    def __init__(self, running_s: float) -> None:
        self.running_s = running_s
        self.lock = threading.Lock()
        self.waiting = {f"{app}-{i}": (app, need) for app, (count, need) in APPLICATIONS.items() for i in range(count)}
        self.running: dict[str, tuple[str, int, str, float]] = {}
        self.done = threading.Event()

    # -- what the scheduler says; each method is called in a thread of the client

    def update_node(self, response: v19.NodeResponse) -> None:
        """Which nodes it took."""
        for node in response.accepted:
            print(f"node {node.node_id} is known")
        for refused in response.rejected:
            print(f"node {refused.node_id} is refused: {refused.reason}")

    def update_application(self, response: v19.ApplicationResponse) -> None:
        """Which applications it took, and in which state they are."""
        for application in response.updated:
            print(f"application {application.application_id} is {application.state}")
        for refused in response.rejected:
            print(f"application {refused.application_id} is refused: {refused.reason}")

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        """Which pod goes where."""
        with self.lock:
            for new in response.new:
                if new.allocation_key in self.waiting:  # else it was told before
                    application, need = self.waiting.pop(new.allocation_key)
                    self.running[new.allocation_key] = application, need, new.node_id, time.monotonic()
                    print(f"pod {new.allocation_key} runs on {new.node_id}")
            for refused in response.rejected_allocations:
                print(f"pod {refused.allocation_key} is refused: {refused.reason}")

    # -- what the scheduler is told

    def report(self, client: SchedulerClient) -> None:
        """Everything: nodes, applications, pods that run with their nodes, pods that wait."""
        nodes = [
            v19.NodeInfo(node_id=name, action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": vcore})
            for name, vcore in NODES.items()
        ]
        owner = v19.UserGroupInformation(user="ann", groups=["science"])
        applications = [
            v19.AddApplicationRequest(application_id=name, ugi=owner, tags={"namespace": "examples"})
            for name in APPLICATIONS
        ]
        with self.lock:
            pods = [pod(key, app, need, node) for key, (app, need, node, _) in self.running.items()]
            pods += [pod(key, app, need) for key, (app, need) in self.waiting.items()]
        client.update_node(v19.NodeRequest(rm_id=RM, nodes=nodes))
        client.update_application(v19.ApplicationRequest(rm_id=RM, new=applications))
        client.update_allocation(v19.AllocationRequest(rm_id=RM, allocations=pods))

    def end_pods(self, client: SchedulerClient) -> None:
        """Release the pods that are done."""
        releases = []
        with self.lock:
            for key, (application, _, _, since) in list(self.running.items()):
                if time.monotonic() - since >= self.running_s:
                    del self.running[key]
                    print(f"pod {key} is done")
                    releases.append(
                        v19.AllocationRelease(
                            application_id=application,
                            allocation_key=key,
                            termination_type=v19.TerminationType.STOPPED_BY_RM,
                        )
                    )
            finished = not self.waiting and not self.running
        if releases:
            ended = v19.AllocationReleasesRequest(allocations_to_release=releases)
            client.update_allocation(v19.AllocationRequest(rm_id=RM, releases=ended))
        if finished:
            self.done.set()


def pod(key: str, application: str, need: int, node: str = "") -> v19.Allocation:
    """A pod: with a node it runs there, without it waits."""
    return v19.Allocation(
        allocation_key=key, application_id=application, resource_per_alloc={"vcore": need}, node_id=node
    )


def connected(address: str, token_file: Path | None, tls_ca: Path | None) -> SchedulerClient:
    """A client that has what the scheduler wants: a token, and the certificate by which to know it."""
    token = token_file.read_text() if token_file else ""
    credentials = grpc.ssl_channel_credentials(tls_ca.read_bytes()) if tls_ca else None
    return SchedulerClient(address, token=token, credentials=credentials)


def main() -> None:
    """Run the applications to their end."""
    parser = argparse.ArgumentParser(description="A resource manager of three nodes and two applications.")
    parser.add_argument("address", nargs="?", default="127.0.0.1:3333")
    parser.add_argument("seconds", nargs="?", type=float, default=1.0, help="for which each pod runs")
    parser.add_argument("--token-file", type=Path, help="as given to licorne serve")
    parser.add_argument("--tls-ca", type=Path, help="certificate by which to know the service, PEM")
    said = parser.parse_args()
    cluster = Cluster(said.seconds)
    with connected(said.address, said.token_file, said.tls_ca) as client:
        client.register_resource_manager(
            v19.RegisterResourceManagerRequest(rm_id=RM, version="1.0"), cluster, resync=cluster.report
        )
        cluster.report(client)
        while not cluster.done.wait(0.1):
            cluster.end_pods(client)
    print(f"all done, reported anew {client.resyncs} times")


if __name__ == "__main__":
    try:
        main()
    except (RegistrationError, SchedulerUnreachableError) as error:
        sys.exit(f"not connected: {error}")
