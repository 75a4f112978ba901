"""`licorne page`: shows a recording, a state dump or a running scheduler in a browser; only this machine reaches it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from licorne._extras import require
from licorne.cli.common import CommandError, say
from licorne.cli.sources import DEFAULT_SOURCE, read_token
from licorne.cli.statuses import Status
from licorne.si.rest_objects import FullState
from licorne.state.dump import DumpError
from licorne.state.recording import RecordingError
from licorne.state.recording.folder import is_recording
from licorne.state.source import SourceError, fetch, is_url


def page(
    source: str = DEFAULT_SOURCE,
    /,
    *,
    port: Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65_535))] = 9081,
    token_file: Path | None = None,
    tls_ca: Path | None = None,
) -> int:
    """Show a recording, a state dump, or a scheduler that runs, also YuniKorn, as pages for a browser on this machine.

    Nothing is installed beside the scheduler, which is only read. Ctrl-C ends it.

    Parameters
    ----------
    source
        The folder of a recording, a file with a state dump, or the address of a scheduler's REST interface, http://HOST:PORT.
    port
        The port on 127.0.0.1 at which the pages are; 0: any free one.
    token_file
        File with the token of the REST interface.
    tls_ca
        Certificate to know the REST interface by, PEM; without it: the authorities of this system.
    """
    require("web")
    from licorne.cli.showing import serve_pages  # noqa: PLC0415  # its packages may be missing
    from licorne.host.web.page.past import OpenedDump, OpenedRecording  # noqa: PLC0415
    from licorne.host.web.page.routes import Opened  # noqa: PLC0415

    token = read_token(token_file)
    try:
        if is_recording(Path(source)):
            opened: Opened = OpenedRecording(Path(source)).opened
        else:
            # Fetched here, so that a mistake is told before a browser is opened.
            first = [fetch(source, token=token, tls_ca=tls_ca).state]

            def read() -> FullState:
                return first.pop() if first else fetch(source, token=token, tls_ca=tls_ca).state

            opened = OpenedDump(read, source if is_url(source) else Path(source).name, again=is_url(source)).opened
    except (SourceError, DumpError, RecordingError) as error:
        raise CommandError(str(error), Status.FILE) from None
    with contextlib.suppress(KeyboardInterrupt):
        serve_pages(opened, port, lambda address: say(f"The page of {source}: http://{address}/", "Ctrl-C ends it."))
    return Status.DONE
