"""The view *configuration and health*: what is loaded, what is odd about it, the health checks, and the recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from licorne.si import rest_objects as objects

from .source import Configuration, Figures
from .view import Query, View, needs

SHOWN: Final = 60_000
"""Characters of the configuration that the page shows; the rest is behind a link."""


def _context(
    _query: Query, partition: objects.Partition, loaded: Configuration, rules: list[objects.Rule], figures: Figures
) -> dict[str, Any]:
    shown, report, text = loaded
    extra = shown.get("Extra") or {}
    return {
        "partition": partition,
        "text": text.strip()[:SHOWN],
        "cut": len(text) > SHOWN,
        "checksum": str(shown.get("Checksum", "")),
        "extra": extra,
        "report": report,
        "rules": [_told(rule) for rule in rules],
        "health": figures.health,
        "figures": figures,
        "facts": lambda: {
            path: {"": value} for path, value in _flat("", {"Partitions": shown.get("Partitions", []), "Extra": extra})
        },
    }


def _flat(path: str, part: object) -> Iterator[tuple[str, str]]:
    """Yield the values of a configuration, each with the way to it; parts of a list by their name, where they have one."""
    if isinstance(part, dict):
        parts = {str(key): value for key, value in part.items()}
    elif isinstance(part, list):
        parts = {
            str(value.get("Name") or at) if isinstance(value, dict) else str(at): value for at, value in enumerate(part)
        }
    else:
        if part is not None:
            yield path, str(part)
        return
    for key, value in parts.items():
        yield from _flat(f"{path}.{key}" if path else key, value)


def _told(rule: objects.Rule) -> tuple[str, str]:
    """Return the name of a placement rule, and the rest of it in words."""
    words = [f"{name}: {value}" for name, value in rule.parameters.items()]
    if rule.filter is not None:
        some = (*rule.filter.user_list, *rule.filter.group_list, rule.filter.user_exp, rule.filter.group_exp)
        words.append(f"{rule.filter.type or 'allow'}: {', '.join(name for name in some if name)}")
    if rule.parent_rule is not None:
        words.append(f"below the queue of rule {': '.join(part for part in _told(rule.parent_rule) if part)}")
    return rule.name, "; ".join(words)


FETCH = needs("partition", "configuration", "rules", "figures")
VIEW = View("configuration", "Configuration and health", "/configuration", FETCH, _context, compared=True)
