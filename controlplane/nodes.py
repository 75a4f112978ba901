"""`python nodes.py N`: make nodes for kwok until there are N, and wait until all are ready.

The API server is that of `up.sh`: RUN and PORT of the environment say where. Nodes have 32 cores, 256 GiB, room for 110
pods, and are spread over three zones.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from typing import Any

import aiohttp

TIMEOUT_S = 120.0
AT_ONCE = 16


def node(number: int) -> dict[str, Any]:
    """Return the object of one node."""
    name = f"kwok-{number:05d}"
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    labels = {
        "type": "kwok",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"z{number % 3}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


async def read_nodes(session: aiohttp.ClientSession) -> dict[str, bool]:
    """Return the name of every node, and whether it is ready."""
    async with session.get("/api/v1/nodes") as response:
        response.raise_for_status()
        items = (await response.json())["items"]
    return {
        item["metadata"]["name"]: any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in item.get("status", {}).get("conditions", ())
        )
        for item in items
    }


async def make(count: int) -> None:
    """Make the missing nodes, and wait until all are ready."""
    run, port = os.environ["RUN"], os.environ["PORT"]
    context = ssl.create_default_context(cafile=f"{run}/pki/ca.crt")
    async with aiohttp.ClientSession(
        f"https://127.0.0.1:{port}",
        connector=aiohttp.TCPConnector(ssl=context),
        headers={"Authorization": "Bearer admin-token", "Content-Type": "application/json"},
    ) as session:
        present = await read_nodes(session)
        missing = iter([made for made in map(node, range(count)) if made["metadata"]["name"] not in present])

        async def work() -> None:
            for made in missing:
                async with session.post("/api/v1/nodes", data=json.dumps(made)) as response:
                    response.raise_for_status()

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        async with asyncio.timeout(TIMEOUT_S):
            while sum((await read_nodes(session)).values()) < count:  # noqa: ASYNC110  kwok makes them ready
                await asyncio.sleep(0.3)


if __name__ == "__main__":
    try:
        asyncio.run(make(int(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit(130)
    except TimeoutError:
        sys.exit(f"Not all nodes were ready within {TIMEOUT_S:.0f} s: see $RUN/log/kwok.log")
