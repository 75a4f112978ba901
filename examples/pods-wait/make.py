"""Writes dump.json: the state of a cluster of six nodes on which the pods of three teams wait, each for another reason."""

from __future__ import annotations

import json
from pathlib import Path

from licorne import SchedulerAPI
from licorne.host.web.backend import Backend
from licorne.host.web.monitor import Monitor
from licorne.host.web.rest.config import running
from licorne.host.web.rest.pieces import state_pieces
from licorne.si import v19
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate

HERE = Path(__file__).resolve().parent
RM_ID = "mycluster"
GI = 2**30
MORNING_NS = 1_795_593_600 * 10**9  # 2026-11-25 08:00 UTC
MINUTE_NS = 60 * 10**9
GPU = "nvidia.com/gpu"
TAINT = json.dumps([{"key": "gpu", "value": "reserved", "effect": "NoSchedule"}])
TEAMS = {"search": "sue", "ads": "adam", "research": "rita"}


class Story:
    """A scheduler at a time of its own, and short ways to submit to it."""

    def __init__(self) -> None:
        self.now_ns = MORNING_NS
        self.api = SchedulerAPI(clock=lambda: self.now_ns, on_output=lambda *_: None)
        config = (HERE / "queues.yaml").read_text(encoding="utf-8")
        settings = {"reservation.enabled": "false"}
        self.api.register_resource_manager(
            v19.RegisterResourceManagerRequest(rm_id=RM_ID, config=config, extra_config=settings)
        )

    def node(self, name: str, gpus: int = 0) -> None:
        """Add a node with 16 cores; one with GPUs is kept for those who tolerate its taint."""
        attributes = {"si/hostname": name, **({"taints": TAINT} if gpus else {})}
        capacity = {"vcore": 16_000, "memory": 64 * GI, "pods": 110, **({GPU: gpus} if gpus else {})}
        node = NodeUpdate(node_id=name, action=NodeAction.CREATE, attributes=attributes, capacity=capacity)
        self.api.submit(RM_ID, [node])

    def pods(self, app: str, team: str, number: int, cores: int, gpus: int = 0) -> None:
        """Submit an application with pods, and decide; a minute passes."""
        self.api.submit(RM_ID, [AddApplication(application_id=app, queue=f"root.{team}", user=TEAMS[team])])
        resource = {"vcore": cores * 1000, "memory": cores * 2 * GI, "pods": 1, **({GPU: gpus} if gpus else {})}
        for index in range(number):
            tags = {"kubernetes.io/meta/podName": f"{app}-{index}", "kubernetes.io/meta/namespace": team}
            ask = Allocation(
                key=f"{app}-{index}",
                application_id=app,
                resource=resource,
                tags=tags,
                allow_preempt_self=True,
                allow_preempt_other=True,
            )
            self.api.submit(RM_ID, [ask])
        self.api.schedule()
        self.now_ns += MINUTE_NS

    def dump(self) -> bytes:
        """Return the state dump, as `GET /debug/fullstatedump` answers it."""
        backend = Backend(self.api, lambda: self.now_ns, build_info=lambda _: {})
        config, _ = running(backend.managers()[0], self.api.extra_config(RM_ID))
        return b"".join(state_pieces(Monitor(backend, "pods-wait"), config, [], []))


def story() -> bytes:
    """Return the dump of the cluster."""
    told = Story()
    for number in range(4):
        told.node(f"cpu-{number}")
    for number in range(2):
        told.node(f"gpu-{number}", gpus=4)
    told.pods("crawler", "search", 5, cores=4)
    told.pods("clicks", "ads", 10, cores=4)
    told.pods("index", "search", 2, cores=4)
    told.pods("training", "research", 1, cores=2, gpus=2)
    told.pods("report", "ads", 1, cores=6)
    told.now_ns += 20 * MINUTE_NS
    told.api.schedule()
    return told.dump()


if __name__ == "__main__":
    (HERE / "dump.json").write_bytes(story())
