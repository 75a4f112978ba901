"""No test draws from the same seeds in each run: with LICORNE_HYPOTHESIS=random or `long`, the first seed is a new one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
MEANT = {
    "demo/test_manager.py::test_the_same_seed_gives_the_same_lines": "two runs of one seed are compared",
    "kube/test_kills.py::test_a_process_that_passes_over_what_runs_is_noticed": "a fault that is planted, shown by a day known to show it",
    "quotachange/test_leafchoice.py::test_planted_faults_are_caught": "faults that are planted, shown by leaves known to show them",
    "benchmark/test_contended.py::test_a_case_comes_from_its_seed_and_can_be_written": "two runs of one seed are compared",
    "benchmark/test_workloads.py::test_a_case_of_our_own_comes_from_its_seed": "two runs of one seed are compared",
    "sim/test_jobs.py::test_a_planted_fault_is_caught": "faults that are planted, shown by lists known to show them",
    "sim/test_node_orders.py::test_random_takes_every_node_and_device_that_fits": "all choices are met in so many seeds",
    "sim/test_scenarios.py::test_too_many_asks_are_refused_before_the_simulation_or_while_lines_are_made": "one of these seeds is known to draw very many pods",
    "sweep/test_page.py::made": "the seeds are names, nothing is drawn",
}
"""Where seeds are fixed, and why."""


def called(call: ast.Call) -> str:
    """Return the last name of what a call calls."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_fixed(values: ast.expr) -> bool:
    """Tell whether these are a range from a fixed number on, or numbers written out."""
    if isinstance(values, ast.Call):
        return called(values) == "range" and (len(values.args) == 1 or isinstance(values.args[0], ast.Constant))
    items = values.elts if isinstance(values, ast.List | ast.Tuple) else []
    return bool(items) and all(isinstance(item, ast.Constant) for item in items)


def is_seed(name: str, within: ast.AST) -> bool:
    """Tell whether a name is that of a seed, or something is drawn from what it names."""
    calls = [node for node in ast.walk(within) if isinstance(node, ast.Call) and called(node) in {"Random", "seed"}]
    return "seed" in name.lower() or any(
        getattr(argument, "id", "") == name for call in calls for argument in call.args
    )


def bound(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    """Yield the names that take values one after the other here: the name, the values, and where the name is known."""
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
        yield node.target.id, node.iter, node
    for loop in getattr(node, "generators", ()):
        if isinstance(loop.target, ast.Name):
            yield loop.target.id, loop.iter, node
    for decorator in getattr(node, "decorator_list", ()):
        match decorator:
            case ast.Call(args=[ast.Constant(value=str(name)), values, *_]) if called(decorator) == "parametrize":
                yield name, values, node


def first_of(values: ast.expr) -> str:
    """Return the name of the values, or that from which a range of them begins."""
    begin = values.args[0] if isinstance(values, ast.Call) and called(values) == "range" else values
    return getattr(begin, "id", "")


def seeds_of_parameters(tree: ast.Module) -> dict[str, set[int]]:
    """By function: the places of those parameters that are seeds, one after the other, or the first of them."""
    return {
        function.name: {
            place
            for place, parameter in enumerate(function.args.args)
            for node in ast.walk(function)
            for name, values, within in bound(node)
            if first_of(values) == parameter.arg and is_seed(name, within)
        }
        for function in tree.body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def fixed_seeds(text: str) -> list[str]:
    """List the functions of a module that draw from fixed seeds, and the constants that are fixed first seeds.

    A call for seeds from 0 or 1 on is one of these; a call for those from 14,305 on is about a case that was found.
    """
    tree = ast.parse(text)
    takes = seeds_of_parameters(tree)
    found: dict[str, None] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int())) if "SEED" in name:
                found[name] = None
        for node in ast.walk(statement):
            fixed = any(is_fixed(values) and is_seed(name, within) for name, values, within in bound(node))
            if isinstance(node, ast.Call):
                places = takes.get(called(node), set())
                given = [node.args[place] for place in places if place < len(node.args)]
                fixed |= any(is_fixed(each) or getattr(each, "value", None) in {0, 1} for each in given)
            if fixed:
                found[getattr(statement, "name", f"line {statement.lineno}")] = None
    return list(found)


@pytest.mark.gate
def test_no_test_draws_from_fixed_seeds() -> None:
    """`seeds.some_seeds` gives the same seeds by default, and new ones where examples are to be new."""
    found = {
        f"{path.relative_to(TESTS).as_posix()}::{name}"
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__)
        for name in fixed_seeds(path.read_text(encoding="utf-8"))
    }
    assert sorted(found - MEANT.keys()) == []
    assert sorted(MEANT.keys() - found) == [], "these are no longer fixed"


def test_fixed_seeds_are_found() -> None:
    assert fixed_seeds("def test():\n    for seed in range(9): play(seed)\n") == ["test"]
    assert fixed_seeds("def test():\n    for number in range(1, 9):\n        draw = random.Random(number)\n") == [
        "test"
    ]
    assert fixed_seeds("def test():\n    for number in range(9):\n        draw(number)\n") == []
    assert fixed_seeds("def test():\n    for seed in range(first, first + 9): play(seed)\n") == []
    assert fixed_seeds("def test():\n    return [Random(n) for n in range(scaled(9))]\n") == ["test"]
    assert fixed_seeds('@parametrize("seed", [1, 2])\ndef test(seed): ...\n') == ["test"]
    assert fixed_seeds('@parametrize("n", range(9))\ndef test(n):\n    history.seed(n)\n') == ["test"]
    assert fixed_seeds('@parametrize("seed", some_seeds("A", 9))\ndef test(seed): ...\n') == []
    assert fixed_seeds("def f(all, n):\n    for s in all: Random(s)\ndef test():\n    f(range(9), 7)\n") == ["test"]
    assert fixed_seeds("def f(a, n):\n    for s in range(a, a + n): Random(s)\ndef test():\n    f(1, 7)\n") == ["test"]
    assert fixed_seeds("async def f(a, n):\n    for s in range(a, a + n): Random(s)\ndef test():\n    f(1, 7)\n") == [
        "test"
    ]
    assert fixed_seeds("def f(a, n):\n    for s in range(a, a + n): Random(s)\ndef test():\n    f(FIRST, 7)\n") == []
    assert fixed_seeds("SEED = 1\n") == ["SEED"]
    assert fixed_seeds('SEED = first_seed("A")\n') == []
