"""docs/spec/k8shim.md, sections 10 and 11: restarts, and the configuration. Each case has a licorne of its own."""

from __future__ import annotations

import base64
import gzip
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, Final

from kube.cluster import Licorne, comes
from kube.proxy import Proxy

from . import Case, Cases, Place
from .gangs import gang, group, placeholders
from .place import QUEUES

if TYPE_CHECKING:
    import httpx

CASES = Cases()
LARGER: Final = QUEUES.replace("max: {vcore: 1}", "max: {vcore: 2}")
"""The queues that cases share, where `root.small` may take more."""


def fill(k: Place, count: int, **more: Any) -> None:
    """Create pods of a tenth of a CPU."""
    for number in range(count):
        k.pod(f"p-{number}", app=f"{k.name}-{number % 7}", **more)


def placed(k: Place) -> int:
    """Return how many pods have a node."""
    return sum(map(bool, k.pods().values()))


# -- section 10 -------------------------------------------------------------------------------------------------------


@CASES("10", "pods that run and pods that wait", "licorne ends and starts", "it knows both, and goes on")
def _(k: Place) -> None:
    k.alone({})
    k.node()
    k.pod("runs", app=k.name, cpu="6", **k.there)
    k.bound("runs")
    k.pod("waits", app=k.name, cpu="3", **k.there)
    k.waits("waits")
    assert k.licorne.end() == 0
    k.pod("new", app=f"{k.name}-new", cpu="2", **k.there)
    k.licorne.started()
    k.bound("new")
    k.waits("waits")
    found = k.application(k.name)
    assert [item["nodeId"] for item in found["allocations"]] == [k.node_of("runs")]
    k.delete("runs")
    k.bound("waits")


@CASES("10", "a pod that runs", "it is deleted while licorne is away", "its room is free after the start")
def _(k: Place) -> None:
    k.alone({})
    k.node()
    k.pod("first", app=k.name, cpu="8", **k.there)
    k.bound("first")
    k.licorne.end(signal.SIGKILL)
    k.delete("first")
    k.pod("second", app=k.name, cpu="8", **k.there)
    k.licorne.started()
    k.bound("second")


@CASES("10", "a pod of another scheduler, and one that waits", "licorne ends and starts", "the first counts as before")
def _(k: Place) -> None:
    k.alone({})
    node = k.node()
    k.pod("foreign", cpu="6", schedulerName="default-scheduler", nodeName=node)
    comes(lambda: (k.licorne.node(node) or {}).get("occupied", {}).get("vcore") == 6000, told=k.told)
    k.pod("p", app=k.name, cpu="3", **k.there)
    k.waits("p")
    k.licorne.end(signal.SIGKILL)
    k.licorne.started()
    comes(lambda: (k.licorne.node(node) or {}).get("occupied", {}).get("vcore") == 6000, told=k.told)
    k.waits("p")
    k.delete("foreign")
    k.bound("p")


@CASES("10", "a pod that runs", "its queue is gone after the restart", "its application is kept, in the recovery queue")
def _(k: Place) -> None:
    k.alone({})
    k.pod(app=k.name, queue="root.open")
    k.bound("p")
    k.licorne.end(signal.SIGKILL)
    only = "partitions: [{name: default, placementrules: [{name: provided}], queues: [{name: root, submitacl: '*'}]}]"
    k.configure(**{"queues.yaml": only})
    k.licorne.started()
    found = k.application(k.name)
    assert (found["queueName"], len(found["allocations"])) == ("root.@recovery@", 1)


@CASES("10", "many pods on two nodes", "licorne is killed as it binds, three times", "all that fits runs, and no more")
def _(k: Place) -> None:
    k.alone({}, start=False)
    for name in ("one", "two"):
        k.plane.add_node(f"{k.name}-{name}", {"case": k.name}, taints=_taint(k), amounts={"cpu": "4"})
    fill(k, 100, **k.there)
    seen: dict[str, str] = {}
    for _turn in range(3):
        before = placed(k)
        k.licorne.start()
        comes(lambda before=before: placed(k) > before or placed(k) == 80, told=k.told)  # type: ignore[misc]
        k.licorne.end(signal.SIGKILL)
        now = k.pods()
        assert all(now[name] == node for name, node in seen.items())
        seen = {name: node for name, node in now.items() if node}
    k.licorne.started()
    comes(lambda: placed(k) == 80, told=k.told)
    time.sleep(1.0)
    assert sorted(Counter(filter(None, k.pods().values())).values()) == [40, 40]


def _taint(k: Place) -> list[dict[str, str]]:
    return [{"key": "case", "value": k.name, "effect": "NoSchedule"}]


@CASES("5", "an API server whose connections break, again and again", "pods are created", "each is bound in the end")
def _(k: Place) -> None:
    with Proxy(k.plane.port) as proxy:
        k.alone({}, start=False)
        k.licorne.port = proxy.port
        k.licorne.started()
        for name in ("one", "two"):
            k.plane.add_node(f"{k.name}-{name}", {"case": k.name}, taints=_taint(k), amounts={"cpu": "4"})
        for turn in range(10):
            for number in range(10):
                k.pod(f"p-{turn}-{number}", app=f"{k.name}-{number}", **k.there)
            proxy.cut()
        comes(lambda: placed(k) == 80, told=k.told)
    assert sorted(Counter(filter(None, k.pods().values())).values()) == [40, 40]


LATE_S: Final = 0.3
"""By how much what a licorne writes is held back, so that a dry run beside it, which reads the same, has decided before."""


@CASES("10", "a dry run beside a licorne", "gangs come and go", "both decide the same")
def _(k: Place) -> None:
    dry = Licorne(k.plane, f"{k.name}-dry", "--dry-run", "--scheduler-name", k.name, namespace=k.name)

    def report() -> Any:
        return dry.ask("/debug/fullstatedump")["rmDiagnostics"]["shadow"]

    def decided(pods: int) -> None:
        comes(lambda: sum(report()["pods"].values()) == pods, told=lambda: f"{report()} {k.told()}")

    with Proxy(k.plane.port, late_s=LATE_S) as proxy:
        try:
            k.alone({}, start=False)
            k.licorne.port = proxy.port
            k.licorne.started()
            dry.started()
            for node in [k.node(name, amounts={"cpu": "2"}) for name in ("one", "two")]:
                comes(lambda node=node: dry.node(node), told=dry.log)  # type: ignore[misc]
            room = {key: k.there[key] for key in ("nodeSelector", "tolerations")}
            given = gang(group(3, "500m", **room))
            for number in (1, 2):
                names = [f"member-{number}-{member}" for member in range(3)]
                for name in names:
                    k.pod(name, cpu="500m", app=f"{k.name}-{number}", annotations=given, **k.there)
                k.bound(*names)
                comes(lambda: not placeholders(k), told=k.told)
                # Each member, and the placeholder whose place it has taken: bound, or gone before that.
                decided(6 * number)
                k.delete(names[0])
            found = report()
            assert (found["differences"], found["pods"]["elsewhere"], found["pods"]["first"]) == ([], 0, 0)
            assert found["pods"]["same"] >= 6
            assert found["onlyLicorne"] == 0
            assert {"CreatePod", "Evict"} <= set(found["notWritten"])
        finally:
            dry.close()


@CASES("10", "a gang that reserves room", "licorne is killed and starts", "no placeholder is made twice")
def _(k: Place) -> None:
    k.alone({})
    k.node(amounts={"cpu": "1"})
    more = {"nodeSelector": k.there["nodeSelector"], "tolerations": k.there["tolerations"]}
    k.pod(app=k.name, annotations=gang(group(3, "400m", **more)), **k.there)
    comes(lambda: len(placeholders(k)) == 3, told=k.told)
    k.licorne.end(signal.SIGKILL)
    k.licorne.started()
    k.waits("p")
    assert len(placeholders(k)) == 3
    k.set_cpus(f"{k.name}-n", 2)
    k.bound("p")


@CASES("10", "a process that is stopped for a while", "it goes on", "it reads the cluster first, and then binds")
def _(k: Place) -> None:
    k.alone({})
    k.node()
    k.pod("first", app=k.name, cpu="8", **k.there)
    k.bound("first")
    process = k.licorne.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    k.delete("first")
    k.pod("second", app=k.name, cpu="8", **k.there)
    time.sleep(13.0)
    assert not k.node_of("second")
    process.send_signal(signal.SIGCONT)
    k.bound("second")
    assert "the process was paused" in k.licorne.log()


# -- section 11 -------------------------------------------------------------------------------------------------------


def cluster_id(k: Place) -> str:
    """Return the id of the cluster, as REST shows it."""
    (partition,) = k.licorne.ask("/ws/v1/partitions")
    found: str = partition["clusterId"]
    return found


@CASES("11", "no ConfigMap at all", "licorne starts", "the id of the cluster is mycluster, and pods run")
def _(k: Place) -> None:
    k.alone()
    assert cluster_id(k) == "mycluster"
    k.pod(app=k.name, queue="root.default")
    k.bound("p")


@CASES("11", "a setting in both ConfigMaps", "licorne starts", "that of yunikorn-configs counts")
def _(k: Place) -> None:
    k.configure("yunikorn-defaults", **{"service.clusterId": "default-id", "queues.yaml": QUEUES})
    k.configure(**{"service.clusterId": "own-id"})
    k.alone()
    assert cluster_id(k) == "own-id"
    assert k.licorne.queue("root.small") is not None


@CASES("11", "service.policyGroup", "licorne starts", "the queues are those of that group")
def _(k: Place) -> None:
    k.alone({"service.policyGroup": "mine", "queues.yaml": "no queues", "mine.yaml": QUEUES})
    assert k.licorne.queue("root.small") is not None


# How the queues are packed under binaryData, beside the base64 of the API server.
PACKED: Final = [
    ("gzip", gzip.compress(QUEUES.encode())),
    ("base64 of gzip", base64.b64encode(gzip.compress(QUEUES.encode()))),
]


def _packed_case(how: str, content: bytes) -> Case:
    def run(k: Place) -> None:
        body = {
            "metadata": {"name": "yunikorn-configs"},
            "binaryData": {"queues.yaml.gz": base64.b64encode(content).decode()},
        }
        k.plane.create(f"{k.path}/configmaps", body)
        k.alone()
        assert k.licorne.queue("root.small") is not None

    return Case("11", f"queues under binaryData, as {how}", "licorne starts", "they count", run)


CASES += [_packed_case(*row) for row in PACKED]


@CASES("11", "a pod that waits for its quota", "the ConfigMap raises it", "the pod runs")
def _(k: Place) -> None:
    k.alone({})
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    k.configure(**{"queues.yaml": LARGER})
    k.bound("p")


@CASES(
    "15", "a pod that waits for its quota", "REST is asked why", "it names the queue, and the max with which it runs"
)
def _(k: Place) -> None:
    k.alone({})
    k.pod("first", app=k.name, cpu="700m", queue="root.small")
    k.bound("first")
    k.pod(app=k.name, cpu="500m", queue="root.small")
    k.waits("p")
    why = k.licorne.ask(f"/api/v1/why/{k.name}/p")
    assert (why["pod"], why["queue"], why["state"]) == (f"{k.name}/p", "root.small", "waits")
    assert [each["text"] for each in why["proposals"]["found"]] == [
        "200m vcore less in the ask",
        "200m vcore more in root.small's max",
        "the ask in queue root.open in place of root.small",
        f"the end of pod {k.name}/first of root.small on {k.node_of('first')}",
    ]
    k.configure(**{"queues.yaml": LARGER})
    k.bound("p")


@CASES("11", "a licorne that runs", "a setting changes that counts at a restart", "an event names it")
def _(k: Place) -> None:
    k.alone({})
    k.configure(**{"queues.yaml": QUEUES, "service.clusterId": "other"})
    event = k.event("RestartNeeded", "service.clusterId", name="yunikorn-configs")
    assert event.type == "Warning"
    assert cluster_id(k) == "mycluster"


@CASES("11", "a licorne that runs", "log.level becomes ERROR", "warnings are logged no more")
def _(k: Place) -> None:
    k.alone({})
    k.configure(**{"queues.yaml": QUEUES, "service.clusterId": "other"})
    comes(lambda: "service.clusterId" in k.licorne.log(), told=k.told)
    k.configure(**{"queues.yaml": QUEUES, "log.level": "ERROR", "service.policyGroup": "queues2"})
    k.event("RestartNeeded", "service.policyGroup", name="yunikorn-configs")
    assert k.licorne.log().count("is started again") == 1
    k.configure(**{"queues.yaml": LARGER, "log.level": "INFO", "service.policyGroup": "queues2"})
    comes(lambda: "the configuration has been changed" in k.licorne.log().rpartition("started again")[2], told=k.told)
    assert k.licorne.queue("root.small") is not None


@CASES("11", "two ConfigMaps", "licorne kube --print-config", "all settings are printed, with their origins")
def _(k: Place) -> None:
    k.configure("yunikorn-defaults", **{"service.placeholderImage": "a", "queues.yaml": QUEUES})
    k.configure(**{"service.clusterId": "own-id", "no.such": "1"})
    printed = k.licorne_prints("--print-config")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in printed.splitlines() if line}
    assert rows["service.placeholderImage"] == "a ConfigMap yunikorn-defaults at once"
    assert rows["service.clusterId"] == "own-id ConfigMap yunikorn-configs at restart"
    assert rows["--namespace"] == f"{k.name} environment NAMESPACE at restart"
    assert "queue configuration: ConfigMap yunikorn-defaults, key queues.yaml" in printed
    assert "ignored: 'no.such'" in printed


@CASES("11", "a licorne that runs", "the queues of the ConfigMap are none", "an event says so, and the old ones count")
def _(k: Place) -> None:
    k.alone({})
    k.configure(**{"queues.yaml": "partitions: ["})
    event = k.event("ConfigurationRefused", name="yunikorn-configs")
    assert event.type == "Warning"
    k.pod(app=k.name, queue="root.open")
    k.bound("p")
    assert k.licorne.queue("root.small") is not None


@CASES("11", "a licorne that runs", "one value of the ConfigMap is none", "an event says so, and nothing of it counts")
def _(k: Place) -> None:
    k.alone({})
    k.configure(**{"queues.yaml": LARGER, "service.placeholderRunAsUser": "root"})
    k.event("ConfigurationRefused", "service.placeholderRunAsUser", name="yunikorn-configs")
    assert (k.licorne.queue("root.small") or {})["maxResource"] == {"vcore": 1000}


@CASES("11", "a value that is none", "licorne starts", "it ends, and names the key")
def _(k: Place) -> None:
    licorne = k.alone({"service.placeholderRunAsUser": "root"}, start=False)
    licorne.start()
    assert licorne.process is not None
    assert licorne.process.wait(60) != 0
    assert "service.placeholderRunAsUser" in licorne.log()


@CASES("11", "service.enableConfigHotRefresh: false", "the ConfigMap changes", "it counts after the next start")
def _(k: Place) -> None:
    quiet = {"service.enableConfigHotRefresh": "false"}
    k.alone(quiet)
    k.configure(**{"queues.yaml": LARGER, **quiet})
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    assert (k.licorne.queue("root.small") or {})["maxResource"] == {"vcore": 1000}
    k.licorne.end(signal.SIGKILL)
    k.licorne.started()
    k.bound("p")


@CASES("11", "service.enableConfigHotRefresh: false", "it becomes true again", "what has changed counts at once")
def _(k: Place) -> None:
    quiet = {"service.enableConfigHotRefresh": "false"}
    k.alone({})
    k.configure(**{"queues.yaml": QUEUES, **quiet})
    k.configure(**{"queues.yaml": LARGER, **quiet})
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    k.configure(**{"queues.yaml": LARGER, "service.enableConfigHotRefresh": "true"})
    k.bound("p")
    k.configure(**{"queues.yaml": QUEUES})
    comes(lambda: (k.licorne.queue("root.small") or {})["maxResource"] == {"vcore": 1000}, told=k.told)


YUNIKORN: Final = {
    "service.clusterId": "mine",
    "service.schedulingInterval": "500ms",
    "service.volumeBindTimeout": "5m",
    "service.eventChannelCapacity": "4096",
    "service.dispatchTimeout": "1m",
    "service.nodeInstanceTypeNodeLabelKey": "example.com/instance",
    "kubernetes.qps": "500",
    "kubernetes.burst": "600",
    "admissionController.filtering.bypassNamespaces": "^kube-system$,^other$",
    "admissionController.accessControl.externalUsers": "^ann$",
    "log.level": "INFO",
    "log.core.scheduler.level": "WARN",
    "event.trackingEnabled": "true",
    "event.maxStreams": "7",
    "health.checkInterval": "1m",
}
"""What the ConfigMap of a YuniKorn may have, of which some means nothing to licorne."""


@CASES("11", "the settings of a YuniKorn, whatever they are for", "licorne starts", "it takes them, and pods run")
def _(k: Place) -> None:
    k.alone(YUNIKORN)
    k.pod(app=k.name, queue="root.open")
    k.bound("p")
    assert cluster_id(k) == "mine"
    assert "no effect" not in k.licorne.log()
    assert not k.events("ConfigurationRefused") + k.events("ValueNotUsed")


# What is set; a path of REST; whether its answer is as it must be once the setting counts, and was not before.
OF_REST: Final[list[tuple[dict[str, str], str, Callable[[httpx.Response], bool]]]] = [
    ({"event.trackingEnabled": "false"}, "/ws/v1/events/batch", lambda answer: answer.status_code == 500),
    (
        {"event.RESTResponseSize": "2"},
        "/ws/v1/events/batch",
        lambda answer: len(answer.json()["EventRecords"]) == 2,
    ),
    (
        {"event.ringBufferCapacity": "3"},
        "/ws/v1/events/batch",
        lambda answer: answer.json()["HighestID"] - answer.json()["LowestID"] == 2,
    ),
    ({"licorne.max-body": "9"}, "/ws/v1/validate-conf", lambda answer: answer.status_code == 413),
]


def _rest_case(setting: dict[str, str], path: str, holds: Callable[[httpx.Response], bool]) -> Case:
    def run(k: Place) -> None:
        k.alone({})
        k.pod(app=k.name, queue="root.open")
        k.bound("p")
        method, body = ("POST", QUEUES) if "validate" in path else ("GET", "")

        def asked() -> bool:
            return holds(k.licorne.rest.request(method, path, content=body))

        assert not asked()
        k.configure(**{"queues.yaml": QUEUES, **setting})
        comes(asked, told=k.told)

    ((key, value),) = setting.items()
    return Case("11", f"{key}: {value}", "the ConfigMap changes while licorne runs", "REST follows it", run)


CASES += [_rest_case(*row) for row in OF_REST]


def _streams_case(key: str) -> Case:
    def run(k: Place) -> None:
        k.alone({})

        def stream() -> AbstractContextManager[httpx.Response]:
            return k.licorne.rest.stream("GET", "/ws/v1/events/stream")

        def status() -> int:
            with stream() as answer:
                return answer.status_code

        with ExitStack() as streams:
            one, other = (streams.enter_context(stream()) for _ in range(2))
            assert [one.status_code, other.status_code, status()] == [200, 200, 200]
            k.configure(**{"queues.yaml": QUEUES, key: "2"})
            comes(lambda: status() == 503, told=k.told)
            k.pod(app=k.name, queue="root.open")
            uid = k.uid()
            assert next(line for line in other.iter_lines() if uid in line), "those that are open go on"
            one.close()
            comes(lambda: status() == 200, told=k.told)

    given = f"{key}: 2, and two streams of events"
    return Case("11", given, "a third one is opened, and again when one has ended", "it is refused, and then not", run)


CASES += [_streams_case(key) for key in ("event.maxStreams", "event.maxStreamsPerHost")]


@CASES("11", "health.checkInterval: 0", "licorne starts", "its health is not checked")
def _(k: Place) -> None:
    comes(lambda: k.licorne.ask("/ws/v1/scheduler/healthcheck"), told=k.told)  # of one without the setting
    k.alone({"health.checkInterval": "0"})
    k.pod(app=k.name, queue="root.open")
    k.bound("p")
    time.sleep(3.0)
    assert k.licorne.ask("/ws/v1/scheduler/healthcheck") is None


@CASES("11", "generateUniqueAppId", "pods without an id are created", "each is an application of its own")
def _(k: Place) -> None:
    k.alone({"admissionController.filtering.generateUniqueAppId": "true"})
    for name in ("one", "two"):
        k.pod(name)
        assert k.item(f"{k.name}-{k.uid(name)}", name)


@CASES(
    "11", "generateUniqueAppId, and a namespace of a long name", "a pod is created", "its id has 26 characters of it"
)
def _(k: Place) -> None:
    k.alone({"admissionController.filtering.generateUniqueAppId": "true"})
    other = Place(k.plane, k.licorne, f"{k.name}-" + "n" * (60 - len(k.name)))
    other.scheduler = k.scheduler
    try:
        other.pod()
        assert other.item(f"{other.name[:26]}-{other.uid()}")
    finally:
        other.close()


@CASES("11", "settings of placeholders", "a gang is created", "its placeholders have the image and the ids")
def _(k: Place) -> None:
    ids = {"service.placeholderRunAsUser": "1000", "service.placeholderRunAsGroup": "2000"}
    k.alone({"service.placeholderImage": "example.com/pause:1", "service.placeholderFsGroup": "3000", **ids})
    k.pod(app=k.name, annotations=gang(group(3)))
    comes(lambda: placeholders(k), told=k.told)
    spec = placeholders(k)[0]["spec"]
    assert spec["containers"][0]["image"] == "example.com/pause:1"
    expected = {"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000}
    assert expected.items() <= spec["securityContext"].items()


@CASES("11", "two scheduler names", "pods name either", "both are scheduled")
def _(k: Place) -> None:
    k.alone({}, "--scheduler-name", f"{k.name}-too")
    k.pod("one", app=k.name)
    k.pod("two", app=k.name, schedulerName=f"{k.name}-too")
    k.bound("one", "two")
