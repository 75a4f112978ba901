"""Labels, annotations and items of annotations that mean nothing, where a user surely meant something.

Others may write keys of the same domain, such as an admission controller, so a key is told only if it is near a known one
or of the wrong kind.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from licorne.kube.objects import Pod
from licorne.si.constants import DOMAIN_YUNIKORN

from . import keys

STYLE: Final = "gangSchedulingStyle"
TIMEOUT: Final = "placeholderTimeoutInSeconds"
ANNOTATIONS: Final = (
    keys.USER_INFO,
    keys.ALLOW_PREEMPTION,
    keys.TASK_GROUPS,
    keys.TASK_GROUP_NAME,
    keys.GANG_PARAMETERS,
)
"""The keys that count as annotations only."""
KNOWN: Final = (*ANNOTATIONS, keys.USER_NAME, keys.APP_ID, keys.QUEUE, keys.OLD_PLACEHOLDER)
NEAR: Final = 0.8
"""How alike two names are of which one is meant by the other (`difflib`)."""
SHOWN_MAX: Final = 60
LOOKED_AT_MAX: Final = 20
"""The most keys of a pod that are compared with known ones, and the most items: of thousands, a comparison of all takes seconds."""


def misspelled(pod: Pod) -> Iterator[str]:
    """Yield a sentence for each key of the pod that means nothing and was surely meant, and for each unknown gang parameter.

    Of unknown keys, and of unknown parameters, only the first `LOOKED_AT_MAX` are looked at.
    """
    unknown: list[tuple[str, str]] = []
    for kind, found in (("label", pod.metadata.labels), ("annotation", pod.metadata.annotations)):
        for key in found or ():
            if not key.startswith(DOMAIN_YUNIKORN):
                continue
            if kind == "label" and key in ANNOTATIONS:
                yield f"label {key}: it counts as an annotation only"
            elif kind == "annotation" and key == keys.USER_NAME:
                yield f"annotation {key}: it counts as a label only"
            elif key not in KNOWN:
                unknown.append((kind, key))
    for kind, key in unknown[:LOOKED_AT_MAX]:
        yield from _unknown(kind, key)
    items = (pod.metadata.annotations or {}).get(keys.GANG_PARAMETERS, "").split()
    parameters = (item.partition("=")[0] for item in items)
    for name in islice((name for name in parameters if name not in (STYLE, TIMEOUT)), LOOKED_AT_MAX):
        meant = _nearest(name, (STYLE, TIMEOUT))
        hint = f"did you mean {meant}?" if meant else f"known are {STYLE} and {TIMEOUT}, with a blank between"
        yield f"annotation {keys.GANG_PARAMETERS}: {name[:SHOWN_MAX]!r} is not known; {hint}"


def _unknown(kind: str, key: str) -> Iterator[str]:
    name = key.removeprefix(DOMAIN_YUNIKORN)
    if parameter := _nearest(name, (STYLE, TIMEOUT)):
        yield f"{kind} {key}: it does not count; {parameter} is an item of the annotation {keys.GANG_PARAMETERS}"
    elif meant := _nearest(name, [known.removeprefix(DOMAIN_YUNIKORN) for known in KNOWN]):
        yield f"{kind} {key}: it is not known; did you mean {DOMAIN_YUNIKORN}{meant}?"


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that a name means but for capitals, punctuation and a letter or two; "" if there is none."""
    plain = {_plain(one): one for one in known}
    close = difflib.get_close_matches(_plain(name)[:SHOWN_MAX], plain, 1, NEAR)
    return plain[close[0]] if close else ""


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
