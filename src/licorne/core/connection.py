"""The API's view of one registered resource manager: its callback, its plugins and its dialect.

Compiled, because every decision is delivered here; `licorne.core.manager` is the cluster's view of the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from licorne._plain import cython
from licorne.si import adapt_first
from licorne.si.adapt_v19 import other_responses
from licorne.si.callback import ResourceManagerCallback
from licorne.si.decisions import responses_v19
from licorne.si.messages import Output, RejectedAllocation, RejectedApplication, RejectedNode

from .incidents import Incidents
from .plugins import Plugins

_METHODS = {
    "update": "recv_update_response",
    "application": "update_application",
    "node": "update_node",
    "state": "update_container_scheduling_state",
}
"""The callback's method for each kind of response of the adapters; allocations, the common kind, have a direct call."""
_REFUSALS = (RejectedAllocation, RejectedApplication, RejectedNode)


@cython.cclass
class ManagerConnection:
    """A callback, the plugins that it offers, and the policy group and settings of the registration."""

    rm_id: str
    callback: ResourceManagerCallback | None
    plugins: Plugins
    policy_group: str
    extra: dict[str, str]
    first_interface: cython.bint
    _incidents: Incidents

    def __init__(
        self,
        rm_id: str,
        callback: ResourceManagerCallback | None,
        plugins: Plugins,
        policy_group: str,
        extra: Mapping[str, str],
        incidents: Incidents,
        *,
        first_interface: bool,
    ) -> None:
        """Keep what was registered; `incidents` takes exceptions of the callback and refusals that it does not take."""
        self.rm_id = rm_id
        self.callback = callback
        self.plugins = plugins
        self.policy_group = policy_group
        self.extra = dict(extra)
        self.first_interface = first_interface
        self._incidents = incidents

    @cython.ccall
    def call_back(self, outputs: list[Output]) -> cython.void:
        """Deliver outputs to the callback in its dialect; an exception of the callback becomes an incident."""
        callback: Any = self.callback
        responses: Iterable[Any]
        response: Any
        if callback is None:  # refusals reach the host as incidents even without a callback
            outputs = [output for output in outputs if type(output) in _REFUSALS]
            if not outputs:
                return
        if self.first_interface:
            responses = adapt_first.responses(outputs, self.rm_id)
        else:
            responses = responses_v19(outputs, self.rm_id, other_responses)
        for kind, response in responses:
            if callback is None or kind != "allocation" or response.rejected_allocations:
                method = _METHODS.get(kind, "update_allocation")
                self._incidents.deliver(self.rm_id, callback, method, response)
                continue
            try:  # the common case; calling the method by its name saves making a bound method
                callback.update_allocation(response)
            except Exception as error:  # noqa: BLE001  a callback's error changes nothing here
                self._incidents.failed(self.rm_id, "update_allocation", error)
