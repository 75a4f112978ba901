"""What a pod may ask for that is not decided here yet. Such a pod waits, and is never placed wrongly."""

from __future__ import annotations

from licorne.kube.objects.pods import Pod

from .volumes import IN_TREE


def why_later(pod: Pod) -> str:
    """Return which part of the pod is not supported, in a sentence, or "" if all is."""
    spec = pod.spec
    wants = []
    if any(getattr(one, name) is not None for one in spec.volumes or () for name in IN_TREE):
        wants.append("a disk of its own")
    return f"licorne does not decide this yet: the pod has {', '.join(wants)}" if wants else ""
