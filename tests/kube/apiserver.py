"""A Kubernetes API server that is played: lists, streams, watches, bindings, and everything that goes wrong with them.

It has the rules that a scheduler relies on: versions that only grow, one binding for each pod, preconditions on UIDs,
watches that expire. `Trouble` says how often what goes wrong. All times are those of the running loop.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from licorne.kube.api import ApiError, Client, ExpiredError, Kind, Page, Requests, UnansweredError, WatchEvent
from licorne.kube.api.kinds import CLAIMS, POD_GROUPS, PODS, RESOURCE_CLAIMS, VOLUMES
from licorne.kube.objects import KubernetesObject, Lease, Pod, PodGroup, ResourceClaim
from licorne.kube.objects.groups import GroupCondition, PodGroupStatus
from licorne.kube.objects.pods import Condition
from licorne.kube.pods.extended import ANNOTATION, FINALIZER

T = TypeVar("T", bound=KubernetesObject)
BOOKMARK_S = 60.0
EPOCH_S = 1_767_225_600
"""The time in seconds since 1970 at which the loop's time is 0."""
TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
NAMES = {kind.plural: kind.name for kind in (CLAIMS, VOLUMES, RESOURCE_CLAIMS, PODS)}
STALE_CHANGES = 20
"""A cache that answers from an older state lacks so many changes at most."""
STALE_S = 10.0
"""A watch of a cache that is behind tells of each change so much later at most."""


class Event(NamedTuple):
    """A change of an object."""

    version: int
    plural: str
    old: KubernetesObject | None
    new: KubernetesObject | None
    at: float
    """When it happened, as the loop has it."""


class Trouble(msgspec.Struct):
    """How often what goes wrong, as shares of the calls, and how slow things are."""

    refused: float = 0.0
    """Calls that end with 429, 500 or 503, without effect."""
    denied: float = 0.0
    """Bindings that an admission plugin denies for good, without effect."""
    lost: float = 0.0
    """Calls of which only the answer is lost."""
    unsent: float = 0.0
    """Calls that never arrive."""
    cut: float = 0.0
    """Batches of a watch after which the connection breaks off."""
    late_s: float = 0.0
    """How long a call, or a batch of a watch, takes on average."""
    forgets: float = 0.0
    """Changes after which the server forgets the history, so that watches of before expire."""
    stale: float = 0.0
    """Reads that a cache answers which is behind the store, as that of one among several API servers may be.

    Lists and streamed lists lack the last changes, unless the newest state was asked for. Watches tell of each change
    seconds late, own writes that were answered long before included.
    """
    no_streams: bool = False
    """Whether the server does not know streamed lists."""


def calm() -> Trouble:
    """Return that nothing goes wrong."""
    return Trouble()


class Server:
    """The objects, their versions, and the history of changes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.version = 1
        self.trouble = calm()
        self.objects: dict[str, dict[tuple[str, str], KubernetesObject]] = {}
        self.history: list[Event] = []
        self.forgotten = 0
        """Versions up to this one are no longer known."""
        self.on_bind: Callable[[Pod, str], None] = lambda _pod, _node: None
        self.on_delete: Callable[[Pod], None] = lambda _pod: None
        """Called when a client deletes a pod, before that takes effect."""
        self.on_create: Callable[[], None] = lambda: None
        """Called when a client creates a pod, before that takes effect."""
        self.writes: dict[str, int] = {}
        self.tries_to_tell: dict[str, int] = {}
        """How often a victim was to be told why it goes, by its UID; also requests that failed."""
        self.events: list[dict[str, Any]] = []
        self.dropped: set[str] = set()
        """Fields of the status of objects that it does not keep."""
        self.late_kind = ""
        """The plural of a kind whose watches tell of each change `STALE_S` later."""
        self.lease: Lease | None = None
        self._lease_dice = random.Random(1)  # so that schedules are the same with a lease and without
        self._news = asyncio.Event()

    # -- what others do to the objects --------------------------------------------------------------------------

    def put(self, plural: str, new: T) -> T:
        """Store an object, new or changed."""
        self.version += 1
        stored = msgspec.structs.replace(
            new, metadata=msgspec.structs.replace(new.metadata, resource_version=str(self.version))
        )
        key = new.metadata.namespace, new.metadata.name
        of_kind = self.objects.setdefault(plural, {})
        self._record(plural, of_kind.get(key), stored)
        of_kind[key] = stored
        return stored

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """Remove an object, if it is there."""
        old = self.objects.get(plural, {}).pop((namespace, name), None)
        if old is not None:
            self.version += 1
            self._record(plural, old, None)

    def pods(self) -> list[Pod]:
        """Return all pods."""
        return [pod for pod in self.objects.get("pods", {}).values() if isinstance(pod, Pod)]

    def _record(self, plural: str, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        self.history.append(Event(self.version, plural, old, new, _now()))
        if self.rng.random() < self.trouble.forgets:
            self.forgotten = self.version
            self.history.clear()
        news, self._news = self._news, asyncio.Event()
        news.set()

    def listed(self, plural: str, *, cached: bool) -> tuple[list[KubernetesObject], int, float]:
        """Return the objects of a kind, their version, and of when they are; `cached`: as a cache has them, which may be behind."""
        objects = dict(self.objects.get(plural, {}))
        missed: list[Event] = []
        if cached and self.history and self.rng.random() < self.trouble.stale:
            missed = self.history[-self.rng.randrange(1, STALE_CHANGES + 1) :]
        for event in reversed(missed):
            either = event.old or event.new
            if event.plural == plural and either is not None:
                key = either.metadata.namespace, either.metadata.name
                if event.old is None:
                    del objects[key]
                else:
                    objects[key] = event.old
        at = missed[0].at if missed else _now()
        return list(objects.values()), missed[0].version - 1 if missed else self.version, at

    # -- calls --------------------------------------------------------------------------------------------------

    async def trouble_before(self, *, of_lease: bool = False) -> None:
        """Let what goes wrong before a call has any effect go wrong; calls of a lease are not late."""
        rng = self._lease_dice if of_lease else self.rng
        if not of_lease:
            await self._late()
        what = rng.random()
        if what < self.trouble.unsent:
            raise UnansweredError("the connection broke off")
        if what < self.trouble.unsent + self.trouble.refused:
            status = rng.choice((429, 500, 503))
            raise ApiError(status, "", "try again later", 1.0 if status == 429 else None)

    async def trouble_after(self) -> None:
        """Let the answer be lost."""
        await self._late()
        if self.rng.random() < self.trouble.lost:
            raise UnansweredError("the connection broke off")

    async def lease_answered(self) -> None:
        """Let the answer to a write of a lease be lost."""
        if self._lease_dice.random() < self.trouble.lost:
            raise UnansweredError("the connection broke off")

    async def _late(self) -> None:
        if self.trouble.late_s:
            await asyncio.sleep(self.rng.expovariate(1 / self.trouble.late_s))

    async def news(self, timeout_s: float) -> None:
        """Wait for the next change, or for the timeout."""
        waiting = self._news
        try:
            async with asyncio.timeout(timeout_s):
                await waiting.wait()
        except TimeoutError:
            pass


class FakeClient(Client):
    """A client of the played server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.requests = Requests()
        self.read_at: dict[str, float] = {}
        """Of when the state is that was last listed, by the plural of its kind."""
        self.lease_cut = False
        """Whether no call of a lease arrives."""
        self.on_write: Callable[[str], None] = lambda _what: None
        """Called when a request that writes is sent, before it arrives."""
        self.sent = 0
        """How many such requests there were, but for those that tell a victim, which are a part of its eviction."""

    # -- reading

    async def list_page(
        self, kind: Kind[T], *, limit: int = 1000, next_page: str = "", newest: bool = False
    ) -> Page[T]:
        """Return a page of a list; a later page has the objects of the version of the first.

        Unless the newest state is asked for, a cache may answer, with the whole list at once.
        """
        server = self.server
        await server.trouble_before()
        start, end = 0, min(limit, 7)  # several pages even of short lists
        if not next_page:
            found, version, self.read_at[kind.plural] = server.listed(kind.plural, cached=not newest)
            end = end if newest else len(found)
        else:
            start, version = (int(part) for part in next_page.split("-"))
            end += start
            if version != server.version:
                raise ExpiredError(410, "Expired", "the continue token is too old")
            found = list(server.objects.get(kind.plural, {}).values())
        objects = sorted(_selected(kind, found), key=lambda one: (one.metadata.namespace, one.metadata.name))
        await server.trouble_after()
        following = f"{end}-{version}" if end < len(objects) else ""
        return Page(objects[start:end], str(version), following, [])

    async def watch(
        self, kind: Kind[T], version: str = "", *, initial: bool = False, timeout_s: float = 300.0
    ) -> AsyncGenerator[list[WatchEvent[T]]]:
        """Yield changes. With `initial`, version "0" is what a cache has, and "" the newest state."""
        server = self.server
        await server.trouble_before()
        ends = asyncio.get_running_loop().time() + timeout_s
        late_s = server.rng.uniform(0.0, STALE_S) if server.rng.random() < server.trouble.stale else 0.0
        late_s = STALE_S if kind.plural == server.late_kind else late_s
        at = int(version or 0)
        if initial:
            if server.trouble.no_streams:
                raise ApiError(422, "Invalid", "sendInitialEvents is forbidden for watch")
            found, at, self.read_at[kind.plural] = server.listed(kind.plural, cached=version == "0")
            objects = _selected(kind, found)
            server.rng.shuffle(objects)
            cut = server.rng.randrange(len(objects) + 1)
            yield [WatchEvent("ADDED", one, one.metadata.resource_version) for one in objects[:cut]]
            await self._maybe_cut()
            yield [
                *(WatchEvent("ADDED", one, one.metadata.resource_version) for one in objects[cut:]),
                WatchEvent("BOOKMARK", None, str(at), end_of_list=True),
            ]
        while (now := asyncio.get_running_loop().time()) < ends:
            if at < server.forgotten:
                raise ExpiredError(410, "Expired", "too old resource version")
            batch = server.history[bisect_right(server.history, at, key=lambda event: event.version) :]
            if not batch:
                await server.news(BOOKMARK_S)
                if server.version == at:
                    yield [WatchEvent("BOOKMARK", None, str(at))]
                continue
            if batch[0].at + late_s > now:
                await asyncio.sleep(max(batch[0].at + late_s - now, 0.001))
                continue
            batch = [event for event in batch if event.at + late_s <= now][: server.rng.randrange(1, 20)]
            at = batch[-1].version
            told = [told for event in batch if (told := self._told(kind, event)) is not None]
            await self._maybe_cut()
            if told:
                yield told

    async def _maybe_cut(self) -> None:
        await self.server.trouble_before()
        if self.server.rng.random() < self.server.trouble.cut:
            raise UnansweredError("the watch broke off")

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        """Return one object."""
        if kind.plural == "leases":
            await self._lease_trouble()
            if self.server.lease is None:
                raise ApiError(404, "NotFound", "there is no lease")
            assert isinstance(self.server.lease, kind.type)
            return self.server.lease
        await self.server.trouble_before()
        found = self.server.objects.get(kind.plural, {}).get((namespace, name))
        if found is None:
            raise ApiError(404, "NotFound", f"{kind.name} {name} not found")
        assert isinstance(found, kind.type)
        return found

    @staticmethod
    def _told(kind: Kind[T], event: Event) -> WatchEvent[T] | None:
        version, plural, old, new, _ = event
        if plural != kind.plural:
            return None
        was = old is not None and _is_selected(kind, old)
        if new is not None and _is_selected(kind, new):
            assert isinstance(new, kind.type)
            return WatchEvent("MODIFIED" if was else "ADDED", new, str(version))
        if was:
            gone: Any = old
            meta = msgspec.structs.replace(gone.metadata, resource_version=str(version))
            return WatchEvent("DELETED", msgspec.structs.replace(gone, metadata=meta), str(version))
        return None

    # -- writing

    def _count(self, what: str) -> None:
        self.on_write(what)
        self.sent += 1
        self.server.writes[what] = self.server.writes.get(what, 0) + 1

    def _pod(self, namespace: str, name: str) -> Pod:
        pod = self.server.objects.get("pods", {}).get((namespace, name))
        if not isinstance(pod, Pod):
            raise ApiError(404, "NotFound", f"pods {name} not found")
        return pod

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Bind a pod, by the rules of the API server."""
        with self.requests.write():
            await self._bind(namespace, name, uid, node)

    async def _bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        self._count("bind")
        await self.server.trouble_before()
        if self.server.rng.random() < self.server.trouble.denied:
            raise ApiError(403, "Forbidden", "denied by a plugin")
        pod = self._pod(namespace, name)
        if pod.metadata.uid != uid:
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        if pod.spec.node_name:
            raise ApiError(409, "Conflict", f"pod {name} is already assigned to node {pod.spec.node_name}")
        if pod.metadata.deletion_timestamp:
            raise ApiError(409, "Conflict", f"pod {name} is being deleted, cannot be assigned to a host")
        if pod.spec.scheduling_gates:
            raise ApiError(409, "Conflict", f"pod {name} has non-empty .spec.schedulingGates")
        self.server.on_bind(pod, node)
        given = {one.type: one for one in pod.status.conditions or ()}
        given["PodScheduled"] = Condition("PodScheduled", "True")
        status = msgspec.structs.replace(pod.status, conditions=tuple(given.values()), nominated_node_name="")
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        labels = (pod.metadata.labels or {}) | self._topology(node)
        meta = msgspec.structs.replace(pod.metadata, labels=labels)
        self.server.put("pods", msgspec.structs.replace(pod, metadata=meta, spec=spec, status=status))
        await self.server.trouble_after()

    def _topology(self, node: str) -> dict[str, str]:
        """Return the labels that a pod gets with its node, as the admission plugin PodTopologyLabels gives them."""
        found = self.server.objects.get("nodes", {}).get(("", node))
        labels = (found.metadata.labels or {}) if found is not None else {}
        return {name: value for name, value in labels.items() if name in TOPOLOGY}

    async def delete_pod(self, namespace: str, name: str, uid: str, grace_s: int | None = None) -> None:
        """Delete a pod: one that runs ends when its kubelet says so."""
        self._count("delete")
        await self.server.trouble_before()
        pod = self._pod(namespace, name)
        if pod.metadata.uid != uid:
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        self.server.on_delete(pod)
        if pod.spec.node_name and grace_s != 0:
            meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            self.server.put("pods", msgspec.structs.replace(pod, metadata=meta))
        else:
            self.server.remove("pods", namespace, name)
        await self.server.trouble_after()

    async def patch_status(
        self, kind: Kind[Any], namespace: str, name: str, uid: str, status: dict[str, Any], version: str = ""
    ) -> None:
        """Change phase, conditions, or the nominated node of a pod, or the conditions of a pod group."""
        self._count("status")
        change = self._patch_group if kind is POD_GROUPS else self._patch_pod
        await change(namespace, name, uid, status, version)

    async def _patch_pod(self, namespace: str, name: str, uid: str, status: dict[str, Any], version: str) -> None:
        if any(one["type"] == "DisruptionTarget" for one in status.get("conditions", ())):
            self.server.tries_to_tell[uid] = self.server.tries_to_tell.get(uid, 0) + 1
            self.sent -= 1
        await self.server.trouble_before()
        pod = self._pod(namespace, name)
        if pod.metadata.uid != uid:
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        if version and pod.metadata.resource_version != version:
            raise ApiError(409, "Conflict", "the object has been modified")
        given = {one.type: one for one in pod.status.conditions or ()}
        for one in status.get("conditions", ()):
            assert not (pod.spec.node_name and one["type"] == "PodScheduled"), (
                f"{name} is told that it waits, and is bound"
            )
            given[one["type"]] = Condition(one["type"], one["status"], one["reason"], one["message"])
        changed = msgspec.structs.replace(
            pod.status,
            phase=status.get("phase", pod.status.phase),
            conditions=tuple(given.values()),
            nominated_node_name=status.get("nominatedNodeName", pod.status.nominated_node_name) or "",
        )
        self.server.put("pods", msgspec.structs.replace(pod, status=changed))
        await self.server.trouble_after()

    async def _patch_group(self, namespace: str, name: str, uid: str, status: dict[str, Any], version: str) -> None:
        await self.server.trouble_before()
        group = self.server.objects.get("podgroups", {}).get((namespace, name))
        if not isinstance(group, PodGroup):
            raise ApiError(404, "NotFound", f"podgroups {name} not found")
        if (group.metadata.uid, group.metadata.resource_version) != (uid, version):
            raise ApiError(409, "Conflict", "the object has been modified")
        given = {one.type: one for one in group.status.conditions or ()}
        told = {one["type"]: msgspec.convert(one, GroupCondition) for one in status["conditions"]}
        for name_, one in told.items():
            before = given.get(name_)
            assert before is None or before.status != "True", f"pod group {name} is scheduled, and told {one}"
        conditions = tuple((given | told).values())
        self.server.put("podgroups", msgspec.structs.replace(group, status=PodGroupStatus(conditions)))
        await self.server.trouble_after()

    async def create(self, path: str, body: dict[str, Any]) -> None:
        """Create a pod, an event or a lease. Fails if the body cannot be sent."""
        msgspec.json.encode(body)
        if path.endswith("/leases"):
            await self._write_lease(msgspec.convert(body, Lease), "")
            return
        self._count("volume" if path.endswith("/resourceclaims") else "create")
        await self.server.trouble_before()
        if path.endswith("/events"):
            if any(one["metadata"]["name"] == body["metadata"]["name"] for one in self.server.events):
                raise ApiError(409, "AlreadyExists", "there is one already")
            self.server.events.append(body)
        elif path.endswith("/resourceclaims"):
            meta = body["metadata"]
            if (meta["namespace"], meta["name"]) in self.server.objects.get("resourceclaims", {}):
                raise ApiError(409, "AlreadyExists", "there is one already")
            claim = msgspec.convert(body, ResourceClaim)
            claim.metadata.uid = f"uid-{self.server.version}-{meta['name']}"
            self.server.put("resourceclaims", claim)
        else:
            meta = body["metadata"]
            if (meta["namespace"], meta["name"]) in self.server.objects.get("pods", {}):
                raise ApiError(409, "AlreadyExists", "there is one already")
            self.server.on_create()
            try:
                made = msgspec.convert(body, Pod, strict=False)
            except msgspec.ValidationError as error:
                raise ApiError(400, "BadRequest", str(error)) from None
            made.metadata.uid = f"uid-{self.server.version}-{meta['name']}"
            made.status.phase = "Pending"
            created = datetime.fromtimestamp(EPOCH_S + _now(), UTC)
            made.metadata.creation_timestamp = created.strftime("%Y-%m-%dT%H:%M:%SZ")
            self.server.put("pods", made)
        await self.server.trouble_after()

    async def patch(self, path: str, body: dict[str, Any]) -> bytes:
        """Change fields of an event, a lease, a claim or a volume, or the status of a pod; return the object."""
        if "/leases/" in path:
            now = msgspec.to_builtins(self.server.lease) if self.server.lease is not None else {"metadata": {}}
            spec = {name: value for name, value in (now.get("spec", {}) | body["spec"]).items() if value is not None}
            await self._write_lease(msgspec.convert({**now, "spec": spec}, Lease), body["metadata"]["resourceVersion"])
            return b""
        *place, plural, name = path.removesuffix("/status").split("/")
        if plural in ("persistentvolumeclaims", "persistentvolumes", "resourceclaims", "pods"):
            return await self._patch_object(plural, place[-1] if "namespaces" in place else "", name, body)
        self._count("patch")
        await self.server.trouble_before()
        found = [one for one in self.server.events if one["metadata"]["name"] == path.rpartition("/")[2]]
        if not found:
            raise ApiError(404, "NotFound", "there is none")
        found[0].update(body)
        await self.server.trouble_after()
        return b""

    async def _patch_object(self, plural: str, namespace: str, name: str, body: dict[str, Any]) -> bytes:
        self._count("volume")
        await self.server.trouble_before()
        found = self.server.objects.get(plural, {}).get((namespace, name))
        if found is None:
            raise ApiError(404, "NotFound", f"{plural} {name} not found")
        meta = found.metadata
        if body["metadata"].get("resourceVersion", meta.resource_version) != meta.resource_version:
            raise ApiError(409, "Conflict", "the object has been modified")
        if body["metadata"].get("uid", meta.uid) != meta.uid:
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        for field in self.server.dropped:
            body.get("status", {}).pop(field, None)
        changed = msgspec.convert(_merged(msgspec.to_builtins(found), body), type(found))
        if isinstance(changed, ResourceClaim) and isinstance(found, ResourceClaim):
            was, now = found.status, changed.status
            if (now.reserved_for and not now.allocation) or (
                was.allocation and now.allocation not in (None, was.allocation)
            ):
                raise ApiError(
                    422, "Invalid", "a claim without devices is reserved for nobody, and keeps those that it has"
                )
            if now.allocation and ANNOTATION not in (changed.metadata.annotations or {}):
                assert FINALIZER in (changed.metadata.finalizers or ()), f"{name} has devices, and may be removed"
            results = () if was.allocation or now.allocation is None else now.allocation.devices.results or ()
            for one in results:  # amounts in the way of the server
                given = one.consumed_capacity or {}
                one.consumed_capacity = {name: f"{value}000m" for name, value in given.items()} or None
        if isinstance(changed, ResourceClaim) and meta.deletion_timestamp and not changed.metadata.finalizers:
            self.server.remove(plural, namespace, name)
        else:
            changed = found if changed == found else self.server.put(plural, changed)
        await self.server.trouble_after()
        return msgspec.json.encode({"kind": NAMES[plural], **msgspec.to_builtins(changed)})

    async def delete(self, path: str, uid: str, grace_s: int | None = None) -> None:
        """Delete a claim of devices; one with finalizers is only marked."""
        del grace_s
        self._count("volume")
        await self.server.trouble_before()
        *place, plural, name = path.split("/")
        found = self.server.objects.get(plural, {}).get((place[-1], name))
        if not isinstance(found, ResourceClaim):
            raise ApiError(404, "NotFound", f"{plural} {name} not found")
        if found.metadata.uid != uid:
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        if found.metadata.finalizers:
            meta = msgspec.structs.replace(found.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            self.server.put(plural, msgspec.structs.replace(found, metadata=meta))
        else:
            self.server.remove(plural, place[-1], name)
        await self.server.trouble_after()

    async def _lease_trouble(self) -> None:
        if self.lease_cut:
            raise UnansweredError("the connection broke off")
        await self.server.trouble_before(of_lease=True)

    async def _write_lease(self, new: Lease, version: str) -> None:
        """Store a lease in place of one of this version; "": of none."""
        server = self.server
        await self._lease_trouble()
        known = server.lease
        if version != ("" if known is None else known.metadata.resource_version):
            raise ApiError(409, "Conflict", "the object has been modified")
        meta = msgspec.structs.replace(new.metadata, resource_version=str(int(version or 0) + 1))
        server.lease = msgspec.structs.replace(new, metadata=meta)
        await server.lease_answered()


def _merged(known: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object with a merge patch applied, which deletes nothing."""
    both = {
        name: _merged(known[name], more) for name, more in change.items() if isinstance(more, dict) and name in known
    }
    return {**known, **change, **both}


def _now() -> float:
    """Return the time of the loop; what is stored before it runs was there from the beginning."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0


def _selected(kind: Kind[T], objects: list[KubernetesObject]) -> list[T]:
    return [one for one in objects if isinstance(one, kind.type) and _is_selected(kind, one)]


def _is_selected(kind: Kind[Any], one: KubernetesObject) -> bool:
    name = kind.fields.removeprefix("metadata.name=")
    if name != kind.fields:
        return one.metadata.name == name and (not kind.namespace or one.metadata.namespace == kind.namespace)
    return not (kind.fields and isinstance(one, Pod) and one.status.phase in ("Succeeded", "Failed"))
