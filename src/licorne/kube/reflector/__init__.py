"""A copy of a collection of Kubernetes objects, which follows every change.

    client = Client(Access.load())
    reflector = Reflector(client, NODES, handler)
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    print(len(reflector.store))

It needs `licorne.kube.api` and `licorne.kube.objects` alone. docs/understand/reflector.md says what it promises.
"""

from __future__ import annotations

from .reflector import Handler, Reflector

__all__ = ["Handler", "Reflector"]
