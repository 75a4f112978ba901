"""Find a policy by its name, make an object of it within its time, and tell which text it was made from.

A name is one of these:

    policy.py:Spread        the class `Spread` of a file
    my.package:Spread       the class of a module that can be imported
    spread                  an entry point of the group `licorne.policies`, which an installed package declares
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from licorne.sim.policies.interface import METHODS, Policy, PolicyError, decided_by
from licorne.sim.policies.watch import Watch, watch_calls

GROUP = "licorne.policies"
FORMS = f"module:Class, file.py:Class, or the name of an entry point of the group {GROUP}"


class Loaded(NamedTuple):
    """A policy: its name, SHA-256 of the file that it was read from (empty if there is none), and an object of its own."""

    name: str
    digest: str
    policy: Policy

    @property
    def decides(self) -> tuple[str, ...]:
        """What it decides: the methods of `Policy` that it overrides."""
        return decided_by(type(self.policy))


Given = Policy | type[Policy] | str | Loaded
"""A policy as programs may give it: an object, a class, a name, or what `load_policies` has returned."""


def load_policies(given: Iterable[Given], limit_s: float | None = None) -> list[Loaded]:
    """Return policies, each with a new object unless an object, or a loaded policy, was given.

    Running the file of a policy, or importing its module, and making its object may each take `limit_s` seconds; None: any time.

    Raises:
        PolicyError: one cannot be found, loaded or made, takes too long for that, is no policy, or decides what another one
            decides; or calls cannot be watched here.
    """
    given = list(given)
    with watch_calls(limit_s if given else None) as watch:
        loaded = [load_policy(each, watch) for each in given]
    for method in METHODS:
        names = [each.name for each in loaded if method in each.decides]
        _refuse_several(names, f"have {method}")
    _refuse_several(
        [each.name for each in loaded if {"node_key", "choose_node"} & set(each.decides)], "decide about nodes"
    )
    return loaded


def _refuse_several(names: list[str], what: str) -> None:
    if len(names) > 1:
        raise PolicyError(f"{' and '.join(f'policy {name}' for name in names)}: both {what}; give one of them")


def load_policy(given: Given, watch: Watch | None = None) -> Loaded:
    """Return a policy that is given as an object, as a class, or by its name; `watch`, entered, limits the time for that.

    Raises:
        PolicyError: it cannot be found, loaded or made, takes too long for that, or is no policy.
    """
    watch = watch or Watch(None)
    if isinstance(given, Loaded):
        return given
    if isinstance(given, str):
        found = watch.run(f"policy {given}: loading its code", find_policy, given)
        return Loaded(given, digest_of(found), _made(given, found, watch))
    kind = given if isinstance(given, type) else type(given)
    name = f"{kind.__module__}:{kind.__qualname__}"
    _check(name, kind)
    return Loaded(name, digest_of(kind), _made(name, kind, watch) if given is kind else given)  # type: ignore[arg-type]  # a class is no object of it


def find_policy(name: str) -> type[Policy]:
    """Return the class of a policy by its name; the head of this file says what names there are.

    Raises:
        PolicyError: there is none, it cannot be loaded, or it is no policy.
    """
    where, colon, qualified = name.rpartition(":")
    if where.endswith(".py") or name.endswith(".py"):
        path = Path(where if colon and not qualified.endswith(".py") else name)
        module = _module_of_file(name, path)
        if path == Path(name):
            raise PolicyError(f"policy {name}: name a class of the file, as {name}:Class; {_known(module)}")
    elif colon and where and qualified:
        module = _imported(name, where)
    else:
        return _entry_point(name)
    found: object = module
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise PolicyError(f"policy {name}: {where} has no {qualified}; {_known(module)}")
    return _check(name, found)


def digest_of(policy: type[Policy]) -> str:
    """Return SHA-256 of the file that defines a policy, in hexadecimal digits; of its text if there is no such file."""
    try:
        path = inspect.getsourcefile(policy)
        text = Path(path).read_bytes() if path is not None and Path(path).is_file() else b""
        text = text or inspect.getsource(policy).encode()
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text).hexdigest()


def _module_of_file(name: str, path: Path) -> ModuleType:
    """Run a file as a module, anew each time, so that no state is left from an earlier run."""
    module_name = f"licorne_policy_{path.stem}"
    spec = spec_from_file_location(module_name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise PolicyError(f"policy {name}: {path}: no such file")
    module = module_from_spec(spec)
    sys.modules[module_name] = module  # where classes look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise PolicyError(f"policy {name}: {path} cannot be loaded: {described(error)}") from error
    return module


def _imported(name: str, where: str) -> ModuleType:
    try:
        return import_module(where)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{where}.".startswith(f"{missing}."):
            raise PolicyError(
                f"policy {name}: there is no module {where}; a file is given with its ending: FILE.py:Class"
            ) from None
        raise PolicyError(f"policy {name}: {where} cannot be loaded: {described(error)}") from error


def _entry_point(name: str) -> type[Policy]:
    points = entry_points(group=GROUP)
    point = next((each for each in points if each.name == name), None)
    if point is None:
        known = ", ".join(sorted(points.names)) or "none"
        raise PolicyError(f"policy {name}: not found; a policy is given as {FORMS} (installed: {known})")
    try:
        found = point.load()
    except (Exception, SystemExit) as error:
        raise PolicyError(f"policy {name}: {point.value} cannot be loaded: {described(error)}") from error
    return _check(name, found)


def _check(name: str, found: object) -> type[Policy]:
    """Return a class if it is a policy that decides something."""
    if not isinstance(found, type) or not issubclass(found, Policy):
        what = found.__name__ if isinstance(found, type) else f"an object of {type(found).__name__}"
        raise PolicyError(f"policy {name}: {what} is no subclass of licorne.Policy")
    decides = decided_by(found)
    if not decides:
        raise PolicyError(f"policy {name}: it decides nothing; override at least one of {', '.join(METHODS)}")
    if {"node_key", "choose_node"} <= set(decides):
        raise PolicyError(
            f"policy {name}: it has node_key and choose_node, and only one of them can decide about nodes"
        )
    return found


def _made(name: str, kind: type[Policy], watch: Watch) -> Policy:
    try:
        return watch.run(f"policy {name}: {kind.__name__}()", kind)
    except PolicyError:
        raise
    except (Exception, SystemExit) as error:
        raise PolicyError(
            f"policy {name}: {kind.__name__}() raised {described(error)}; a policy is made without arguments"
        ) from error


def _known(module: ModuleType) -> str:
    """Say which policies a module has."""
    names: Sequence[str] = [
        name
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, Policy) and each is not Policy
    ]
    return f"it has {', '.join(names)}" if names else "it has no subclass of licorne.Policy"


def described(error: BaseException) -> str:
    """Return an exception in one line, with the place where it was raised."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    return f"{text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else text
