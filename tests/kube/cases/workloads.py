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


@CASES(
    "14", "a Spark application with task groups of its operator", "its pods are created", "executors find their room"
)
def _(k: Place) -> None:
    groups = [group(1, "200m", "spark-driver"), group(2, "200m", "spark-executor")]
    labels = {"spark-app-selector": k.name, Y + "app-id": k.name, Y + "queue": "root.open"}
    keys = {Y + "app-id": k.name, Y + "queue": "root.open"}
    given = {**gang(*groups, member="spark-driver"), **keys}
    k.pod("driver", cpu="200m", labels=labels, annotations=given)
    k.bound("driver")
    comes(lambda: len(placeholders(k)) == 2, told=k.told)
    for name in ("exec-1", "exec-2"):
        k.pod(name, cpu="200m", labels=labels, annotations={Y + "task-group-name": "spark-executor", **keys})
    comes(lambda: sorted(k.pods()) == ["driver", "exec-1", "exec-2"] and all(k.pods().values()), told=k.told)


@CASES(
    "14",
    "a RayCluster with gang scheduling, as KubeRay writes it",
    "its pods are created",
    "all run, no placeholder is left",
)
def _(k: Place) -> None:
    groups = [group(1, "200m", "headgroup"), group(2, "100m", "small-group")]
    labels = {"ray.io/gang-scheduling-enabled": "true", Y + "app-id": k.name, Y + "queue": "root.open"}
    members = {"head": "headgroup", "worker-1": "small-group", "worker-2": "small-group"}
    for name, member in members.items():
        k.pod(name, cpu="200m" if name == "head" else "100m", labels=labels, annotations=gang(*groups, member=member))
    comes(lambda: sorted(k.pods()) == sorted(members) and all(k.pods().values()), told=k.told)


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
