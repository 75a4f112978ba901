"""Reading the state of a scheduler for the commands that answer questions about one."""

from __future__ import annotations

from pathlib import Path

from licorne.answers.hours import hours
from licorne.answers.recorded import NothingRecordedError, restore_moment
from licorne.answers.shares import Hours
from licorne.cli.common import CommandError, UsageError, read_text
from licorne.cli.configurations import read_configuration
from licorne.cli.progress import progress_bar
from licorne.cli.recordings import moment_ns
from licorne.cli.statuses import Status
from licorne.config import ConfigError
from licorne.host.secrets import SecurityError, token_in
from licorne.host.setting_table import REST_ADDRESS
from licorne.si.messages import AddApplication
from licorne.state.dump import DumpError
from licorne.state.recording import RecordingError, choose_run
from licorne.state.recording.folder import is_recording
from licorne.state.recording.moments import written
from licorne.state.recording.runs import submitted_applications
from licorne.state.restore import restore
from licorne.state.restored import Restored
from licorne.state.source import TIMEOUT_S, SourceError, fetch

DEFAULT_SOURCE = f"http://{REST_ADDRESS}"
"""The scheduler that is asked if none is named: one on this machine, at the port that YuniKorn and licorne have."""


def read_state(
    source: str,
    token_file: Path | None,
    tls_ca: Path | None,
    config: Path | None = None,
    at: str = "",
    *,
    has_config: bool = False,
    limit_s: float = TIMEOUT_S,
) -> Restored:
    """Return a scheduler in the state of a dump, of a running scheduler, or of a moment of a recording.

    `config`: another queue configuration. `at`: the moment, as a text; empty: the end of the recording. `has_config`: the
    command has the option --config, which errors may name. `limit_s`: how long a running scheduler may take to answer.

    Raises:
        CommandError: the state or the configuration cannot be read.
    """
    if is_recording(Path(source)):
        return _recorded(Path(source), config, moment_ns(at) if at else None)
    if at:
        raise UsageError(f"--at {at}: only a recording has other moments; give its folder: --from DIR")
    token = read_token(token_file)
    text = _text(config)
    try:
        dump = fetch(source, token=token, tls_ca=tls_ca, timeout_s=limit_s)
    except (SourceError, DumpError) as error:
        default = (
            " (the default; --from takes another address, a file or a recording)" if source == DEFAULT_SOURCE else ""
        )
        raise CommandError(f"{error}{default}", Status.FILE) from None
    try:
        return restore(dump, text)
    except DumpError as error:
        raise CommandError(f"{source}: {error}", Status.FILE) from None
    except ConfigError as error:
        remedy = "; give another one with --config" if has_config else ""
        said = f"{source}: its queue configuration is refused{remedy}\n{error}"
        raise CommandError(said, Status.CONFIGURATION) from None


def read_hours(folder: Path, since: str, until: str, partition: str) -> Hours:
    """Return what was used from one moment of a recording to another, or to its end if that is empty. Raises CommandError."""
    since_ns, until_ns = moment_ns(since, "--since"), moment_ns(until) if until else None
    if until_ns is not None and since_ns >= until_ns:
        raise UsageError(f"--since {since}: is not before --at {until}")
    try:
        with progress_bar("replaying") as told:
            run = choose_run(folder, at_ns=until_ns)
            return hours(run, since_ns, until_ns, told or (lambda *_: None), partition=partition)
    except RecordingError as error:
        raise CommandError(str(error), Status.FILE) from None


def read_submitted(folder: Path, at: str = "") -> list[AddApplication]:
    """Return the applications of a run of a recording, as they were submitted: of the last one that had begun at a time.

    Raises:
        CommandError: the recording cannot be read.
    """
    try:
        return list(submitted_applications(choose_run(folder, at_ns=moment_ns(at) if at else None)))
    except RecordingError as error:
        raise CommandError(str(error), Status.FILE) from None


def read_token(token_file: Path | None) -> str:
    """Return the token in a file; "" without one. Raises CommandError."""
    try:
        return "" if token_file is None else token_in(read_text(token_file, "a file with a token"), str(token_file))
    except SecurityError as error:
        raise CommandError(str(error), Status.FILE) from None


def _text(config: Path | None) -> str | None:
    return None if config is None else read_configuration(config)[1].text


def _recorded(folder: Path, config: Path | None, at_ns: int | None) -> Restored:
    text = _text(config)
    try:
        with progress_bar("replaying") as told:
            return restore_moment(choose_run(folder, at_ns=at_ns), at_ns, text, told or (lambda *_: None))
    except RecordingError as error:
        raise CommandError(str(error), Status.FILE) from None
    except NothingRecordedError as error:
        ended = (
            "" if error.left_ns is None else f"; the last one ended at {written(error.left_ns)}: --at asks about before"
        )
        raise CommandError(f"{folder}: no resource manager is registered at this time{ended}", Status.FILE) from None
