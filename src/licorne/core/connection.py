"""One registered resource manager as the API knows it: its callback, plugins and dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cython

from licorne.si import adapt_seed, adapt_v19
from licorne.si.callback import ResourceManagerCallback
from licorne.si.messages import Output

from .plugins import Plugins

_METHODS = {
    "update": "recv_update_response",
    "allocation": "update_allocation",
    "application": "update_application",
    "node": "update_node",
    "state": "update_container_scheduling_state",
}
"""What a callback is told with what, by the kinds of responses of the adapters."""


@cython.cclass
class Connection:
    """A callback, the plugins that it offers, and what the registration said."""

    rm_id: str
    callback: ResourceManagerCallback | None
    plugins: Plugins
    policy_group: str
    extra: dict[str, str]
    seed_dialect: cython.bint
    _responses: Callable[..., Any]

    def __init__(
        self,
        rm_id: str,
        callback: ResourceManagerCallback | None,
        plugins: Plugins,
        policy_group: str,
        extra: Mapping[str, str],
        *,
        seed_dialect: bool,
    ) -> None:
        self.rm_id = rm_id
        self.callback = callback
        self.plugins = plugins
        self.policy_group = policy_group
        self.extra = dict(extra)
        self.seed_dialect = seed_dialect
        self._responses = adapt_seed.responses if seed_dialect else adapt_v19.responses

    @cython.ccall
    def call_back(self, outputs: list[Output], note: Callable[[Exception], None]) -> cython.void:
        """Tell the resource manager what the core has to say; errors of its callback are noted, and change nothing."""
        if self.callback is None:
            return
        for kind, response in self._responses(outputs, self.rm_id):
            try:
                getattr(self.callback, _METHODS[kind])(response)
            except Exception as error:  # noqa: BLE001  a callback's error changes nothing here
                note(error)
