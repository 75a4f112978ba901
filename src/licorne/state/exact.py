"""A scheduler from its checkpoint, which a state dump may have: the very scheduler, with nothing assumed."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from licorne._bounded import CHECKPOINT_BYTES, few_containers, unpacked
from licorne.config import load
from licorne.core.api import SchedulerAPI
from licorne.core.checkpoint import CheckpointError
from licorne.core.checkpoint.restore import read_peers
from licorne.si import v19
from licorne.si.rest_objects import ExactState
from licorne.state.recording.replay import Callback, callbacks
from licorne.state.restored import Note, Outputs, Restored

VERSION: Final = 1


def restore_exactly(exact: ExactState, config: str | None = None) -> Restored:
    """Return the scheduler of which a dump was made. `config`: a queue configuration in place of its own.

    Raises:
        CheckpointError: the checkpoint cannot be used here.
        ConfigError: the configuration cannot be used.
    """
    if exact.version > VERSION:
        raise CheckpointError(
            f"version {exact.version}, of licorne {exact.licorne}: use licorne {exact.licorne} or newer"
        )
    return restore_checkpoint(_unpacked(exact.checkpoint), config, check=True)


def restore_checkpoint(data: bytes, config: str | None = None, *, check: bool) -> Restored:
    """Return the scheduler of a checkpoint. `check`: it comes from elsewhere, so that every invariant is looked at.

    Raises:
        CheckpointError: the checkpoint cannot be used here, or no resource manager was registered.
        ConfigError: the configuration cannot be used.
    """
    if config is not None:
        load(config)
    peers = read_peers(data)
    if not peers:
        raise CheckpointError("no resource manager was registered when it was made")
    outputs = Outputs()
    api = SchedulerAPI(other_settings=True, on_incident=lambda _: None, on_output=outputs)
    managers = callbacks(peers, lambda: True)
    api.restore_checkpoint(data, managers, check=check)
    now_ns = api.cluster.now
    if config is not None:
        request = v19.UpdateConfigurationRequest(rm_id=min(managers), config=config)
        api.update_configuration(request, now_ns=now_ns)
    return starting_point(api, dict(sorted(managers.items())), now_ns, outputs)


def starting_point(
    api: SchedulerAPI, managers: Mapping[str, Callback], now_ns: int, outputs: Outputs, remark: str = ""
) -> Restored:
    """Return a scheduler as a starting point for answers about the first of its resource managers, with its notes.

    `remark`: what else was left out, in words; empty if nothing was.
    """
    rm_id, *others = managers
    notes = [Note("left out", "another resource manager", 1, (other,)) for other in others]
    if remark:
        notes.append(Note("left out", remark))
    if any(each.asked for each in managers.values()):
        notes.append(Note("assumed", "predicates of the resource manager allow everything from here on"))
    text = api.cluster.managers[rm_id].configuration.text
    return Restored(api, rm_id, now_ns, text, tuple(notes), outputs)


def _unpacked(text: str) -> bytes:
    try:
        return few_containers(unpacked(base64.b64decode(text, validate=True), CHECKPOINT_BYTES))
    except ValueError as error:  # of Base64 too
        raise CheckpointError(f"damaged: {error}") from None
