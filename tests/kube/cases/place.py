"""What a case works with: a namespace of its own, short ways to make pods and nodes, and to look at what became of them."""

from __future__ import annotations

import threading
import time
from typing import Any, Final, NamedTuple

from common.waiting import WAIT_S
from kube.cluster import HOME, ControlPlane, Licorne, NotSoError, Object, comes

ALONE_MAX: Final = 4
"""How many cases may have a licorne of their own at the same time."""
SETTLED_S: Final = 1.5
"""A pod that waits must do so for this long, in which licorne decides many times."""
STAYS_S: Final = 1.0
"""What has been written to a node must be there for this long after that."""
QUEUES: Final = """
partitions:
  - name: default
    placementrules:
      - {name: provided, create: false}
      - {name: tag, value: namespace, create: true, parent: {name: tag, value: namespace.parentqueue}}
      - {name: tag, value: namespace, create: true}
    preemption: {enabled: true}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: tenants, parent: true}
          - {name: open}
          - {name: small, resources: {max: {vcore: 1}}}
          - {name: whole, properties: {gang.scheduling: atomic}}
          - name: shares
            parent: true
            queues:
              - {name: lender, properties: {application.sort.policy: fifo}}
              - {name: owner, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4}}}
"""
"""The queue configuration that cases share."""


_alone = threading.BoundedSemaphore(ALONE_MAX)


class Event(NamedTuple):
    """An event about an object."""

    name: str
    type: str
    reason: str
    action: str
    note: str
    times: int
    """How often it has come to be."""


class Place:
    """A namespace on a control plane in which a licorne schedules.

    Parameters:
        plane: the control plane.
        licorne: the licorne that cases share; `alone` replaces it.
        name: the name of the namespace, which is made.
        annotations: of the namespace.
    """

    def __init__(
        self, plane: ControlPlane, licorne: Licorne, name: str, annotations: dict[str, str] | None = None
    ) -> None:
        self.plane = plane
        self.licorne = licorne
        self.scheduler = "yunikorn"
        self.name = name
        self.path = f"/api/v1/namespaces/{name}"
        self._own: list[Licorne] = []
        plane.create("/api/v1/namespaces", {"metadata": {"name": name, "annotations": annotations or {}}})
        comes(lambda: plane.find(f"{self.path}/serviceaccounts/default"))

    def close(self) -> None:
        """End the licorne of this case, and delete its pods, which otherwise take room from others."""
        for one in self._own:
            one.close()
            _alone.release()
        self.plane.delete(f"{self.path}/pods", gracePeriodSeconds=0)

    # -- a licorne of its own -----------------------------------------------------------------------------------

    def alone(self, data: dict[str, str] | None = None, *options: str, start: bool = True) -> Licorne:
        """Have the pods of this case scheduled by a licorne of its own, whose ConfigMaps are in its namespace."""
        _alone.acquire()
        self.scheduler = self.name
        names = ("--scheduler-name", self.scheduler)
        self.licorne = Licorne(self.plane, self.name, *names, *options, namespace=self.name)
        self._own.append(self.licorne)
        self._allow_configuration()
        if data is not None:
            self.configure(**{"queues.yaml": QUEUES, **data})
        if start:
            self.licorne.started()
        return self.licorne

    def licorne_prints(self, *options: str) -> str:
        """Return what `licorne kube` prints with these options, with the rights of the manifests."""
        licorne = Licorne(self.plane, f"{self.name}-printed", namespace=self.name)
        self._allow_configuration()
        licorne.start(list(options))
        assert licorne.process is not None
        assert licorne.process.wait(WAIT_S) == 0, licorne.log()
        licorne.close()
        return licorne.log()

    def configure(self, name: str = "yunikorn-configs", /, **data: str) -> None:
        """Set the content of a ConfigMap of the own licorne."""
        self.plane.configure(data, namespace=self.name, name=name)

    def _allow_configuration(self) -> None:
        """Give licorne's account the rights in this namespace that the manifests give it in its own."""
        path = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{}"
        for kind, name in (("roles", "licorne-configuration"), ("rolebindings", "licorne-configuration")):
            found = self.plane.get(f"{path.format(HOME, kind)}/{name}")
            found["metadata"] = {"name": name, "namespace": self.name}
            self.plane.create(path.format(self.name, kind), found)

    # -- pods ---------------------------------------------------------------------------------------------------

    def pod(
        self,
        name: str = "p",
        *,
        cpu: str = "100m",
        app: str = "",
        queue: str = "",
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        owners: list[Object] | None = None,
        finalizers: list[str] | None = None,
        **spec: Any,
    ) -> None:
        """Create a pod. `app` and `queue` become labels, as plain pods have them."""
        keys = {"applicationId": app} if app else {}
        keys |= {"queue": queue} if queue else {}
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        meta = {"name": name, "labels": {**keys, **(labels or {})}, "annotations": annotations or {}}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**meta, "ownerReferences": owners or [], "finalizers": finalizers or []},
            "spec": {
                "schedulerName": self.scheduler,
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
                **spec,
            },
        }
        self.plane.create(f"{self.path}/pods", body)

    def resizable(self, name: str = "p", **requests: str) -> None:
        """Say in the status of a pod that runs what its container has, as kubelets do which can resize it."""
        comes(lambda: (self.find(name) or {})["status"].get("containerStatuses"), told=self.told)
        has = {"name": "c", "allocatedResources": requests, "resources": {"requests": requests}}
        self.change(name, {"status": {"containerStatuses": [has]}}, "status", "strategic-merge-patch")

    def resize(self, name: str = "p", **requests: str) -> None:
        """Ask for other resources of a pod that runs."""
        body = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
        self.change(name, body, "resize", "strategic-merge-patch")

    def find(self, name: str = "p") -> Object | None:
        """Return a pod as it is now, or None if it is gone."""
        return self.plane.find(f"{self.path}/pods/{name}")

    def pods(self) -> dict[str, str]:
        """Return the node of each pod of the namespace, "" for one that waits."""
        items = self.plane.get(f"{self.path}/pods")["items"]
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}

    def uid(self, name: str = "p") -> str:
        """Return the UID of a pod, by which the scheduler knows it."""
        found = self.find(name)
        assert found is not None, name
        uid: str = found["metadata"]["uid"]
        return uid

    def node_of(self, name: str = "p") -> str:
        """Return the node of a pod, "" if it waits or is gone."""
        found = self.find(name)
        return "" if found is None else found["spec"].get("nodeName", "")

    def delete(self, name: str = "p") -> None:
        """Delete a pod."""
        self.plane.delete(f"{self.path}/pods/{name}", gracePeriodSeconds=0)

    def change(self, name: str, body: object, part: str = "", kind: str = "merge-patch") -> None:
        """Change fields of a pod, or of a part of it (`status`, `resize`)."""
        self.plane.patch(f"{self.path}/pods/{name}" + (f"/{part}" if part else ""), body, kind)

    # -- nodes --------------------------------------------------------------------------------------------------

    @property
    def there(self) -> dict[str, Any]:
        """What sends a pod to the nodes of this case alone; other pods are kept off them."""
        return {
            "nodeSelector": {"case": self.name},
            "tolerations": [{"key": "case", "operator": "Equal", "value": self.name}],
        }

    def node(self, name: str = "n", **more: Any) -> str:
        """Add a node for the pods of this case alone: 8 CPUs unless `amounts` says otherwise. Returns its name."""
        full = f"{self.name}-{name}"
        labels = {"case": self.name, **more.pop("labels", {})}
        taints = [{"key": "case", "value": self.name, "effect": "NoSchedule"}, *more.pop("taints", ())]
        self.plane.add_node(full, labels, taints=taints, **more)
        comes(lambda: self.licorne.node(full) and self._is_ready(full), told=self.licorne.log)
        return full

    def _is_ready(self, node: str) -> bool:
        """Return whether kwok has written the status of a node; until then it may overwrite what a case writes."""
        conditions = self.plane.get(f"/api/v1/nodes/{node}")["status"].get("conditions", ())
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def change_node(self, name: str, body: object, part: str = "") -> None:
        """Change fields of a node, or of its `status`."""
        self.plane.patch(f"/api/v1/nodes/{name}" + (f"/{part}" if part else ""), body)

    def set_cpus(self, node: str, cpus: int) -> None:
        """Set the allocatable CPUs of a node, and wait until licorne counts with them.

        kwok at times plays a new node twice: its second write, late, puts back what it has read before. So the amount
        is written until it stays.
        """

        def stayed() -> bool:
            self.change_node(node, {"status": {"allocatable": {"cpu": str(cpus)}}}, "status")
            time.sleep(STAYS_S)
            found = self.plane.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"]
            return bool(found == str(cpus))

        comes(stayed, told=self.told)
        comes(lambda: (self.licorne.node(node) or {})["capacity"]["vcore"] == 1000 * cpus, told=self.told)

    # -- what became of them ------------------------------------------------------------------------------------

    def told(self) -> str:
        """Return what helps to see why something did not come to be."""
        return f"pods: {self.pods()}\nevents: {self.events()}\nlog: {self.licorne.log()[-3000:]}"

    def bound(self, *names: str) -> list[str]:
        """Wait until pods have nodes, and return these."""
        comes(lambda: all(self.node_of(name) for name in names), told=self.told)
        return [self.node_of(name) for name in names]

    def waits(self, *names: str) -> None:
        """Check that pods have no node, and get none."""
        until = time.monotonic() + SETTLED_S
        while time.monotonic() < until:
            for name in names:
                found = self.find(name)
                if found is None or found["spec"].get("nodeName"):
                    raise NotSoError(f"pod {name} does not wait; {self.told()}")
            time.sleep(0.2)

    def gone(self, *names: str) -> None:
        """Wait until pods are gone."""
        comes(lambda: not any(self.find(name) for name in names), told=self.told)

    def events(self, reason: str = "", name: str = "") -> list[Event]:
        """Return the events in the namespace, those of a reason, those about an object."""
        items = self.plane.get(f"/apis/events.k8s.io/v1/namespaces/{self.name}/events")["items"]
        found = [
            Event(
                item["regarding"].get("name", ""),
                item.get("type", ""),
                item.get("reason", ""),
                item.get("action", ""),
                item.get("note", ""),
                item.get("series", {}).get("count", 1),
            )
            for item in items
        ]
        return [event for event in found if reason in ("", event.reason) and name in ("", event.name)]

    def event(self, reason: str, *words: str, name: str = "") -> Event:
        """Wait for an event whose note has all these words, and return it."""

        def found() -> Event | None:
            events = self.events(reason, name)
            return next((event for event in events if all(word in event.note for word in words)), None)

        made = comes(found, told=self.told)
        assert made is not None
        return made

    def condition(self, kind: str, name: str = "p") -> Object | None:
        """Return a condition of a pod, or None."""
        found = self.find(name) or {"status": {}}
        conditions = found["status"].get("conditions", ())
        return next((one for one in conditions if one["type"] == kind), None)

    def application(self, app: str) -> Object:
        """Wait until REST shows an application, and return it."""
        found = comes(lambda: self.licorne.application(app), told=self.told)
        assert found is not None
        return found

    def item(self, app: str, name: str = "p") -> Object:
        """Wait until REST shows the ask or the allocation of a pod, and return it."""
        uid = self.uid(name)

        def found() -> Object | None:
            application = self.licorne.application(app) or {}
            items = [*application.get("requests", ()), *application.get("allocations", ())]
            return next((item for item in items if item["allocationKey"] == uid), None)

        made = comes(found, told=self.told)
        assert made is not None
        return made
