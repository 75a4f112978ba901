"""docs/spec/k8shim.md, section 11: ConfigMaps that come, change and go while licorne runs. Each case has a licorne of its own."""

from __future__ import annotations

import base64
import gzip
import signal
import time
from typing import Any, Final

from kube.cluster import Object, comes

from . import Case, Cases, Place
from .gangs import gang, group, placeholders
from .place import QUEUES
from .running import LARGER

CASES = Cases()
DEFAULTS: Final = "yunikorn-defaults"
CONFIGS: Final = "yunikorn-configs"
HEALTH: Final = "/ws/v1/scheduler/healthcheck"
TAKEN: Final = "the configuration has been changed"
"""What the log says at level INFO of each change."""


def packed(queues: str) -> Object:
    """Return `binaryData` with these queues."""
    return {"queues.yaml.gz": base64.b64encode(gzip.compress(queues.encode())).decode()}


def small_max(k: Place) -> Any:
    """Return the max of `root.small`, or None if there is no such queue."""
    return (k.licorne.queue("root.small") or {}).get("maxResource")


def delete(k: Place, name: str) -> None:
    """Delete a ConfigMap."""
    k.plane.delete(f"{k.path}/configmaps/{name}")


def image(k: Place, name: str) -> str:
    """Create the first pod of a gang, and return the image of its placeholder."""
    k.pod(name, app=f"{k.name}-{name}", annotations=gang(group(2)))
    names = f"tg-{k.name}-{name}-"

    def found() -> list[Object]:
        return [pod for pod in placeholders(k) if pod["metadata"]["name"].startswith(names)]

    text: str = comes(found, told=k.told)[0]["spec"]["containers"][0]["image"]
    return text


# -- both ConfigMaps --------------------------------------------------------------------------------------------------


@CASES(
    "11",
    "queues and settings in yunikorn-defaults",
    "it changes",
    "all counts at once that yunikorn-configs does not say",
)
def _(k: Place) -> None:
    k.configure(DEFAULTS, **{"queues.yaml": QUEUES, "service.placeholderImage": "example.com/default:1"})
    k.alone()
    k.configure(**{"service.placeholderImage": "example.com/own:1"})
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    assert k.licorne.rest.get("/ws/v1/events/batch").is_success
    changed = {"event.trackingEnabled": "false", "service.placeholderImage": "example.com/default:2"}
    k.configure(DEFAULTS, **{"queues.yaml": LARGER, **changed})
    k.bound("p")
    comes(lambda: k.licorne.rest.get("/ws/v1/events/batch").status_code == 500, told=k.told)
    assert image(k, "gang") == "example.com/own:1"


@CASES("11", "queues in both ConfigMaps", "those of yunikorn-defaults change", "those of yunikorn-configs go on")
def _(k: Place) -> None:
    k.configure(DEFAULTS, **{"queues.yaml": QUEUES})
    k.alone({})
    k.configure(DEFAULTS, **{"queues.yaml": LARGER, "event.trackingEnabled": "false"})
    comes(lambda: k.licorne.rest.get("/ws/v1/events/batch").status_code == 500, told=k.told)
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    assert small_max(k) == {"vcore": 1000}


@CASES("11", "queues under binaryData", "they change", "the new ones count")
def _(k: Place) -> None:
    path = f"{k.path}/configmaps"
    k.plane.create(path, {"metadata": {"name": CONFIGS}, "binaryData": packed(QUEUES)})
    k.alone()
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    k.plane.patch(f"{path}/{CONFIGS}", {"binaryData": packed(LARGER)})
    k.bound("p")


@CASES("11", "no ConfigMap at all", "both are created", "their queues and settings count in place of the built-in ones")
def _(k: Place) -> None:
    k.alone()
    k.pod("before", app=f"{k.name}-before", queue="root.small")
    k.bound("before")
    assert k.application(f"{k.name}-before")["queueName"] == f"root.{k.name}"
    k.configure(**{"queues.yaml": QUEUES})
    comes(lambda: small_max(k) == {"vcore": 1000}, told=k.told)
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    k.configure(DEFAULTS, **{"event.trackingEnabled": "false"})
    comes(lambda: k.licorne.rest.get("/ws/v1/events/batch").status_code == 500, told=k.told)
    assert small_max(k) == {"vcore": 1000}


@CASES("11", "both ConfigMaps", "yunikorn-configs is deleted", "what yunikorn-defaults says counts")
def _(k: Place) -> None:
    k.configure(DEFAULTS, **{"queues.yaml": LARGER, "service.placeholderImage": "example.com/default:1"})
    k.alone({"service.placeholderImage": "example.com/own:1", "event.trackingEnabled": "false"})
    assert k.licorne.rest.get("/ws/v1/events/batch").status_code == 500
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    delete(k, CONFIGS)
    k.bound("p")
    comes(lambda: k.licorne.rest.get("/ws/v1/events/batch").is_success, told=k.told)
    assert image(k, "gang") == "example.com/default:1"


@CASES("11", "one ConfigMap", "it is deleted", "the built-in queues count, a pod that runs goes on, and so do new ones")
def _(k: Place) -> None:
    k.alone({"event.trackingEnabled": "false"})
    node = k.node()
    k.pod("runs", app=f"{k.name}-runs", queue="root.open", cpu="6", **k.there)
    k.bound("runs")
    delete(k, CONFIGS)
    comes(lambda: small_max(k) is None, told=k.told)
    comes(lambda: k.licorne.rest.get("/ws/v1/events/batch").is_success, told=k.told)
    k.pod(app=k.name, queue="root.small", cpu="2", **k.there)
    assert k.bound("p") == [node]
    assert k.application(k.name)["queueName"] == f"root.{k.name}"
    k.pod("more", app=k.name, cpu="1", **k.there)
    k.waits("more")
    assert (k.find("runs") or {})["spec"]["nodeName"] == node
    k.configure(**{"queues.yaml": QUEUES})
    comes(lambda: small_max(k) == {"vcore": 1000}, told=k.told)


# -- what is refused, and what counts later ---------------------------------------------------------------------------

NO_DEFAULT: Final = "partitions: [{name: other, queues: [{name: root, submitacl: '*'}]}]"
# What is wrong; the fields of the ConfigMap; a part of the event.
REFUSED: Final[list[tuple[str, Object, str]]] = [
    ("queues that are null", {"data": {"queues.yaml": "null"}}, "no partition 'default'"),
    ("queues without the partition default", {"data": {"queues.yaml": NO_DEFAULT}}, "no partition 'default'"),
    ("queues of a name that is not allowed", {"data": {"queues.yaml": QUEUES.replace("small", "s.m")}}, "s.m"),
    ("binaryData that is no gzip", {"binaryData": {"queues.yaml.gz": "bm9uZQ=="}}, "queues.yaml.gz"),
    ("more queues than licorne.max-queues allows", {"data": {"licorne.max-queues": "3"}}, "queues"),
    ("a duration that is none", {"data": {"service.schedulingInterval": "soon"}}, "service.schedulingInterval"),
]


def _refused_case(what: str, fields: Object, words: str) -> Case:
    def run(k: Place) -> None:
        k.alone({})
        k.plane.patch(f"{k.path}/configmaps/{CONFIGS}", fields)
        event = k.event("ConfigurationRefused", words, name=CONFIGS)
        assert (event.type, event.action) == ("Warning", "Configuring")
        k.pod(app=k.name, queue="root.open")
        k.bound("p")
        assert small_max(k) == {"vcore": 1000}

    then = "an event names it, and the configuration before counts"
    return Case("11", f"a ConfigMap that gets {what}", "licorne runs", then, run)


CASES += [_refused_case(*row) for row in REFUSED]


@CASES(
    "11", "a yunikorn-defaults that is refused", "yunikorn-configs overlays what is wrong", "both count from then on"
)
def _(k: Place) -> None:
    k.alone({})
    k.configure(DEFAULTS, **{"service.placeholderFsGroup": "many", "event.trackingEnabled": "false"})
    k.event("ConfigurationRefused", DEFAULTS, "service.placeholderFsGroup", name=DEFAULTS)
    assert k.licorne.rest.get("/ws/v1/events/batch").is_success
    k.configure(**{"queues.yaml": LARGER, "service.placeholderFsGroup": "7"})
    comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
    comes(lambda: k.licorne.rest.get("/ws/v1/events/batch").status_code == 500, told=k.told)


# A setting whose value does not parse, and whose default counts then.
UNUSED: Final = [("log.level", "LOUD"), ("health.checkInterval", "soon"), ("event.maxStreams", "many")]


def _unused_case(key: str, value: str) -> Case:
    def run(k: Place) -> None:
        k.alone({})
        k.configure(**{"queues.yaml": LARGER, key: value})
        event = k.event("ValueNotUsed", key, value, "the default is used", name=CONFIGS)
        assert (event.type, event.action) == ("Warning", "Configuring")
        comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
        comes(lambda: TAKEN in k.licorne.log(), told=k.told)  # at level INFO, the default

    return Case("11", f"{key}: {value}", "the ConfigMap changes", "an event says so, and all else of it counts", run)


CASES += [_unused_case(*row) for row in UNUSED]


@CASES(
    "11", "the key of the queues", "it is renamed with service.policyGroup", "they stay, and the new one counts later"
)
def _(k: Place) -> None:
    k.alone({})
    k.configure(**{"mine.yaml": LARGER, "service.policyGroup": "mine"})
    k.event("RestartNeeded", "service.policyGroup", name=CONFIGS)
    k.pod(app=k.name, cpu="1500m", queue="root.small")
    k.waits("p")
    assert small_max(k) == {"vcore": 1000}
    k.licorne.end(signal.SIGKILL)
    k.licorne.started()
    k.bound("p")


@CASES("11", "settings that count at a restart", "they change, and change back", "an event names them once")
def _(k: Place) -> None:
    k.alone({})
    k.configure(**{"queues.yaml": QUEUES, "service.clusterId": "other", "service.policyGroup": "other"})
    k.event("RestartNeeded", "service.clusterId, service.policyGroup", name=CONFIGS)
    k.configure(**{"queues.yaml": QUEUES})
    k.configure(**{"queues.yaml": LARGER})
    comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
    assert k.licorne.log().count("is started again") == 1


# -- settings that count at once --------------------------------------------------------------------------------------


@CASES("11", "service.disableGangScheduling", "it changes", "it counts for the pods that come then")
def _(k: Place) -> None:
    k.alone({})
    k.pod("gang", app=f"{k.name}-gang", annotations=gang(group(2)))
    k.bound("gang")
    comes(lambda: len(placeholders(k)) == 1, told=k.told)
    k.configure(**{"queues.yaml": LARGER, "service.disableGangScheduling": "true"})
    comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
    k.pod("alone", app=f"{k.name}-alone", annotations=gang(group(3)))
    k.bound("alone")
    time.sleep(1.0)
    assert len(placeholders(k)) == 1
    k.configure(**{"queues.yaml": QUEUES})
    comes(lambda: small_max(k) == {"vcore": 1000}, told=k.told)
    k.pod("again", app=f"{k.name}-again", annotations=gang(group(2)))
    comes(lambda: len(placeholders(k)) == 2, told=k.told)


@CASES("11", "settings of placeholders and ids", "they change", "they count for the pods that come then")
def _(k: Place) -> None:
    k.alone({})
    assert image(k, "before") == "registry.k8s.io/pause:3.7"
    k.pod("shared")
    assert k.item(f"yunikorn-{k.name}-autogen", "shared")
    unique = {"admissionController.filtering.generateUniqueAppId": "true"}
    k.configure(**{"queues.yaml": LARGER, "service.placeholderImage": "example.com/new:1", **unique})
    comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
    assert image(k, "after") == "example.com/new:1"
    k.pod("own")
    assert k.item(f"{k.name}-{k.uid('own')}", "own")


@CASES(
    "11",
    "licorne.scheduled-events: false",
    "it becomes true",
    "pods that are bound have an event, and not before",
)
def _(k: Place) -> None:
    quiet = {"licorne.scheduled-events": "false"}
    k.alone(quiet)
    k.pod("before", app=f"{k.name}-before", queue="root.open")
    k.bound("before")
    k.configure(**{"queues.yaml": LARGER, "licorne.scheduled-events": "true"})
    comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
    k.pod("after", app=f"{k.name}-after", queue="root.open")
    k.event("Scheduled", name="after")
    assert k.events("Scheduled", "before") == []


@CASES(
    "11", "log.level: ERROR", "log.core.level becomes INFO, and goes", "that logger writes, and then is silent again"
)
def _(k: Place) -> None:
    quiet = {"log.level": "ERROR"}
    k.alone(quiet)
    k.configure(**{"queues.yaml": LARGER, **quiet})
    comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
    assert TAKEN not in k.licorne.log()
    k.configure(**{"queues.yaml": QUEUES, **quiet, "log.core.level": "INFO"})
    comes(lambda: k.licorne.log().count(TAKEN) == 1, told=k.told)
    k.configure(**{"queues.yaml": LARGER, **quiet})
    comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
    k.configure(**{"queues.yaml": QUEUES, "log.level": "DEBUG", "log.core.level": "WARN"})
    comes(lambda: small_max(k) == {"vcore": 1000}, told=k.told)
    time.sleep(0.5)
    assert k.licorne.log().count(TAKEN) == 1


# Values of log.level beside names in capitals; whether lines of level INFO are written.
LEVELS: Final = [("-1", True), ("0", True), ("1", False), ("2", False), ("debug", True), ("PANIC", False)]


@CASES("15", "values of log.level as numbers and names", "each is set", "lines of INFO are written as it says")
def _(k: Place) -> None:
    k.alone({})
    written = 0
    for turn, (value, shown) in enumerate(LEVELS):
        queues = QUEUES if turn % 2 else LARGER
        k.configure(**{"queues.yaml": queues, "log.level": value})
        comes(lambda turn=turn: small_max(k) == {"vcore": 1000 if turn % 2 else 2000}, told=k.told)  # type: ignore[misc]
        time.sleep(0.3)
        written += shown
        comes(lambda written=written: k.licorne.log().count(TAKEN) == written, told=k.told)  # type: ignore[misc]


@CASES(
    "11",
    "a licorne that runs",
    "licorne.max-name and licorne.max-tags become small",
    "pods beyond them wait from then on",
)
def _(k: Place) -> None:
    k.alone({})
    k.pod("before", app=f"{k.name}-before" + "n" * 20, labels={f"example.com/{number}": "" for number in range(9)})
    k.bound("before")
    k.configure(**{"queues.yaml": LARGER, "licorne.max-name": "20", "licorne.max-tags": "5"})
    comes(lambda: small_max(k) == {"vcore": 2000}, told=k.told)
    k.pod("name", app=f"{k.name}-" + "n" * 20)
    k.pod("tags", app=k.name, labels={f"example.com/{number}": "" for number in range(9)})
    k.pod("within", app=k.name)
    k.bound("within")
    assert k.event("FailedScheduling", "its application id", name="name").type == "Warning"
    assert k.event("FailedScheduling", "labels", name="tags").type == "Warning"
    k.waits("name", "tags")
    assert k.node_of("before")
    k.configure(**{"queues.yaml": LARGER})
    k.pod("again", app=f"{k.name}-again" + "n" * 20)
    k.bound("again")


@CASES(
    "11",
    "a queue configuration by --config",
    "the ConfigMap has another one",
    "that of the option counts, and settings do",
)
def _(k: Place) -> None:
    file = k.plane.folder / f"{k.name}.yaml"
    file.write_text(LARGER)
    k.alone({"service.placeholderImage": "example.com/own:1"}, "--config", str(file))
    assert small_max(k) == {"vcore": 2000}
    k.configure(**{"queues.yaml": QUEUES, "event.trackingEnabled": "false"})
    comes(lambda: k.licorne.rest.get("/ws/v1/events/batch").status_code == 500, told=k.told)
    assert small_max(k) == {"vcore": 2000}


@CASES("11", "health.checkInterval: 0", "it becomes 1s, and 0 again", "health is checked, and is not")
def _(k: Place) -> None:
    off = {"health.checkInterval": "0"}
    k.alone(off)
    assert k.licorne.ask(HEALTH) is None
    k.configure(**{"queues.yaml": QUEUES, "health.checkInterval": "1s"})
    comes(lambda: k.licorne.ask(HEALTH), told=k.told)
    assert k.licorne.ask(HEALTH)["Healthy"] is True
    k.configure(**{"queues.yaml": QUEUES, **off})
    comes(lambda: k.licorne.ask(HEALTH) is None, told=k.told)
    time.sleep(2.0)
    assert k.licorne.ask(HEALTH) is None
