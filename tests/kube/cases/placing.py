"""docs/spec/k8shim.md, sections 4, 5, 7, 8, 9: where pods may run, bindings, ends, pods of others, nodes; preemption."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kube.cluster import Object, comes
from licorne.kube.objects import Pod
from licorne.kube.pods.extended import Extended, claim_key

from . import Case, Cases, Place

CASES = Cases()
HOSTNAME: Final = "kubernetes.io/hostname"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
GPU: Final = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def affinity(*terms: Object) -> Object:
    """Return a required node affinity."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def expressions(key: str, operator: str, *values: str) -> Object:
    """Return a term of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def pods_like(app: str, topology: str = HOSTNAME) -> list[Object]:
    """Return a required affinity to pods of an application."""
    return [{"labelSelector": {"matchLabels": {"applicationId": app}}, "topologyKey": topology}]


# -- section 4: the same node for all, labelled `disk: ssd` and `size: 7` and tainted `gpu=yes:NoSchedule` ------------

# What a pod says; its spec; whether the node takes it.
PREDICATES: Final[list[tuple[str, dict[str, Any], bool]]] = [
    ("nothing about the taint", {}, False),
    ("that it tolerates the taint", {"tolerations": [{"key": "gpu", "operator": "Exists"}]}, True),
    ("that it tolerates another value", {"tolerations": [{"key": "gpu", "value": "no"}]}, False),
    (
        "that it tolerates the taint for another effect",
        {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]},
        False,
    ),
    ("that it tolerates everything", {"tolerations": [{"operator": "Exists"}]}, True),
    ("a selector that fits", {"nodeSelector": {"disk": "ssd"}}, True),
    ("a selector that does not fit", {"nodeSelector": {"disk": "hdd"}}, False),
    ("In that fits", {"affinity": affinity(expressions("disk", "In", "hdd", "ssd"))}, True),
    ("NotIn that does not fit", {"affinity": affinity(expressions("disk", "NotIn", "ssd"))}, False),
    ("In that does not fit", {"affinity": affinity(expressions("disk", "In", "hdd"))}, False),
    ("NotIn of a label that is not there", {"affinity": affinity(expressions("tape", "NotIn", "x"))}, True),
    ("DoesNotExist that fits", {"affinity": affinity(expressions("tape", "DoesNotExist"))}, True),
    ("Exists that does not fit", {"affinity": affinity(expressions("tape", "Exists"))}, False),
    ("Gt that fits", {"affinity": affinity(expressions("size", "Gt", "6"))}, True),
    ("Lt that does not fit", {"affinity": affinity(expressions("size", "Lt", "7"))}, False),
    (
        "two terms of which one fits",
        {"affinity": affinity(expressions("tape", "Exists"), expressions("disk", "Exists"))},
        True,
    ),
]


def _predicate_case(says: str, spec: dict[str, Any], fits: bool) -> Case:
    def run(k: Place) -> None:
        k.node(labels={"disk": "ssd", "size": "7"}, taints=[GPU])
        given = {"nodeSelector": {}, "tolerations": [] if "taint" in says else [GPU | {"operator": "Equal"}]} | spec
        selector = given["nodeSelector"] | k.there["nodeSelector"]
        tolerations = given["tolerations"] + k.there["tolerations"]
        k.pod(app=k.name, **{**given, "nodeSelector": selector, "tolerations": tolerations})
        if fits:
            k.bound("p")
        else:
            k.waits("p")

    then = "the node takes it" if fits else "it waits"
    return Case("4", f"a tainted node, and a pod that says {says}", "it is created", then, run)


CASES += [_predicate_case(*row) for row in PREDICATES]


@CASES("4", "two nodes, and a pod that must be on a node of a name", "it is created", "it runs there")
def _(k: Place) -> None:
    k.node("one")
    two = k.node("two")
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [two]}]}
    k.pod(app=k.name, affinity=affinity(fields), **k.there)
    assert k.bound("p") == [two]


@CASES(
    "4", "a node, and two pods with the same host port", "they are created", "one runs; the other, when that is gone"
)
def _(k: Place) -> None:
    k.node()
    port = {"containerPort": 80, "hostPort": 8080}
    container = {"name": "c", "image": "none", "ports": [port]}
    k.pod("first", app=k.name, containers=[container], **k.there)
    k.bound("first")
    k.pod("second", app=k.name, containers=[container], **k.there)
    k.waits("second")
    k.pod("udp", app=k.name, containers=[{**container, "ports": [{**port, "protocol": "UDP"}]}], **k.there)
    k.bound("udp")
    k.delete("first")
    k.bound("second")


@CASES("4", "a node with room for two pods", "three are created", "one waits until another is gone")
def _(k: Place) -> None:
    k.node(amounts={"pods": "2"})
    for name in ("first", "second", "third"):
        k.pod(name, app=k.name, **k.there)
    comes(lambda: sum(map(bool, k.pods().values())) == 2, told=k.told)
    (waiting,) = (name for name, node in k.pods().items() if not node)
    k.waits(waiting)
    k.delete(next(name for name, node in k.pods().items() if node))
    k.bound(waiting)


@CASES(
    "4", "a running pod that demands to be apart from an application", "a pod of it is created", "it waits until then"
)
def _(k: Place) -> None:
    k.node()
    apart = {"podAntiAffinity": {REQUIRED: pods_like(k.name)}}
    k.pod("alone", app=f"{k.name}-alone", schedulerName="default-scheduler", nodeName=f"{k.name}-n", affinity=apart)
    comes(lambda: (k.licorne.node(f"{k.name}-n") or {}).get("occupied", {}).get("vcore"), told=k.told)
    k.pod(app=k.name, **k.there)
    k.pod("other", app=f"{k.name}-other", **k.there)
    k.bound("other")
    k.waits("p")
    k.delete("alone")
    k.bound("p")


# What a pod asks for that is not there, or not decided yet; its spec.
LATER: Final[list[tuple[str, dict[str, Any]]]] = [
    ("a claim of volumes that is not there", {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]}),
    ("a claim of devices", {"resourceClaims": [{"name": "r", "resourceClaimName": "r"}]}),
    ("a pod group that is not there", {"schedulingGroup": {"podGroupName": "g"}}),
]


def _later_case(what: str, spec: dict[str, Any]) -> Case:
    def run(k: Place) -> None:
        k.pod(app=k.name, **spec)
        k.pod("other", app=k.name)
        k.bound("other")
        k.waits("p")

    return Case("4", f"a pod that asks for {what}", "it is created", "it waits, and others go on", run)


CASES += [_later_case(*row) for row in LATER]


@CASES(
    "16", "a native pod group of two", "its pods are created", "none runs before the second is there, and it is told so"
)
def _(k: Place) -> None:
    k.node()
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{k.name}/podgroups"

    def initially_scheduled() -> tuple[str, str]:
        conditions = k.plane.get(f"{path}/g").get("status", {}).get("conditions", ())
        return next(
            ((c["status"], c["reason"]) for c in conditions if c["type"].endswith("InitiallyScheduled")), ("", "")
        )

    member = {"schedulingGroup": {"podGroupName": "g"}, **k.there}
    k.pod("first", **member)
    k.waits("first")
    k.plane.create(path, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    comes(lambda: initially_scheduled() == ("False", "Unschedulable"), told=k.told)
    assert not k.pods()["first"]
    k.pod("second", **member)
    k.bound("first", "second")
    comes(lambda: initially_scheduled() == ("True", "Scheduled"), told=k.told)
    k.pod("third", **member)
    k.bound("third")


def _claim(k: Place, name: str, provisioner: str) -> str:
    """Make a storage class that waits for the first consumer, and a claim of it; return the name of the class."""
    made = f"{k.name}-{name}"
    mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    k.plane.create("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": made}, **mode})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": made}
    k.plane.create(f"{k.path}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec})
    return made


def _volume(k: Place, storage_class: str, **more: Any) -> None:
    """Make a volume of a class that nodes of this case can use."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Retain",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [expressions("case", "In", k.name)]}},
        "local": {"path": "/mnt"},
        **more,
    }
    k.plane.create("/api/v1/persistentvolumes", {"metadata": {"name": storage_class}, "spec": spec})


@CASES(
    "5", "a volume that exists, and a class whose volumes are made", "a pod has a claim of either", "both, then it runs"
)
def _(k: Place) -> None:
    """A provisioner, which is played, makes a volume for the claim that has the node."""
    node = k.node()
    _volume(k, _claim(k, "kept", "kubernetes.io/no-provisioner"))
    made = _claim(k, "new", "example.com/played")
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("kept", "new")]
    k.pod(app=k.name, volumes=volumes, **k.there)
    path = f"{k.path}/persistentvolumeclaims/new"
    selected = "volume.kubernetes.io/selected-node"
    comes(lambda: k.plane.get(path)["metadata"].get("annotations", {}).get(selected) == node, told=k.told)
    assert not k.node_of()
    ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": k.name, "name": "new"}
    _volume(k, made, claimRef={**ref, "uid": k.plane.get(path)["metadata"]["uid"]})
    k.bound("p")
    assert k.node_of() == node


DEVICES: Final = "/apis/resource.k8s.io/v1"


@CASES(
    "5",
    "a node with two devices, and a template",
    "three pods have a claim each",
    "two run, and the third when one ends",
)
def _(k: Place) -> None:
    """The driver is played: it publishes a slice. Kubernetes' own controller makes and cleans up the claims."""
    node = k.node()
    expression = f'device.driver == "{k.name}.example.com" && device.capacity["{k.name}.example.com"].memory.isGreaterThan(quantity("1Gi"))'
    of_class = {"selectors": [{"cel": {"expression": expression}}]}
    k.plane.create(f"{DEVICES}/deviceclasses", {"metadata": {"name": k.name}, "spec": of_class})
    devices = [
        {"name": name, "capacity": {"memory": {"value": size}}}
        for name, size in (("a", "2Gi"), ("b", "4Gi"), ("c", "1Gi"))
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": f"{k.name}.example.com", "pool": pool, "nodeName": node, "devices": devices}
    k.plane.create(f"{DEVICES}/resourceslices", {"metadata": {"name": k.name}, "spec": spec})
    wanted = {"requests": [{"name": "r", "exactly": {"deviceClassName": k.name}}]}
    template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": wanted}}}
    k.plane.create(f"{DEVICES}/namespaces/{k.name}/resourceclaimtemplates", template)
    claims = [{"name": "c", "resourceClaimTemplateName": "t"}]
    names = ("p0", "p1", "p2")
    for name in names:
        k.pod(name, app=k.name, resourceClaims=claims, **k.there)
    comes(lambda: sum(bool(k.node_of(name)) for name in names) == 2, told=k.told)
    (waiting,) = (name for name in names if not k.node_of(name))
    k.waits(waiting)
    held = [one["status"]["allocation"]["devices"]["results"][0]["device"] for one in _claims(k) if one.get("status")]
    assert sorted(held) == ["a", "b"]
    k.plane.delete(f"{k.path}/pods/{next(name for name in names if name != waiting)}", gracePeriodSeconds=0)
    k.bound(waiting)


@CASES(
    "5",
    "a device class that backs a resource, and a claim as of a process that was killed before it had its device",
    "a pod requests the resource",
    "the claim is deleted, and the pod runs with another one",
)
def _(k: Place) -> None:
    node, resource = k.node(), f"{k.name}.example.com/gpu"
    k.plane.create(
        f"{DEVICES}/deviceclasses", {"metadata": {"name": k.name}, "spec": {"extendedResourceName": resource}}
    )
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": f"{k.name}.example.com", "pool": pool, "nodeName": node, "devices": [{"name": "a"}]}
    k.plane.create(f"{DEVICES}/resourceslices", {"metadata": {"name": k.name}, "spec": spec})
    amounts = {"cpu": "100m", resource: "1"}
    containers = [{"name": "c", "image": "none", "resources": {"requests": amounts, "limits": {resource: "1"}}}]
    k.pod(app=k.name, containers=containers, schedulingGates=[{"name": "example.com/gate"}], **k.there)
    pod = msgspec.convert(k.find(), Pod)
    left = Extended(pod, {resource: k.name}).body(claim_key(pod), {})
    del left["metadata"]["finalizers"]
    uid = k.plane.create(f"{DEVICES}/namespaces/{k.name}/resourceclaims", left)["metadata"]["uid"]
    comes(lambda: not _claims(k), told=k.told)
    k.change("p", {"spec": {"schedulingGates": None}})
    k.bound("p")
    (claim,) = _claims(k)
    assert claim["metadata"]["uid"] != uid
    assert claim["status"]["allocation"]["devices"]["results"][0]["device"] == "a"
    assert (k.find() or {})["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == claim["metadata"]["name"]


def _claims(k: Place) -> list[Any]:
    found: list[Any] = k.plane.get(f"{DEVICES}/namespaces/{k.name}/resourceclaims")["items"]
    return found


# Effect of a taint, and whether a pod that says nothing about it runs on the node.
EFFECTS: Final = [("NoExecute", False), ("PreferNoSchedule", True)]


def _effect_case(effect: str, runs: bool) -> Case:
    def run(k: Place) -> None:
        k.node(taints=[{"key": "example.com/soft", "value": "x", "effect": effect}])
        k.pod(app=k.name, **k.there)
        if runs:
            k.bound("p")
        else:
            k.waits("p")

    then = "it runs there" if runs else "it waits"
    return Case("4", f"a node with a taint {effect}", "a pod that does not tolerate it is created", then, run)


CASES += [_effect_case(*row) for row in EFFECTS]


def _preferred_case(tainted: str, other: str) -> Case:
    def run(k: Place) -> None:
        soft = [{"key": "example.com/soft", "value": "x", "effect": "PreferNoSchedule"}]
        nodes = {name: k.node(name, taints=soft if name == tainted else []) for name in ("a", "b")}
        k.pod(app=k.name, **k.there)
        assert k.bound("p") == [nodes[other]]

    return Case(
        "4", f"nodes a and b, and a taint PreferNoSchedule of {tainted}", "a pod is created", f"it runs on {other}", run
    )


CASES += [_preferred_case("a", "b"), _preferred_case("b", "a")]


@CASES("4", "a port on the node that a pod has", "pods want it by another protocol and address", "they run beside it")
def _(k: Place) -> None:
    k.node()
    wanted: dict[str, Object] = {
        "first": {"hostPort": 8080, "hostIP": "10.1.0.1"},
        "udp": {"hostPort": 8080, "hostIP": "10.1.0.1", "protocol": "UDP"},
        "address": {"hostPort": 8080, "hostIP": "10.1.0.2"},
        "all": {"hostPort": 8080},
    }
    for name, port in wanted.items():
        container = {"name": "c", "image": "none", "ports": [{"containerPort": 8080, **port}]}
        k.pod(name, app=k.name, containers=[container], **k.there)
        if name != "all":
            k.bound(name)
    k.waits("all")


# -- section 5 --------------------------------------------------------------------------------------------------------


@CASES("5", "a pod that fits", "it is created", "it is bound, and counts on its node")
def _(k: Place) -> None:
    node = k.node()
    k.pod(app=k.name, cpu="2", **k.there)
    assert k.bound("p") == [node]
    comes(lambda: (k.licorne.node(node) or {})["allocated"].get("vcore") == 2000, told=k.told)


@CASES(
    "5", "an API server that refuses a binding", "it allows it later", "an event says why, and the pod is bound then"
)
def _(k: Place) -> None:
    k.node()
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"], "operations": ["CREATE"]}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": k.name}}, "resourceRules": [rule]}
    refusal = {"expression": "false", "message": "no bindings today"}
    spec = {"failurePolicy": "Fail", "matchConstraints": where, "validations": [refusal]}
    k.plane.create(policies, {"metadata": {"name": k.name}, "spec": spec})
    binding = {"metadata": {"name": k.name}, "spec": {"policyName": k.name, "validationActions": ["Deny"]}}
    k.plane.create(policies.replace("policies", "policybindings"), binding)

    def refused() -> bool:
        """Return whether the policy is in force, which takes the API server a moment."""
        name = f"p{len(k.pods())}"
        k.pod(name, app=k.name, cpu="8", **k.there)
        comes(lambda: k.events("PodBindFailure", name) or k.node_of(name), told=k.told)
        if not k.events("PodBindFailure", name):
            k.delete(name)
            return False
        return True

    comes(refused, told=k.told)
    (event, *_) = k.events("PodBindFailure")
    assert (event.type, event.action) == ("Warning", "PodBindFailure")
    assert "no bindings today" in event.note
    comes(lambda: any(each.times > 1 for each in k.events("PodBindFailure", event.name)), told=k.told)
    k.plane.delete(policies.replace("policies", "policybindings") + f"/{k.name}")
    k.bound(event.name)


# -- section 7 --------------------------------------------------------------------------------------------------------


@CASES("7", "a pod that takes a whole node", "it ends by itself", "the next one gets the node")
def _(k: Place) -> None:
    k.node()
    k.pod("first", app=k.name, cpu="8", annotations={"controlplane/run-for": "2s"}, **k.there)
    k.bound("first")
    k.pod("second", app=k.name, cpu="8", **k.there)
    k.bound("second")
    assert (k.find("first") or {})["status"]["phase"] == "Succeeded"


@CASES("7", "a pod that takes a whole node", "it fails", "the next one gets the node")
def _(k: Place) -> None:
    k.node()
    k.pod("first", app=k.name, cpu="8", **k.there)
    k.bound("first")
    comes(lambda: (k.find("first") or {})["status"].get("phase") == "Running", told=k.told)
    k.pod("second", app=k.name, cpu="8", **k.there)
    k.waits("second")
    k.change("first", {"status": {"phase": "Failed"}}, "status")
    k.bound("second")


@CASES("7", "a pod that takes a whole node", "it is deleted", "the next one gets the node")
def _(k: Place) -> None:
    k.node()
    k.pod("first", app=k.name, cpu="8", **k.there)
    k.bound("first")
    k.pod("second", app=k.name, cpu="8", **k.there)
    k.waits("second")
    k.delete("first")
    k.bound("second")


@CASES("7", "a pod that takes a whole node", "it is deleted, and ends slowly", "the next one waits until it is gone")
def _(k: Place) -> None:
    k.node()
    k.pod("first", app=k.name, cpu="8", finalizers=["example.com/look"], **k.there)
    k.bound("first")
    k.delete("first")
    assert (k.find("first") or {})["metadata"]["deletionTimestamp"]
    k.pod("second", app=k.name, cpu="8", **k.there)
    k.waits("second")
    k.change("first", {"metadata": {"finalizers": None}})
    k.bound("second")


@CASES("7", "a pod that waits", "it is deleted", "its ask is gone, and its application completes")
def _(k: Place) -> None:
    k.node()
    k.pod(app=k.name, cpu="9", **k.there)
    assert k.item(k.name)["resource"]["vcore"] == 9000
    k.delete("p")
    comes(lambda: not (k.licorne.application(k.name) or {}).get("requests"), told=k.told)
    comes(lambda: (k.licorne.application(k.name) or {"applicationState": "Completed"})["applicationState"] in ENDING)


ENDING: Final = ("Completing", "Completed")


@CASES("7", "an application whose pods are gone", "it has completed, and a pod has its id", "it begins anew")
def _(k: Place) -> None:
    k.pod("first", app=k.name, queue="root.open")
    k.bound("first")
    k.delete("first")
    comes(lambda: k.licorne.application(k.name) is None, told=k.told)
    k.pod("second", app=k.name, queue="root.small")
    k.bound("second")
    assert k.application(k.name)["queueName"] == "root.small"


# -- section 8 --------------------------------------------------------------------------------------------------------


def bind(k: Place, name: str, node: str) -> None:
    """Bind a pod to a node, as its scheduler does."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    k.plane.create(f"{k.path}/pods/{name}/binding", body)


def occupied(k: Place, node: str) -> int:
    """Return how much CPU pods of other schedulers take on a node, in thousandths."""
    return int((k.licorne.node(node) or {}).get("occupied", {}).get("vcore", 0))


def allocated(k: Place, node: str) -> int:
    """Return how much CPU pods of licorne take on a node, in thousandths."""
    return int((k.licorne.node(node) or {}).get("allocated", {}).get("vcore", 0))


def _takes_room_until_deleted(k: Place, name: str, app: str) -> None:
    """Check that a pod of 6 cores on a node of 8 keeps one of 3 cores off, until it is deleted."""
    k.pod(app=app, cpu="3", **k.there)
    k.waits("p")
    k.delete(name)
    k.bound("p")


def _foreign(k: Place, node: str, cpu: str = "6", owners: list[Object] | None = None) -> None:
    """Create a pod of another scheduler on a node, and wait until it counts."""
    k.pod("foreign", cpu=cpu, schedulerName="default-scheduler", nodeName=node, owners=owners)
    comes(lambda: (k.licorne.node(node) or {}).get("occupied", {}).get("vcore"), told=k.told)


@CASES("8", "a pod of another scheduler on a node", "pods are created", "it counts, until it is gone")
def _(k: Place) -> None:
    node = k.node()
    _foreign(k, node)
    _takes_room_until_deleted(k, "foreign", k.name)


@CASES("8", "a pod of another scheduler on a node", "it ends by itself", "its room is free")
def _(k: Place) -> None:
    node = k.node()
    _foreign(k, node)
    k.pod(app=k.name, cpu="3", **k.there)
    k.waits("p")
    comes(lambda: (k.find("foreign") or {})["status"].get("phase") == "Running", told=k.told)
    k.change("foreign", {"status": {"phase": "Succeeded"}}, "status")
    k.bound("p")


@CASES("8", "a pod of another scheduler on a node", "it is resized", "it counts with what it takes now")
def _(k: Place) -> None:
    node = k.node()
    _foreign(k, node)
    comes(lambda: (k.find("foreign") or {})["status"].get("phase") == "Running", told=k.told)
    k.resizable("foreign", cpu="6", memory="64Mi")
    k.pod(app=k.name, cpu="4", **k.there)
    k.waits("p")
    k.resize("foreign", cpu="1")
    k.resizable("foreign", cpu="1", memory="64Mi")
    k.bound("p")


@CASES("8", "a pod of another scheduler on a node that does not exist yet", "the node appears", "it counts there")
def _(k: Place) -> None:
    k.pod("foreign", cpu="6", schedulerName="default-scheduler", nodeName=f"{k.name}-n")
    k.pod(app=k.name, cpu="3", **k.there)
    node = k.node()
    comes(lambda: occupied(k, node) == 6000, told=k.told)
    k.waits("p")


@CASES(
    "8", "a pod of another scheduler with a host port", "a pod that wants it is created", "it waits until it is free"
)
def _(k: Place) -> None:
    node = k.node()
    port = {"containerPort": 80, "hostPort": 8080}
    requests = {"requests": {"cpu": "1"}}
    container = {"name": "c", "image": "none", "ports": [port], "resources": requests}
    k.pod("foreign", containers=[container], schedulerName="default-scheduler", nodeName=node)
    comes(lambda: occupied(k, node) == 1000, told=k.told)
    k.pod(app=k.name, containers=[container], **k.there)
    other = {**container, "ports": [{**port, "hostPort": 8081}]}
    k.pod("other", app=f"{k.name}-other", containers=[other], **k.there)
    k.bound("other")
    k.waits("p")
    k.delete("foreign")
    assert k.bound("p") == [node]


@CASES(
    "8", "a pod of another scheduler whose init container is its largest", "pods are created", "it counts with that one"
)
def _(k: Place) -> None:
    node = k.node()
    large = {"name": "i", "image": "none", "resources": {"requests": {"cpu": "6"}}}
    k.pod("foreign", cpu="1", initContainers=[large], schedulerName="default-scheduler", nodeName=node)
    comes(lambda: occupied(k, node) == 6000, told=k.told)
    k.pod("large", app=k.name, cpu="2500m", **k.there)
    k.pod("fits", app=k.name, cpu="2", **k.there)
    k.bound("fits")
    k.waits("large")


@CASES(
    "8",
    "a pod of another scheduler without requests, on a node for one pod",
    "a pod is created",
    "it waits for its end",
)
def _(k: Place) -> None:
    node = k.node(amounts={"pods": "1"})
    nothing = [{"name": "c", "image": "none"}]
    k.pod("foreign", containers=nothing, schedulerName="default-scheduler", nodeName=node)
    comes(lambda: (k.licorne.node(node) or {}).get("foreignAllocations"), told=k.told)
    k.pod(app=k.name, **k.there)
    k.waits("p")
    k.delete("foreign")
    assert k.bound("p") == [node]


@CASES(
    "8",
    "a pod that waits",
    "somebody else binds it to a node that it does not select",
    "it counts there, for its queue too",
)
def _(k: Place) -> None:
    node = k.node()
    k.pod("bound", app=k.name, queue="root.open", cpu="6", nodeSelector={"case": "none"})
    k.waits("bound")
    bind(k, "bound", node)
    comes(lambda: allocated(k, node) == 6000, told=k.told)
    (allocation,) = k.application(k.name)["allocations"]
    assert (allocation["nodeId"], allocation["allocationKey"]) == (node, k.uid("bound"))
    _takes_room_until_deleted(k, "bound", f"{k.name}-p")


@CASES("8", "a pod that is created with a node", "it runs", "it is an allocation of its application, and counts")
def _(k: Place) -> None:
    node = k.node()
    k.pod("given", app=k.name, queue="root.open", cpu="6", nodeName=node)
    comes(lambda: allocated(k, node) == 6000, told=k.told)
    found = k.application(k.name)
    assert (found["queueName"], len(found["allocations"])) == ("root.open", 1)
    _takes_room_until_deleted(k, "given", f"{k.name}-p")


@CASES("8", "a pod of another scheduler that waits", "that one binds it", "it counts from then on, and not before")
def _(k: Place) -> None:
    node = k.node()
    k.pod("foreign", cpu="6", schedulerName="default-scheduler", **k.there)
    k.pod("before", app=k.name, cpu="1", **k.there)
    k.bound("before")
    assert occupied(k, node) == 0
    bind(k, "foreign", node)
    comes(lambda: occupied(k, node) == 6000, told=k.told)
    k.pod("large", app=k.name, cpu="1500m", **k.there)
    k.pod("fits", app=k.name, cpu="1", **k.there)
    k.bound("fits")
    k.waits("large")
    k.delete("foreign")
    k.bound("large")


@CASES("8", "a pod that its node owns, and another", "they run", "REST tells them apart: static and default")
def _(k: Place) -> None:
    node = k.node()
    uid = k.plane.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    _foreign(k, node, "1", [owner])
    k.pod("plain", cpu="1", schedulerName="default-scheduler", nodeName=node)
    comes(lambda: len((k.licorne.node(node) or {}).get("foreignAllocations", ())) == 2, told=k.told)
    kinds = {
        item["allocationTags"]["kubernetes.io/meta/podName"]: item["allocationTags"]["foreign"]
        for item in (k.licorne.node(node) or {})["foreignAllocations"]
    }
    assert kinds == {"foreign": "static", "plain": "default"}


# -- section 9 --------------------------------------------------------------------------------------------------------


@CASES("9", "a pod for which there is no room", "a node is added", "it runs there")
def _(k: Place) -> None:
    k.pod(app=k.name, **k.there)
    k.waits("p")
    node = k.node()
    assert k.bound("p") == [node]


@CASES("9", "a new node", "REST is asked", "it has the name, the rack and the amounts of the node")
def _(k: Place) -> None:
    node = k.node(amounts={"cpu": "3500m", "memory": "2Gi", "nvidia.com/gpu": "4"})
    found = k.licorne.node(node) or {}
    expected = {"si/hostname": node, "si/rackname": "/rack-default"}
    assert expected.items() <= found["attributes"].items()
    capacity = {
        name: amount for name, amount in found["capacity"].items() if not name.startswith("case-")
    }  # classes of other cases
    assert capacity == {"vcore": 3500, "memory": 2 << 30, "nvidia.com/gpu": 4, "pods": 110}


@CASES("9", "a node that is cordoned", "pods are created, and it is uncordoned", "they wait, and run then")
def _(k: Place) -> None:
    node = k.node()
    k.pod("before", app=k.name, **k.there)
    k.bound("before")
    k.change_node(node, {"spec": {"unschedulable": True}})
    comes(lambda: "unschedulable" in (k.licorne.node(node) or {})["attributes"]["taints"], told=k.told)
    k.pod(app=k.name, **k.there)
    k.waits("p")
    assert k.node_of("before") == node
    k.change_node(node, {"spec": {"unschedulable": None}})
    k.bound("p")


@CASES(
    "9",
    "a node that is cordoned",
    "a pod that tolerates the taint of that is created",
    "it runs there, and others wait",
)
def _(k: Place) -> None:
    node = k.node(unschedulable=True)
    k.pod("waits", app=k.name, **k.there)
    taint = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    k.pod(app=k.name, nodeSelector=k.there["nodeSelector"], tolerations=[*k.there["tolerations"], taint])
    assert k.bound("p") == [node]
    k.waits("waits")


@CASES("9", "a new node that is cordoned", "pods are created, and it is uncordoned", "they wait, and run then")
def _(k: Place) -> None:
    node = k.node(unschedulable=True)
    k.pod(app=k.name, **k.there)
    k.waits("p")
    k.change_node(node, {"spec": {"unschedulable": False}})
    k.bound("p")


@CASES("9", "a node that is full", "its allocatable amounts grow", "a pod that waited runs there")
def _(k: Place) -> None:
    node = k.node(amounts={"cpu": "1"})
    k.pod(app=k.name, cpu="2", **k.there)
    k.waits("p")
    k.set_cpus(node, 3)
    assert k.bound("p") == [node]


@CASES("9", "a node", "its allocatable amounts shrink", "no more pods than fit are placed there")
def _(k: Place) -> None:
    node = k.node()
    k.set_cpus(node, 1)
    k.pod(app=k.name, cpu="2", **k.there)
    k.waits("p")


@CASES("9", "a node without the label that a pod selects", "the label is added", "the pod runs there")
def _(k: Place) -> None:
    node = k.node()
    k.pod(app=k.name, tolerations=k.there["tolerations"], nodeSelector={**k.there["nodeSelector"], "disk": "ssd"})
    k.waits("p")
    k.change_node(node, {"metadata": {"labels": {"disk": "ssd"}}})
    assert k.bound("p") == [node]


@CASES("9", "a node with a taint", "the taint is removed", "a pod that does not tolerate it runs there")
def _(k: Place) -> None:
    node = k.node(taints=[GPU])
    k.pod(app=k.name, **k.there)
    k.waits("p")
    own = {"key": "case", "value": k.name, "effect": "NoSchedule"}
    k.change_node(node, {"spec": {"taints": [own]}})
    assert k.bound("p") == [node]


@CASES("9", "a node", "it is deleted, and made again with less", "it has the new amounts, and its pods are known")
def _(k: Place) -> None:
    node = k.node()
    k.pod("before", app=k.name, cpu="2", **k.there)
    k.bound("before")
    k.plane.delete(f"/api/v1/nodes/{node}")
    comes(lambda: k.licorne.node(node) is None, told=k.told)
    k.pod("large", app=f"{k.name}-large", cpu="2", **k.there)
    k.pod("fits", app=f"{k.name}-fits", cpu="1", **k.there)
    k.node(amounts={"cpu": "3"})
    k.bound("fits")
    k.waits("large")
    assert (k.licorne.node(node) or {})["allocated"]["vcore"] == 3000
    k.delete("before")
    k.bound("large")


@CASES("9", "a node on which a pod runs", "it is deleted", "REST does not show it, and new pods go elsewhere")
def _(k: Place) -> None:
    node = k.node("one")
    k.pod("before", app=k.name, **k.there)
    assert k.bound("before") == [node]
    k.plane.delete(f"/api/v1/nodes/{node}")
    comes(lambda: k.licorne.node(node) is None, told=k.told)
    two = k.node("two")
    k.pod(app=k.name, **k.there)
    assert k.bound("p") == [two]


# -- preemption -------------------------------------------------------------------------------------------------------


def _lent(k: Place, **more: Any) -> None:
    """Fill a node with pods of a queue that is guaranteed nothing."""
    k.alone({})
    k.node()
    for number in range(4):
        k.pod(f"lent-{number}", app=f"{k.name}-lent", queue="root.shares.lender", cpu="2", **more, **k.there)
        k.bound(f"lent-{number}")


@CASES(
    "6", "a full node, and a queue that has less than its guarantee", "its pod is created", "a victim is told, and goes"
)
def _(k: Place) -> None:
    _lent(k, finalizers=["example.com/look"])
    k.pod("owner", app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", **k.there)
    victim = comes(lambda: next(iter(_leaving(k)), None), told=k.told)
    assert victim
    name = victim["metadata"]["name"]
    condition = k.condition("DisruptionTarget", name)
    assert condition
    assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
    queue = "root.shares.owner, which is below its guarantee"
    assert condition["message"] == f"Evicted for pod {k.name}/owner of queue {queue}."
    assert k.event("Preempted", name=name).note == condition["message"]
    assert not k.node_of("owner")
    k.change(name, {"metadata": {"finalizers": None}})
    k.bound("owner")
    assert len(_leaving(k)) == 0


@CASES(
    "6",
    "a full node, and a queue that has less than its guarantee by two pods",
    "both are created, and no victim ends",
    "two victims are told at once, and no autoscaler adds a node",
)
def _(k: Place) -> None:
    _lent(k, finalizers=["example.com/look"])
    for name in ("owner-0", "owner-1"):
        k.pod(name, app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", **k.there)
    comes(lambda: len(_leaving(k)) == 2, told=k.told)
    for name in ("owner-0", "owner-1"):
        comes(lambda name=name: k.condition("PodScheduled", name), told=k.told)  # type: ignore[misc]
        assert (k.condition("PodScheduled", name) or {})["reason"] == "SchedulingSkipped"
    for victim in _leaving(k):
        k.change(victim["metadata"]["name"], {"metadata": {"finalizers": None}})
    k.bound("owner-0")
    k.bound("owner-1")


def _driver(k: Place) -> None:
    """Create the first pod of the lent application, which is evicted after all others, on a node that nobody needs."""
    k.pod("driver", app=f"{k.name}-lent", queue="root.shares.lender")
    k.bound("driver")


@CASES("1", "an older pod, and the first one of another application", "room is needed", "the first pod stays")
def _(k: Place) -> None:
    k.alone({})
    k.node(amounts={"cpu": "4"})
    for name, app in (("a-driver", "a"), ("a-other", "a"), ("b-driver", "b")):
        there = {} if name == "a-driver" else {"cpu": "2", **k.there}
        k.pod(name, app=f"{k.name}-{app}", queue="root.shares.lender", **there)
        k.bound(name)
    k.pod("owner", app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", **k.there)
    k.bound("owner")
    assert sorted(k.pods()) == ["a-driver", "b-driver", "owner"]


@CASES("1", "two victims, of which one says allow-preemption: false", "room is needed", "the other one goes")
def _(k: Place) -> None:
    k.alone({})
    k.node(amounts={"cpu": "4"})
    _driver(k)
    for name, said in (("first", "true"), ("second", "false")):
        given = {"yunikorn.apache.org/allow-preemption": said}
        k.pod(name, app=f"{k.name}-lent", queue="root.shares.lender", cpu="2", annotations=given, **k.there)
        k.bound(name)
    k.pod("owner", app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", **k.there)
    k.bound("owner")
    assert sorted(k.pods()) == ["driver", "owner", "second"]


def classes_known(k: Place) -> int:
    """Return how many priority classes licorne has seen."""
    found: int = k.licorne.ask("/debug/fullstatedump")["rmDiagnostics"]["cache"]["statistics"]["priorityClasses"]
    return found


@CASES(
    "1", "two victims, of which one is of a class that says allow-preemption: false", "room is needed", "the other goes"
)
def _(k: Place) -> None:
    k.alone({})
    kept = f"{k.name}-kept"
    said = {"name": kept, "annotations": {"yunikorn.apache.org/allow-preemption": "false"}}
    known = classes_known(k)
    k.plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": said, "value": 0})
    comes(lambda: classes_known(k) > known, told=k.told)
    k.node(amounts={"cpu": "4"})
    _driver(k)
    classes: list[tuple[str, dict[str, Any]]] = [("first", {}), ("second", {"priorityClassName": kept})]
    for name, more in classes:
        k.pod(name, app=f"{k.name}-lent", queue="root.shares.lender", cpu="2", **more, **k.there)
        k.bound(name)
    k.pod("owner", app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", **k.there)
    k.bound("owner")
    assert sorted(k.pods()) == ["driver", "owner", "second"]


@CASES(
    "1",
    "two victims of a class that says allow-preemption: false",
    "one says true itself",
    "that one goes, room is needed",
)
def _(k: Place) -> None:
    k.alone({})
    kept = f"{k.name}-kept"
    said = {"name": kept, "annotations": {"yunikorn.apache.org/allow-preemption": "false"}}
    known = classes_known(k)
    k.plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": said, "value": 0})
    comes(lambda: classes_known(k) > known, told=k.told)
    k.node(amounts={"cpu": "4"})
    _driver(k)
    for name, own in (("first", {"yunikorn.apache.org/allow-preemption": "true"}), ("second", {})):
        more = {"annotations": own, "priorityClassName": kept, **k.there}
        k.pod(name, app=f"{k.name}-lent", queue="root.shares.lender", cpu="2", **more)
        k.bound(name)
    k.pod("owner", app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", **k.there)
    k.bound("owner")
    assert sorted(k.pods()) == ["driver", "owner", "second"]


@CASES(
    "1", "two victims, of which one is under a budget that allows no disruption", "room is needed", "the other one goes"
)
def _(k: Place) -> None:
    k.alone({})
    k.node(amounts={"cpu": "4"})
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"guarded": "yes"}}},
    }
    k.plane.create(f"/apis/policy/v1/namespaces/{k.name}/poddisruptionbudgets", budget)
    _driver(k)
    for name, labels in (("first", {}), ("second", {"guarded": "yes"})):
        k.pod(name, app=f"{k.name}-lent", queue="root.shares.lender", cpu="2", labels=labels, **k.there)
        k.bound(name)
    k.pod("owner", app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", **k.there)
    k.bound("owner")
    assert sorted(k.pods()) == ["driver", "owner", "second"]


@CASES("1", "a pod that must not preempt", "room is needed", "nobody goes")
def _(k: Place) -> None:
    _lent(k)
    k.pod(
        "owner", app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", priorityClassName="cases-humble", **k.there
    )
    k.waits("owner")
    k.waits("owner")
    assert len(k.pods()) == 5


def _leaving(k: Place) -> list[Object]:
    items = k.plane.get(f"{k.path}/pods")["items"]
    return [item for item in items if item["metadata"].get("deletionTimestamp")]
