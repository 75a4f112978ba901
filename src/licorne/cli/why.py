"""`licorne why`: why an ask, an application, or everything that waits does not run, and what would let it run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from licorne.answers import Home
from licorne.answers import why as why_of
from licorne.answers.why import AskAnswer
from licorne.cli.common import CommandError, UsageError, print_json
from licorne.cli.parameters import DURATION, Flag, From
from licorne.cli.recordings import Moment
from licorne.cli.sources import DEFAULT_SOURCE, read_state
from licorne.cli.statuses import Status
from licorne.state.copies import CopyError
from licorne.state.recording.folder import is_recording
from licorne.state.restored import UnknownNameError


def why(
    name: str = "",
    /,
    *,
    source: From = DEFAULT_SOURCE,
    config: Path | None = None,
    at: Moment | None = None,
    partition: str = "",
    token_file: Path | None = None,
    tls_ca: Path | None = None,
    prove: bool = True,
    limit: Annotated[float, DURATION] = 60.0,
    effort: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 1.0,
    assumptions: Flag = False,
    json: Flag = False,
) -> int:
    """Say why an ask or an application waits, and what would let it run; without a name, what waits, by reason.

    The answer is computed on a copy, from the state dump of a running YuniKorn or licorne, or from a file with one. The
    scheduler is only read. Each change that is proposed was tried on a copy, where everything else that waits competes.

    Parameters
    ----------
    name
        The id of an application, the key of an ask, or a pod as NAME or NAMESPACE/NAME.
    source
        Address of a scheduler's REST interface, http://HOST:PORT, a file with a state dump, or - for standard input; or
        the folder of a recording.
    config
        Queue configuration to ask with in place of the one in force: queues.yaml, or a ConfigMap that holds one. The answer
        is about the time after the scheduler's next decisions under it.
    at
        With a recording: ask about this time, like 2026-11-03T14:00 (UTC) or seconds since 1970; without it: about
        its end.
    partition
        Look at this partition alone.
    token_file
        File with the token of the REST interface.
    tls_ca
        Certificate to know the REST interface by, PEM; without it: the authorities of this system.
    prove
        Look for changes that would let it run, as small as can be found; --no-prove leaves that out.
    limit
        How long changes, or the reasons of many asks, are looked for, at most, in seconds or like 1m30s; and how long a running
        scheduler may take to answer, a second at least.
    effort
        How much the trials may cost, in counted steps: 1 is about two seconds of a processor, 10 ten times as much.
    assumptions
        List the assumptions on which the answer rests.
    json
        Print the answer as a JSON object.
    """
    if source == DEFAULT_SOURCE and os.path.isfile(name):  # noqa: PTH113  # `Path.is_file` raises where a name is too long
        raise UsageError(f"{name} is a file: give it with --from")
    restored = read_state(source, token_file, tls_ca, config, at or "", has_config=True, limit_s=max(limit, 1.0))
    until = time.monotonic() + limit
    home = Home(restored)
    try:
        answer = why_of(
            home if config is None else home.decide(),
            name,
            partition=partition,
            prove=prove,
            more=lambda: time.monotonic() < until,
            effort=effort,
        )
    except (UnknownNameError, CopyError) as error:
        raise CommandError(str(error)) from None
    if json:
        print_json(answer)
    else:
        from licorne.cli.why_text import show  # noqa: PLC0415  # a program that reads JSON need not wait for tables

        show(answer, recorded=is_recording(Path(source)), config=str(config or ""), assumptions=assumptions)
    return Status.DONE if not isinstance(answer, AskAnswer) or answer.state else Status.NO
