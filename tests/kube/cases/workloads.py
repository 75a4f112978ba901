"""docs/spec/k8shim.md, section 14: workloads as users and their tools write them, with the keys that these set."""

from __future__ import annotations

from typing import Any, Final

from kube.cluster import Object, Y, comes

from . import Case, Cases, Place
from .gangs import gang, group, placeholders

CASES = Cases()
BATCH: Final = "/apis/batch/v1/namespaces/{}/jobs"
APPS: Final = "/apis/apps/v1/namespaces/{}/{}"


def template(k: Place, labels: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return a pod template."""
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    body = {"schedulerName": k.scheduler, "containers": [container], **spec}
    return {"metadata": {"labels": labels, "annotations": annotations or {}}, "spec": body}


def allocations(k: Place) -> int:
    """Return how many allocations the application of the case has."""
    return len((k.licorne.application(k.name) or {}).get("allocations", ()))


@CASES("14", "a Job of six pods, three at a time", "it is created", "it completes, in the queue that it names")
def _(k: Place) -> None:
    labels = {"applicationId": k.name, "queue": "root.open"}
    pod = template(k, labels, {"controlplane/run-for": "1s"}, restartPolicy="Never")
    spec = {"completions": 6, "parallelism": 3, "template": pod}
    k.plane.create(BATCH.format(k.name), {"metadata": {"name": "j"}, "spec": spec})
    assert k.application(k.name)["queueName"] == "root.open"
    path = BATCH.format(k.name) + "/j"
    comes(lambda: k.plane.get(path)["status"].get("succeeded") == 6, told=k.told)


@CASES(
    "14", "Jobs with an id, with a unique one and without", "pods are made", "each is in the application of its labels"
)
def _(k: Place) -> None:
    ids = {"named": {"applicationId": k.name}, "plain": {}, "unique": {Y + "app-id": f"{k.name}-uniqueautogen"}}
    for name, labels in ids.items():
        pod = template(k, {**labels, "queue": "root.open"}, restartPolicy="Never")
        spec = {"completions": 2, "parallelism": 2, "template": pod}
        k.plane.create(BATCH.format(k.name), {"metadata": {"name": name}, "spec": spec})
    comes(lambda: len(k.pods()) == 6 and all(k.pods().values()), told=k.told)
    for pod in k.plane.get(f"{k.path}/pods")["items"]:
        meta = pod["metadata"]
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], meta["generateName"]) == ("Job", f"{owner['name']}-")
        applications = {
            "named": k.name,
            "plain": f"yunikorn-{k.name}-autogen",
            "unique": f"{k.name}-{meta['uid']}",
        }
        tags = k.item(applications[owner["name"]], meta["name"])["allocationTags"]
        assert tags["kubernetes.io/label/batch.kubernetes.io/job-name"] == owner["name"]


@CASES("14", "a CronJob with an id", "its Jobs run one a minute", "each run is an application of that id")
def _(k: Place) -> None:
    """Between two runs the application has ended, 30 s after its last pod: the next one of this id is a new one."""
    labels = {"applicationId": k.name, "queue": "root.open"}
    pod = template(k, labels, {"controlplane/run-for": "1s"}, restartPolicy="Never")
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}}
    path = BATCH.format(k.name).replace("/jobs", "/cronjobs")
    k.plane.create(path, {"metadata": {"name": "c"}, "spec": spec})

    def succeeded() -> int:
        return sum(job["status"].get("succeeded", 0) for job in k.plane.get(BATCH.format(k.name))["items"])

    for runs in (1, 2):
        comes(lambda runs=runs: succeeded() == runs, told=k.told)  # type: ignore[misc]
    assert k.application(k.name)["queueName"] == "root.open"
    completed = k.licorne.ask("/ws/v1/partition/default/applications/completed")
    assert [one["queueName"] for one in completed if one["applicationID"] == k.name] == ["root.open"]
    jobs = {job["metadata"]["ownerReferences"][0]["kind"] for job in k.plane.get(BATCH.format(k.name))["items"]}
    assert jobs == {"CronJob"}
    k.plane.delete(f"{path}/c")


@CASES("14", "a Deployment of three", "it is scaled to five and to one", "its pods run, and their room is given back")
def _(k: Place) -> None:
    labels = {"applicationId": k.name, Y + "queue": "root.open"}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template(k, labels)}
    path = APPS.format(k.name, "deployments")
    k.plane.create(path, {"metadata": {"name": "d"}, "spec": spec})
    for count in (3, 5, 1):
        k.plane.patch(f"{path}/d", {"spec": {"replicas": count}})
        comes(lambda count=count: k.plane.get(f"{path}/d")["status"].get("readyReplicas") == count, told=k.told)  # type: ignore[misc]
        comes(lambda count=count: allocations(k) == count, told=k.told)  # type: ignore[misc]


@CASES("14", "a StatefulSet of three", "it is created", "its pods run one after the other")
def _(k: Place) -> None:
    labels = {"applicationId": k.name}
    spec = {"replicas": 3, "serviceName": "s", "selector": {"matchLabels": labels}, "template": template(k, labels)}
    path = APPS.format(k.name, "statefulsets")
    k.plane.create(path, {"metadata": {"name": "s"}, "spec": spec})
    comes(lambda: k.plane.get(f"{path}/s")["status"].get("readyReplicas") == 3, told=k.told)
    assert sorted(k.pods()) == ["s-0", "s-1", "s-2"]


@CASES(
    "14", "Spark's driver and executors, labelled spark-app-selector", "they are created", "they are one application"
)
def _(k: Place) -> None:
    for role in ("driver", "exec-1", "exec-2"):
        k.pod(role, labels={"spark-app-selector": k.name, "spark-role": role[:8]})
    k.bound("driver", "exec-1", "exec-2")
    comes(lambda: allocations(k) == 3, told=k.told)


def owner(k: Place, name: str) -> list[Object]:
    """Return the owner reference that makes a pod the controller of another one."""
    return [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": k.uid(name), "controller": True}]


@CASES(
    "14",
    "a Spark application, as its operator writes it for YuniKorn",
    "its driver and then its executors are created",
    "room is held for the executors, and they take it",
)
def _(k: Place) -> None:
    """The id is that of Spark's own label, `queue` a label of all, and only the driver has the task groups, which have labels."""
    node = k.node(amounts={"cpu": "1"})
    room = {key: k.there[key] for key in ("nodeSelector", "tolerations")}
    roles = {"driver": {"queue": "root.open", "version": "4.0.0"}, "executor": {"queue": "root.open"}}
    groups = [
        group(1, "200m", "spark-driver", labels=roles["driver"], **room),
        group(2, "300m", "spark-executor", labels=roles["executor"], **room),
    ]
    spark = {"spark-app-selector": k.name, "spark-app-name": "pi", "sparkoperator.k8s.io/app-name": "pi"}
    driver = {
        **spark,
        **roles["driver"],
        "spark-role": "driver",
        "sparkoperator.k8s.io/launched-by-spark-operator": "true",
    }
    k.pod("pi-driver", cpu="200m", labels=driver, annotations=gang(*groups, member="spark-driver"), **k.there)
    k.bound("pi-driver")
    comes(lambda: len(placeholders(k)) == 2, told=k.told)
    assert {pod["metadata"]["labels"]["queue"] for pod in placeholders(k)} == {"root.open"}
    k.pod("other", app=f"{k.name}-other", cpu="300m", **k.there)
    k.waits("other")
    for number in (1, 2):
        labels = {**spark, **roles["executor"], "spark-role": "executor", "spark-exec-id": str(number)}
        given = {Y + "task-group-name": "spark-executor"}
        more = {"annotations": given, "owners": owner(k, "pi-driver"), **k.there}
        k.pod(f"pi-exec-{number}", cpu="300m", labels=labels, **more)
    assert k.bound("pi-exec-1", "pi-exec-2") == [node, node]
    comes(lambda: not placeholders(k), told=k.told)
    k.waits("other")
    found = k.application(k.name)
    assert (found["queueName"], len(found["allocations"])) == ("root.open", 3)
    assert not [event for event in k.events() if event.type == "Warning" and event.name.startswith("pi")]


@CASES(
    "14",
    "a Spark application of its operator that begins without executors",
    "its driver asks for some later",
    "they run, and no room was held for them",
)
def _(k: Place) -> None:
    """The operator leaves the group of the executors out, because a group of none is refused; executors name it all the same."""
    labels = {"spark-app-selector": k.name, "queue": "root.open"}
    given = gang(group(1, "200m", "spark-driver"), member="spark-driver")
    k.pod("driver", cpu="200m", labels={**labels, "spark-role": "driver"}, annotations=given)
    k.bound("driver")
    executor = {Y + "task-group-name": "spark-executor"}
    for name in ("exec-1", "exec-2"):
        k.pod(name, labels={**labels, "spark-role": "executor"}, annotations=executor, owners=owner(k, "driver"))
    k.bound("exec-1", "exec-2")
    assert sorted(k.pods()) == ["driver", "exec-1", "exec-2"]
    comes(lambda: allocations(k) == 3, told=k.told)


RAY: Final = {
    "ray.io/is-ray-node": "yes",
    "ray.io/cluster": "sample",
    "app.kubernetes.io/created-by": "kuberay-operator",
}
# The keys of KubeRay's pods for application and queue: those of its releases, and those of its RayCluster.
RAY_KEYS: Final = [("applicationId", "queue"), (Y + "app-id", Y + "queue")]


def ray_pod(k: Place, name: str, member: str, cpu: str, keys: tuple[str, str], *groups: Object, **more: Any) -> None:
    """Create a pod of a RayCluster with gang scheduling: each has all task groups, and names its own."""
    kind = {"ray.io/node-type": "head" if member == "headgroup" else "worker", "ray.io/group": member}
    labels = {**RAY, **kind, keys[0]: k.name, keys[1]: "root.open"}
    k.pod(name, cpu=cpu, labels=labels, annotations=gang(*groups, member=member), **more)


def _ray_case(keys: tuple[str, str]) -> Case:
    def run(k: Place) -> None:
        k.node(amounts={"cpu": "500m"})
        room = {key: k.there[key] for key in ("nodeSelector", "tolerations")}
        groups = [group(1, "200m", "headgroup", **room), group(2, "150m", "small-group", **room)]
        ray_pod(k, "head", "headgroup", "200m", keys, *groups, **k.there)
        k.bound("head")
        comes(lambda: len(placeholders(k)) == 2, told=k.told)
        k.pod("other", app=f"{k.name}-other", cpu="150m", **k.there)
        k.waits("other")
        for name in ("worker-1", "worker-2"):
            ray_pod(k, name, "small-group", "150m", keys, *groups, **k.there)
        k.bound("worker-1", "worker-2")
        comes(lambda: sorted(k.pods()) == ["head", "other", "worker-1", "worker-2"], told=k.told)
        k.waits("other")
        found = k.application(k.name)
        assert (found["queueName"], len(found["allocations"])) == ("root.open", 3)

    given = f"a RayCluster with gang scheduling, as KubeRay writes it, with {keys[0]}"
    return Case("14", given, "its pods are created", "its workers take the room held for them", run)


CASES += [_ray_case(keys) for keys in RAY_KEYS]


@CASES(
    "14",
    "a RayCluster with gang scheduling whose workers are autoscaled from none",
    "its pods are created",
    "an event says that a group of none is no gang, and all run without",
)
def _(k: Place) -> None:
    """KubeRay writes `minMember: 0` for such a group, which YuniKorn refuses, too."""
    groups = [group(1, "200m", "headgroup"), group(0, "100m", "small-group")]
    for name, member in (("head", "headgroup"), ("worker", "small-group")):
        ray_pod(k, name, member, "100m", RAY_KEYS[0], *groups)
    k.bound("head", "worker")
    assert k.event("GangScheduling", "minMember: 0", name="head").action == "TaskGroupsError"
    assert sorted(k.pods()) == ["head", "worker"]


@CASES(
    "14", "a RayJob, as KubeRay writes it", "its cluster and its submitter are created", "all three groups are one gang"
)
def _(k: Place) -> None:
    groups = [group(1, "100m", "headgroup"), group(1, "100m", "workers"), group(1, "50m", "submitter")]
    ray_pod(k, "head", "headgroup", "100m", RAY_KEYS[0], *groups)
    k.bound("head")
    comes(lambda: len(placeholders(k)) == 2, told=k.told)
    ray_pod(k, "worker", "workers", "100m", RAY_KEYS[0], *groups)
    labels = {"applicationId": k.name, "queue": "root.open"}
    pod = template(k, labels, gang(*groups, member="submitter"), restartPolicy="Never")
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "50m"
    k.plane.create(BATCH.format(k.name), {"metadata": {"name": "sample"}, "spec": {"template": pod}})
    comes(lambda: len(k.pods()) == 3 and not placeholders(k) and all(k.pods().values()), told=k.told)
    data = k.application(k.name)["placeholderData"]
    assert {one["taskGroupName"]: one["replaced"] for one in data} == {"headgroup": 1, "workers": 1, "submitter": 1}


# The tool; the labels that it, or its user, sets; the queue. `{ns}` is the namespace of the case.
LABELS: Final[list[tuple[str, dict[str, str], str]]] = [
    ("Flink", {"applicationId": "{ns}", "queue": "root.open", "component": "jobmanager"}, "root.open"),
    ("a TFJob of Kubeflow", {"applicationId": "{ns}", "queue": "root.small"}, "root.small"),
    ("an MPIJob of Kubeflow", {"applicationId": "{ns}", "queue": "root.open"}, "root.open"),
    (
        "YuniKorn's admission controller",
        {Y + "app-id": "{ns}", "applicationId": "{ns}", "queue": "root.open"},
        "root.open",
    ),
]


def _label_case(tool: str, labels: dict[str, str], queue: str) -> Case:
    def run(k: Place) -> None:
        k.pod(labels={key: text.replace("{ns}", k.name) for key, text in labels.items()})
        k.bound("p")
        assert k.application(k.name)["queueName"] == queue
        assert not [event for event in k.events() if event.type == "Warning"]

    return Case("14", f"a pod with the labels of {tool}", "it is created", f"it runs in {queue}", run)


CASES += [_label_case(*row) for row in LABELS]


LIMITED: Final = """
partitions:
  - name: default
    placementrules: [{name: provided, create: false}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: gpu, resources: {max: {nvidia.com/gpu: 2}}}
          - name: users
            limits: [{limit: one CPU for each, users: ["*"], maxresources: {vcore: 1}}]
"""


@CASES("14", "a queue with a max of GPUs", "pods ask for more of them", "those within it run, one waits for its quota")
def _(k: Place) -> None:
    k.alone({"queues.yaml": LIMITED})
    k.node(amounts={"nvidia.com/gpu": "4"})
    devices = {"requests": {"cpu": "100m", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "c", "image": "none", "resources": devices}
    for name in ("one", "two", "three"):
        k.pod(name, app=k.name, queue="root.gpu", containers=[container], **k.there)
        if name != "three":
            k.bound(name)
    k.waits("three")
    k.delete("one")
    k.bound("three")


@CASES("14", "an operator that names its users", "one of them asks for more than a user may have", "this one waits")
def _(k: Place) -> None:
    k.alone({"queues.yaml": LIMITED})
    for user, name in (("ann", "first"), ("ann", "second"), ("bob", "third")):
        info = {Y + "user.info": f'{{"user":"{user}","groups":["staff"]}}'}
        k.pod(name, app=f"{k.name}-{name}", queue="root.users", cpu="800m", annotations=info)
        if name != "second":
            k.bound(name)
    k.waits("second")
    assert k.application(f"{k.name}-second")["user"] == "ann"
    k.delete("first")
    k.bound("second")
