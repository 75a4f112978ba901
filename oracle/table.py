#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what recordings decide: table.py [--reasons] single.jsonl.xz [sequences.jsonl.xz ...]

A judgment is one pod asked about (a case of one pod, or one `ask` or `again` of a sequence). A decision is one plugin
asked about one node; a plugin that refuses or skips in PreFilter is not asked about nodes.
"""

import collections
import json
import lzma
import re
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


def judgments(paths, count):
    for path in paths:
        with lzma.open(path, "rt") as lines:
            for case in map(json.loads, lines):
                count["cases"] += 1
                verdict = case["verdict"]
                for step in verdict.get("steps", [verdict]):
                    count["steps"] += "steps" in verdict
                    count["hints"] += len(step.get("hints", {}))
                    count["wakes"] += sum(h["wakes"] for h in step.get("hints", {}).values())
                    if "preenqueue" in step:
                        count["kept out of the queue"] += 1
                    elif "prefilter" in step:
                        yield step


def main(args):
    show = "--reasons" in args
    count, yes, no, mixed, cases, early, reasons, waits = (collections.Counter() for _ in range(8))
    for v in judgments([a for a in args if not a.startswith("-")], count):
        count["judgments"] += 1
        before = v["prefilter"]
        refused = {plugin for plugin, _, _ in before.get("all", [])}
        early.update(refused)
        reasons.update((p, "PreFilter", code, blank(text)) for p, code, text in before.get("all", []))
        asked = [p for p in FILTERS if p not in refused and p not in before.get("skip", [])]
        said = collections.defaultdict(set)
        against_pod = set(refused)
        for rows in v["nodes"].values():
            against = {plugin for plugin, _, _ in rows}
            assert against <= set(asked)
            against_pod |= against
            for plugin in asked:
                (no if plugin in against else yes)[plugin] += 1
                said[plugin].add(plugin in against)
            reasons.update((p, "Filter", code, blank(text)) for p, code, text in rows)
        mixed.update(p for p, both in said.items() if len(both) == 2)
        cases.update(against_pod)
        count["judgments in which several plugins refuse"] += len(against_pod) > 1
        count["judgments without a node"] += before["status"] != "Success" or all(
            rows or (before.get("nodes") is not None and n not in before["nodes"]) for n, rows in v["nodes"].items()
        )
        waits.update(p for p, _, _ in v.get("permit", []))
    print(", ".join(f"{n} {what}" for what, n in count.items() if n), "\n")
    print(
        f"{'plugin':22}{'judgments it refuses in':>24}{'nodes: no':>11}{'nodes: yes':>11}{'both in one':>12}{'no in PreFilter':>16}"
    )
    for plugin in FILTERS:
        print(f"{plugin:22}{cases[plugin]:24}{no[plugin]:11}{yes[plugin]:11}{mixed[plugin]:12}{early[plugin]:16}")
    if show:
        print()
        for (plugin, point, code, text), n in sorted(reasons.items()):
            print(f"{n:7}  {plugin:20} {point:10} {code:30} {text}")


def blank(text):
    """A reason without the names in it."""
    text = re.sub(r'"[^"]*"|\S*/\S*|\S*\d\S*', "…", text)
    return text if len(text) < 110 else text[:110] + " …"


if __name__ == "__main__":
    main(sys.argv[1:])
