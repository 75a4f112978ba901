"""Reading the state of a scheduler for the commands that answer questions about one."""

from __future__ import annotations

from pathlib import Path

from licorne.answers import DumpError, Restored, restore
from licorne.answers.source import SourceError, fetch
from licorne.cli.common import CommandError, read_text
from licorne.cli.configurations import read_configuration
from licorne.cli.statuses import Status
from licorne.daemon.secrets import SecurityError, token_in
from licorne.daemon.setting_table import REST_ADDRESS

DEFAULT_SOURCE = f"http://{REST_ADDRESS}"
"""The scheduler that is asked if none is named: one on this machine, at the port that YuniKorn and licorne have."""


def read_state(source: str, token_file: Path | None, tls_ca: Path | None, config: Path | None = None) -> Restored:
    """Return a scheduler in the state of a dump, or of a running scheduler. `config`: another queue configuration.

    Raises:
        CommandError: the state or the configuration cannot be read.
    """
    try:
        token = "" if token_file is None else token_in(read_text(token_file, "a file with a token"), str(token_file))
    except SecurityError as error:
        raise CommandError(str(error), Status.FILE) from None
    text = None if config is None else read_configuration(config)[1].text
    try:
        return restore(fetch(source, token=token, tls_ca=tls_ca), text)
    except (SourceError, DumpError) as error:
        raise CommandError(str(error), Status.FILE) from None
