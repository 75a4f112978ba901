"""`licorne serve`: runs a scheduler for resource managers on this and other machines.

Its options are made from the table of settings, `licorne.host.setting_table`, which also explains them. The work is in
`licorne.cli.serving`, which needs the extra `service`; the help does not.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from licorne._extras import require
from licorne.cli.common import KeyValue
from licorne.cli.demo import Demo
from licorne.core.base import setting_kinds as kinds
from licorne.core.base.setting_table import Setting
from licorne.host.setting_table import REST_ADDRESS, SETTINGS


def serve(**options: Any) -> int:
    """Run a scheduler that resource managers reach by gRPC, until SIGTERM or SIGINT.

    It listens on loopback unless told otherwise. Beyond loopback it wants TLS and either certificates of clients or a
    token, or --insecure. What happens is logged on standard error, one line for each event. SIGHUP reads the files again,
    which otherwise happens when they change.

    Each option is also a key of the settings file, and a variable of the environment: --rm-timeout is licorne.rm-timeout
    and LICORNE_RM_TIMEOUT. The command line goes before the environment, that before the file. --print-config lists all.
    Exit status: 0 when it was ended, 1 when it could not start or failed.
    """
    require("service")
    from licorne.cli.serving import run  # noqa: PLC0415  # its packages may be missing

    return run(options)


# -- the options, from the table -------------------------------------------------------------------------


def argument(setting: Setting) -> str:
    """Return the name of the argument of `serve` for the option of a setting."""
    return setting.option.replace("-", "_")


_WORDS = {
    "path": "FILE",
    "folder": "FOLDER",
    "number": "NUMBER",
    "seconds": "SECONDS",
    "list": "ADDRESS",
    "name=path": "NAME=FILE",
    "level": "LEVEL",
}
"""What help shows for a value of each type; where one of some words is wanted, WORD. Lists are of addresses here."""


def _parameters() -> Iterator[inspect.Parameter]:
    keyword = inspect.Parameter.KEYWORD_ONLY
    for one in SETTINGS:
        if not one.option:
            continue
        many = one.kind in (kinds.LIST, kinds.NAMED_FILES)
        word: Any = type(_WORDS.get(one.kind.name, "WORD"), (str,), {})  # help shows the name of the class
        typed: Any = tuple[word, ...] if many else bool | None if one.kind is kinds.FLAG else word | None
        told = one.what + (" May be repeated." if many else "")
        if one.default and one.kind is not kinds.FLAG:
            told += f" [default: {one.default}]"
        said = Parameter(name=f"--{one.option}", help=told, negative="", show_default=False)
        yield inspect.Parameter(argument(one), keyword, default=() if many else None, annotation=Annotated[typed, said])
    others: tuple[tuple[str, Any, Any, str], ...] = (
        ("settings", Path | None, None, "File, or folder, with settings: YAML, or a ConfigMap; it is watched."),
        ("setting", tuple[KeyValue, ...], (), "Any setting, like reservation.delay=5s. May be repeated."),
        ("print_config", bool, False, "Print all settings, with values and where these come from, and start nothing."),
        ("json", bool, False, "With --print-config: as JSON."),
        (
            "demo",
            bool,
            Demo.wanted,
            f"Run a simulated cluster too, with REST at {REST_ADDRESS} unless --rest says where.",
        ),
        ("demo_speed", float, Demo.speed, "How much faster than usual everything happens there."),
        ("demo_seed", int, Demo.seed, "Another number, other applications."),
    )
    for name, typed, default, told in others:
        said = Parameter(help=told, negative="", show_default=False)
        yield inspect.Parameter(name, keyword, default=default, annotation=Annotated[typed, said])


serve.__signature__ = inspect.Signature(list(_parameters()), return_annotation=int)  # type: ignore[attr-defined]
