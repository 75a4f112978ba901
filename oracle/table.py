#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a recording decides: table.py cases.jsonl.gz [more.jsonl.gz ...]

A decision is one plugin asked about one node, or one plugin's PreFilter; a plugin
that says Skip in PreFilter is not asked about nodes and is not counted.
"""

import collections
import gzip
import json
import sys

FILTERS = [
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
]


def main(paths):
    cases, passed, failed, early, mixed, reasons = 0, *(collections.Counter() for _ in range(5))
    for path in paths:
        with gzip.open(path, "rt") as lines:
            for case in map(json.loads, lines):
                cases += 1
                verdict = case["verdict"]
                refused = {plugin for plugin, _, _ in verdict["prefilter"].get("all", [])}
                asked = [p for p in FILTERS if p not in refused and p not in verdict["prefilter"].get("skip", [])]
                early.update(refused)
                reasons.update(
                    (p, "PreFilter", code, shorten(text)) for p, code, text in verdict["prefilter"].get("all", [])
                )
                said = collections.defaultdict(set)
                for rows in verdict["nodes"].values():
                    against = {plugin for plugin, _, _ in rows}
                    assert against <= set(asked), case["id"]
                    for plugin in asked:
                        (failed if plugin in against else passed)[plugin] += 1
                        said[plugin].add(plugin in against)
                    reasons.update((p, "Filter", code, shorten(text)) for p, code, text in rows)
                mixed.update(p for p, both in said.items() if len(both) == 2)
    print(f"{cases} cases\n\n{'plugin':22}{'no':>8}{'yes':>8}{'both in a case':>16}{'no in PreFilter':>17}")
    for plugin in FILTERS:
        print(f"{plugin:22}{failed[plugin]:8}{passed[plugin]:8}{mixed[plugin]:16}{early[plugin]:17}")
    print()
    for (plugin, point, code, text), count in sorted(reasons.items()):
        print(f"{count:7}  {plugin:20} {point:10} {code:30} {text}")


def shorten(text):
    """Reasons without the names in them."""
    return " ".join(
        word
        if word.isalpha() or word.strip(",.:;'()[]").isalpha()
        else "…"
        if any(ch.isdigit() or ch in '"/' for ch in word)
        else word
        for word in text.split(" ")
    )


if __name__ == "__main__":
    main(sys.argv[1:])
