"""docs/spec/k8shim.md, section 2: how much a pod takes. What counts is the resource that REST shows, without memory where it is the usual."""

from __future__ import annotations

from typing import Any, Final

from kube.cluster import comes

from . import Case, Cases, Place

CASES = Cases()
MIB: Final = 1 << 20


def needs(**requests: str) -> dict[str, Any]:
    """Return resources with these requests; `gpu` stands for `nvidia.com/gpu`."""
    return {"requests": {name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in requests.items()}}


def container(name: str, *, always: bool = False, **requests: str) -> dict[str, Any]:
    """Return a container; `always`: one that makes an init container a sidecar."""
    made: dict[str, Any] = {"name": name, "image": "none", "resources": needs(**requests)}
    return {**made, "restartPolicy": "Always"} if always else made


# What the pod has; its spec; what it takes, besides one of `pods`.
PODS: Final[list[tuple[str, dict[str, Any], dict[str, int]]]] = [
    ("no requests", {"containers": [{"name": "c", "image": "none"}]}, {}),
    (
        "two containers",
        {"containers": [container("a", cpu="100m", memory="64Mi"), container("b", cpu="1", memory="1G")]},
        {"vcore": 1100, "memory": 64 * MIB + 10**9},
    ),
    (
        "limits alone, which become requests",
        {"containers": [{"name": "c", "image": "none", "resources": {"limits": {"cpu": "2"}}}]},
        {"vcore": 2000},
    ),
    (
        "limits above its requests",
        {
            "containers": [
                {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
            ]
        },
        {"vcore": 1000},
    ),
    (
        "init containers, of which one is larger than all containers",
        {
            "containers": [container("c", cpu="100m", memory="64Mi")],
            "initContainers": [container("i", cpu="500m"), container("j", memory="32Mi")],
        },
        {"vcore": 500, "memory": 64 * MIB},
    ),
    (
        "a sidecar between init containers",
        {
            "containers": [container("c", cpu="100m")],
            "initContainers": [
                container("i", cpu="350m"),
                container("s", cpu="200m", always=True),
                container("j", cpu="150m"),
            ],
        },
        {"vcore": 350},
    ),
    (
        "a sidecar before a large init container",
        {
            "containers": [container("c", cpu="100m")],
            "initContainers": [container("s", cpu="200m", always=True), container("j", cpu="350m")],
        },
        {"vcore": 550},
    ),
    (
        "containers and sidecars that take more together than any init container",
        {
            "containers": [container("c", cpu="400m"), container("d", cpu="50m")],
            "initContainers": [container("s", cpu="200m", always=True), container("j", cpu="350m")],
        },
        {"vcore": 650},
    ),
    (
        "huge pages and disk space",
        {
            "containers": [
                {
                    "name": "c",
                    "image": "none",
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi"},
                        "limits": {"hugepages-2Mi": "4Mi"},
                    },
                }
            ]
        },
        {"vcore": 100, "memory": 64 * MIB, "ephemeral-storage": 1 << 30, "hugepages-2Mi": 4 * MIB},
    ),
    (
        "requests of the whole pod",
        {"containers": [container("c", cpu="100m", memory="64Mi")], "resources": needs(cpu="700m")},
        {"vcore": 700, "memory": 64 * MIB},
    ),
    (
        "a device",
        {"containers": [{"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
        {"nvidia.com/gpu": 2},
    ),
    (
        "overhead of its runtime class",
        {"containers": [container("c", cpu="100m", memory="64Mi")], "runtimeClassName": "cases-heavy"},
        {"vcore": 350, "memory": 184 * MIB},
    ),
]


def _case(given: str, spec: dict[str, Any], expected: dict[str, int]) -> Case:
    def run(k: Place) -> None:
        k.pod(app=k.name, **spec)
        assert k.item(k.name)["resource"] == {"pods": 1, **expected}

    return Case("2", f"a pod with {given}", "it is created", f"it takes {expected}", run)


CASES += [_case(*row) for row in PODS]


@CASES("2", "a pod that runs", "it is resized in place", "it takes what it asks for now")
def _(k: Place) -> None:
    k.pod(app=k.name)
    k.bound("p")
    k.resizable(cpu="100m", memory="64Mi")
    k.resize(cpu="300m")
    comes(lambda: k.item(k.name)["resource"]["vcore"] == 300, told=k.told)


@CASES("2", "a pod that is being made smaller", "its kubelet has not done so", "it takes what it still has")
def _(k: Place) -> None:
    k.pod(app=k.name, cpu="300m")
    k.bound("p")
    k.resizable(cpu="300m", memory="64Mi")
    k.resize(cpu="100m")
    k.pod("later", app=k.name)
    k.bound("later")
    assert k.item(k.name)["resource"]["vcore"] == 300
    k.resizable(cpu="100m", memory="64Mi")
    comes(lambda: k.item(k.name)["resource"]["vcore"] == 100, told=k.told)


@CASES("2", "a pod that is being made larger", "its kubelet says that this is infeasible", "it takes what it has")
def _(k: Place) -> None:
    k.pod(app=k.name)
    k.bound("p")
    k.resizable(cpu="100m", memory="64Mi")
    k.resize(cpu="900m")
    comes(lambda: k.item(k.name)["resource"]["vcore"] == 900, told=k.told)
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "too large"}
    k.change("p", {"status": {"conditions": [pending]}}, "status", "strategic-merge-patch")
    comes(lambda: k.item(k.name)["resource"]["vcore"] == 100, told=k.told)


@CASES("2", "a node with a device", "pods ask for more of it than it has", "one waits")
def _(k: Place) -> None:
    k.node(amounts={"nvidia.com/gpu": "1"})
    gpu = [{"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    k.pod("first", app=k.name, containers=gpu, **k.there)
    k.bound("first")
    k.pod("second", app=k.name, containers=gpu, **k.there)
    k.waits("second")
    k.delete("first")
    k.bound("second")
