"""`licorne scenario`: checks scenarios, and prints the schema for editors."""

from __future__ import annotations

import sys
from pathlib import Path

from licorne._wording import counted
from licorne.cli.common import CommandError, print_json, say
from licorne.cli.parameters import Flag, Load, MaxAsks, Seed
from licorne.cli.sheets import output, print_plainly
from licorne.cli.statuses import Status
from licorne.workload.quantities import amount, duration
from licorne.workload.scenarios.document import schema as scenario_schema
from licorne.workload.scenarios.outline import Outline
from licorne.workload.scenarios.scenario import Scenario, ScenarioError
from licorne.workload.workload import ASKS_MAX, WorkloadError


def check(
    scenario: Path, /, *, seed: Seed = None, load: Load = None, max_asks: MaxAsks = ASKS_MAX, json: Flag = False
) -> int:
    """Check a scenario, and say what it comes to: how many applications and pods, and what they want of the cluster.

    Prints a line for each mistake: file:line:column: place: what is wrong; and for what is probably one: a label that no node
    has, a queue that is not there. Nothing is simulated.

    Parameters
    ----------
    scenario
        A scenario in YAML.
    seed
        Seed of the random numbers, in place of the scenario's.
    load
        Factor of all rates and bursts, in place of the scenario's.
    max_asks
        A scenario with more asks is refused.
    json
        Print what it comes to as a JSON object.
    """
    try:
        outline = Scenario.read(scenario).outline(seed=seed, load=load, asks_max=max_asks)
    except FileNotFoundError:
        raise CommandError(f"{scenario}: no such file; give a scenario in YAML", Status.FILE) from None
    except ScenarioError as error:
        say(*str(error).split("\n"))
        mistakes = counted(len(error.problems), "mistake")
        say(f"{scenario}: {mistakes}: it cannot be simulated", to=sys.stderr)
        return Status.NO
    except WorkloadError as error:
        raise CommandError(f"{scenario}: {error}") from None
    if json:
        print_json(outline)
    else:
        for warning in outline.warnings:
            say(f"{warning} (warning)", style="yellow")
        _show(outline)
    return Status.DONE


def schema() -> int:
    """Print the JSON Schema of a scenario, with which editors complete keys and mark mistakes while one writes."""
    print_json(scenario_schema())
    return Status.DONE


def _show(outline: Outline) -> None:
    from rich.table import Table  # noqa: PLC0415  # a program that reads JSON need not wait for tables

    console = output()
    about = f"{outline.name}: {duration(outline.length_s)}, {counted(outline.nodes, 'node')}, {counted(outline.events, 'change')}, seed {outline.seed}"
    console.print(about, markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("class")
    for title in ("applications", "pods", "mean demand"):
        table.add_column(title, justify="right")
    for one in outline.classes:
        demand = ", ".join(amount(kind, round(mean)) for kind, mean in one.demand.items())
        table.add_row(one.name, f"{one.applications:,}", f"{one.pods:,}", demand)
    print_plainly(console, table)
    for kind, share in outline.load.items():
        mean = amount(kind, round(outline.capacity.get(kind, 0)))
        console.print(f"demand for {kind}: {share:.1%} of {mean} on average", markup=False)
