"""The API server that a workload is played on: requests, and what a watch shows of pods."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
import time
from pathlib import Path
from typing import Any, Self

import aiohttp
import msgspec
import yaml
from gotemplate import render

CREATORS = 30
"""Requests at once, as in scheduler_perf."""
ATTEMPTS = 5
Item = dict[str, Any]


class FailedError(Exception):
    """The workload could not be played to its end."""


class Pod:
    """What is known of a pod: times of its creation and binding, whether it was tried, why it waits, whether it is gone."""

    def __init__(self) -> None:
        self.space = self.name = self.why = ""
        self.labels: dict[str, str] = {}
        self.created = self.bound = 0.0
        self.tried = self.gone = False


@functools.lru_cache(maxsize=1000)
def _parsed(text: str) -> str:
    return json.dumps(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # noqa: S506


def from_template(path: Path, values: dict[str, object]) -> Item:
    """Return the object that a template makes."""
    item: Item = json.loads(_parsed(render(path.read_text(encoding="utf-8"), values)))
    return item


class Cluster:
    """An API server, and its pods by uid. `changed` is set by each event of a pod."""

    def __init__(self, port: int, run: Path) -> None:
        tls = ssl.create_default_context(cafile=run / "pki" / "ca.crt")
        self._session = aiohttp.ClientSession(
            f"https://127.0.0.1:{port}",
            headers={"Authorization": "Bearer admin-token"},
            connector=aiohttp.TCPConnector(ssl=tls, limit=2 * CREATORS),
            read_bufsize=1 << 20,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}
        self.pods: dict[str, Pod] = {}
        self.changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: object = None, *, ok: int = 0) -> Item:
        """Send one request, again while the API server is busy. `ok` is a status that is no failure."""
        for attempt in range(ATTEMPTS):
            async with self._session.request(method, path, json=body) as answer:
                text = await answer.text()
                if answer.status in (200, 201, 202, ok):
                    found: Item = json.loads(text)
                    return found
                again = answer.status in (409, 429, 500, 503, 504) and "AlreadyExists" not in text
                if not again or attempt == ATTEMPTS - 1:
                    raise FailedError(f"{method} {path}: {answer.status} {text[:400]}")
            await asyncio.sleep(0.1 * 2**attempt)
        raise AssertionError

    async def path(self, item: Item, space: str) -> str:
        """Return where objects of this kind are."""
        group, kind = item["apiVersion"], item["kind"]
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        if (group, kind) not in self._kinds:
            for resource in (await self.call("GET", root))["resources"]:
                if "/" not in resource["name"]:
                    self._kinds[group, resource["kind"]] = resource["name"], resource["namespaced"]
        plural, namespaced = self._kinds[group, kind]
        return f"{root}/namespaces/{space or 'default'}/{plural}" if namespaced else f"{root}/{plural}"

    async def create(self, item: Item, space: str = "") -> Item:
        """Create an object."""
        began = time.monotonic()
        made = await self.call("POST", await self.path(item, space), item)
        if item["kind"] == "Pod":
            self.pods.setdefault(made["metadata"]["uid"], Pod()).created = began
        return made

    async def namespace(self, name: str, item: Item | None = None) -> None:
        """Create a namespace if there is none of the name."""
        made = {"apiVersion": "v1", "kind": "Namespace", **(item or {})}
        made["metadata"] = {**made.get("metadata", {}), "name": name}
        await self.call("POST", "/api/v1/namespaces", made, ok=409)

    async def watch(self, version: str) -> None:
        """Follow all pods."""
        while True:
            url = f"/api/v1/pods?watch=1&resourceVersion={version}&allowWatchBookmarks=true"
            async with self._session.get(url) as answer:
                async for line in answer.content:
                    event, now = msgspec.json.decode(line), time.monotonic()
                    if event["type"] == "ERROR":
                        raise FailedError(f"watch: {line[:300].decode()}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._note(event["object"], now, gone=event["type"] == "DELETED")

    def _note(self, item: Item, now: float, *, gone: bool) -> None:
        meta = item["metadata"]
        pod = self.pods.setdefault(meta["uid"], Pod())
        pod.space, pod.name, pod.labels, pod.gone = meta["namespace"], meta["name"], meta.get("labels", {}), gone
        for condition in item["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled":
                pod.tried, pod.why = True, condition.get("message", "")
        if item["spec"].get("nodeName") and not pod.bound:
            pod.bound = now
        self.changed.set()
