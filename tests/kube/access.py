"""What licorne's account may do, by the rules of the manifests, and what accounts have done, by the API server's audit log."""

from __future__ import annotations

import json
from itertools import product
from typing import Final, NamedTuple

from kube.cluster import ACCOUNT, HOME, ControlPlane

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


class Act(NamedTuple):
    """A verb on a kind of objects."""

    verb: str
    group: str
    resource: str


def may_do(plane: ControlPlane) -> set[Act]:
    """Return all that the rules of the account allow."""
    rules = plane.get(f"{RBAC}/clusterroles/licorne")["rules"]
    rules += plane.get(f"{RBAC}/namespaces/{HOME}/roles/licorne-configuration")["rules"]
    return {
        Act(verb, group, resource)
        for rule in rules
        for verb, group, resource in product(rule["verbs"], rule["apiGroups"], rule["resources"])
    }


def asked_for(plane: ControlPlane, account: str = ACCOUNT) -> tuple[set[Act], set[Act]]:
    """Return what an account has asked for and was allowed, and what was refused."""
    allowed, refused = set[Act](), set[Act]()
    for line in plane.audit.read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] != account:
            continue
        on = event.get("objectRef", {})
        name = on.get("resource", event["requestURI"])
        act = Act(event["verb"], on.get("apiGroup", ""), "/".join(filter(None, (name, on.get("subresource")))))
        decided = event.get("annotations", {}).get("authorization.k8s.io/decision")
        (allowed if decided == "allow" else refused).add(act)
    return allowed, refused
