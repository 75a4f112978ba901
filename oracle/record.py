#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws cases, asks kube-scheduler's plugins about them, and prints the cases with their verdicts.

    record.py --kind sequence --seed 7 --count 100 > my.jsonl
    record.py --kind score --oracle build/oracle/oracle | xz -9e > scores.jsonl.xz

Left out, and counted on standard error, are cases with objects that the API server would refuse, and those whose verdict
depends on the order of a Go map. In sequences, pods that steps name by "?n" and nodes that they name by "nth" are
replaced by those that were taken, and steps that came to nothing are left out.
"""

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def lines_of(command, text=""):
    said = subprocess.run([str(word) for word in command], input=text, check=True, capture_output=True, text=True)
    return said.stdout.splitlines(keepends=True)


def settle(case):
    """Name in a sequence what was taken, and leave out what came to nothing."""
    steps, said = [], []
    for step, answer in zip(case["steps"], case["verdict"]["steps"], strict=True):
        pod = answer.pop("pod", None)
        if answer.pop("error", None):
            continue
        for key in {"again", "bind", "forget"} & step.keys():
            step[key] = pod
        if step.get("remove", "").startswith("Pod/?"):
            step["remove"] = f"Pod/{pod}"
        step.pop("assume", None)
        if "assumed" in answer:
            step["assume"] = {"node": answer["assumed"]}
        steps.append(step)
        said.append(answer)
    case["steps"], case["verdict"]["steps"] = steps, said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", default="single", help="single, sequence or score")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--oracle", type=pathlib.Path, default=HERE.parent / "build" / "oracle" / "oracle")
    args = parser.parse_args()
    drawn = lines_of([HERE / "gen_more.py", "--kind", args.kind, "--seed", args.seed, "--count", args.count])
    checked = map(json.loads, lines_of([args.oracle, "-validate"], "".join(drawn)))
    valid = [line for line, answer in zip(drawn, checked, strict=True) if not answer["errors"]]
    asked = [args.oracle, "-merge", *(["-scores"] if args.kind == "score" else [])]
    cases = [json.loads(line) for line in lines_of(asked, "".join(valid))]
    stable = [case for case in cases if not case["verdict"].get("unstable")]
    for case in stable:
        if "steps" in case:
            settle(case)
        sys.stdout.write(json.dumps(case, separators=(",", ":")) + "\n")
    left_out = f"{len(drawn) - len(valid)} not valid, {len(cases) - len(stable)} unstable"
    print(f"{len(stable)} of {len(drawn)} cases; left out: {left_out}", file=sys.stderr)


if __name__ == "__main__":
    main()
