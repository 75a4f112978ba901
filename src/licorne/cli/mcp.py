"""`licorne mcp`: serves what four commands of licorne answer to chat assistants; the work is in `licorne.cli.mcp_server`."""

from __future__ import annotations

from pathlib import Path

from licorne._extras import require
from licorne.cli.parameters import From
from licorne.cli.sources import DEFAULT_SOURCE
from licorne.cli.statuses import Status


def mcp(*, source: From = DEFAULT_SOURCE, token_file: Path | None = None, tls_ca: Path | None = None) -> int:
    """Serve the tools `why`, `shares`, `check` and `place` to an assistant, on standard input and output.

    An assistant starts this command itself, by the Model Context Protocol; docs/use/assistants.md has an example. All tools
    only read. It ends when its input ends.

    Parameters
    ----------
    source
        Address of a scheduler's REST interface, http://HOST:PORT, a file with a state dump, or the folder of a recording, about
        the end of which it answers.
    token_file
        File with the token of the REST interface.
    tls_ca
        Certificate to know the REST interface by, PEM; without it: the authorities of this system.
    """
    require("mcp")
    from licorne.cli.mcp_server import server  # noqa: PLC0415  # its packages may be missing

    server(source, token_file, tls_ca).run()
    return Status.DONE
