"""Models of devices, such as kinds of GPUs: which one a node has, and which ones an ask accepts.

Neither the scheduler nor a workload has a field for it: a node says it by a label, and an ask by a node constraint about that
label. Fragmentation depends on it, and so do policies that look at devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from licorne._bounded import UNDECODABLE
from licorne.si.constants import TAG_NODE_CONSTRAINTS

OPENB_LABEL = "alibabacloud.com/gpu-card-model"
"""The label of a node that names the model of its GPUs in the openb trace."""
MODEL_LABELS = (OPENB_LABEL, "nvidia.com/gpu.product", "model")
"""Labels that name the model of a node's devices: of the openb trace, of NVIDIA's feature discovery, and the plain word."""
_ATTRIBUTES = tuple(f"label/{label}" for label in MODEL_LABELS)
_TEXTS_MAX = 4096


def model_of(attributes: Mapping[str, str]) -> str:
    """Return the model of a node's devices by its attributes: the first of `MODEL_LABELS` that it has, "" if it has none."""
    for label in _ATTRIBUTES:
        name = attributes.get(label)
        if name:
            return name
    return ""


def accepted_models(tags: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the models that an ask accepts, as its node constraints list them; empty if it accepts any, or says it otherwise."""
    text = tags.get(TAG_NODE_CONSTRAINTS) if tags else None
    return _listed(text) if text else ()


@lru_cache(_TEXTS_MAX)
def _listed(text: str) -> tuple[str, ...]:
    """Return the models of the one condition on a label of models that the text of node constraints has."""
    if not any(label in text for label in MODEL_LABELS):
        return ()
    try:
        terms: Any = msgspec.json.decode(text).get("nodeAffinity") or []
        found = [each for term in terms for each in term if each["key"] in MODEL_LABELS and each["operator"] == "In"]
        return tuple(map(str, found[0]["values"])) if len(found) == 1 else ()
    except (AttributeError, KeyError, TypeError, *UNDECODABLE):
        return ()
