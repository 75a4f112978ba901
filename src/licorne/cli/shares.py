"""`licorne shares`: who has what of which guarantee and max, and who borrows from whom."""

from __future__ import annotations

from pathlib import Path

from licorne.answers import shares as shares_of
from licorne.answers.recorded import with_hours
from licorne.cli.common import CommandError, UsageError, print_json
from licorne.cli.parameters import Flag, From
from licorne.cli.recordings import Moment, moment_ns
from licorne.cli.sources import DEFAULT_SOURCE, read_hours, read_state
from licorne.cli.statuses import Status
from licorne.state.recording.folder import is_recording
from licorne.state.restored import UnknownNameError


def shares(
    *,
    source: From = DEFAULT_SOURCE,
    config: Path | None = None,
    at: Moment | None = None,
    since: Moment | None = None,
    partition: str = "",
    token_file: Path | None = None,
    tls_ca: Path | None = None,
    assumptions: Flag = False,
    json: Flag = False,
) -> int:
    """Say who has what of which guarantee and max, by queue, user and group, and who borrows from whom.

    A queue borrows what it uses above its guarantee, and lends what is left of it. What is lent is shared out over those
    who borrow, in proportion, siblings first.

    Parameters
    ----------
    source
        Address of a scheduler's REST interface, http://HOST:PORT, a file with a state dump, or - for standard input; or
        the folder of a recording.
    config
        Queue configuration to ask with in place of the one in force: queues.yaml, or a ConfigMap that holds one.
    at
        With a recording: ask about this time, like 2026-11-03T14:00 (UTC) or seconds since 1970; without it: about
        its end.
    since
        With a recording: say also what was used from this time on, until that of --at, in pod hours, GPU hours and so on.
    partition
        Look at this partition alone.
    token_file
        File with the token of the REST interface.
    tls_ca
        Certificate to know the REST interface by, PEM; without it: the authorities of this system.
    assumptions
        List the assumptions on which the answer rests.
    json
        Print the answer as a JSON object.
    """
    if since and not is_recording(Path(source)):
        raise UsageError(f"--since {since}: only a recording knows the time before; give its folder: --from DIR")
    try:
        answer = shares_of(read_state(source, token_file, tls_ca, config, at or "", has_config=True), partition)
        if since:
            used = read_hours(Path(source), since, at or "", partition)
            answer = with_hours(answer, used, moment_ns(since, "--since"))
    except UnknownNameError as error:
        raise CommandError(str(error)) from None
    if json:
        print_json(answer)
    else:
        from licorne.cli.shares_text import show  # noqa: PLC0415  # a program that reads JSON need not wait for tables

        show(answer, recorded=is_recording(Path(source)), config=str(config or ""), assumptions=assumptions)
    return Status.DONE
