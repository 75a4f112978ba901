"""The running configuration as REST shows it and a state dump holds it: from its JSON form to YAML.

Source: docs/spec/rest-api.md, "Config".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

_USER_KEYS: Final = ("Extra", "Properties", "ResourceWeights", "Guaranteed", "Max", "MaxResources")
"""Values that are maps whose keys are the user's, and keep their case."""


def as_yaml(config: Mapping[str, Any]) -> str:
    """Return a running configuration, given in its JSON form, as YAML: keys in lower case, empty values left out."""
    return msgspec.yaml.encode(_lower(config)).decode()


def _lower(value: object) -> object:
    if isinstance(value, Mapping):
        lowered = {
            key.lower(): (dict(item or {}) if key in _USER_KEYS else _lower(item)) for key, item in value.items()
        }
        return {key: item for key, item in lowered.items() if item not in ({}, [], "", None)}
    if isinstance(value, list):
        return [_lower(item) for item in value]
    return value
