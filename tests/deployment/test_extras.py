"""What an installation needs: the wheel in an environment that holds nothing else, without and with each extra.

The environments are made of the packages that are installed here, chosen by what the wheel's own metadata ask for, so
that nothing is downloaded. `make sizes` makes them with pip.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterable, Iterator
from email import message_from_string
from importlib.metadata import Distribution, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from common.waiting import WAIT_S
from deployment.places import ROOT
from deployment.wheel import plain_wheel
from licorne._extras import MODULES
from sizes import library_example

PARTS = {
    "": (),
    "client": ("grpc.client",),
    "cli": ("cli", "kube.importing"),  # by which `licorne convert` reads what kubectl prints
    "service": ("grpc", "host"),
    "web": ("host",),
    "kube": ("host", "kube"),
    "all": ("cli", "grpc", "host", "kube"),
}
"""The parts of licorne that each extra is for; all others need none."""
ENTRIES = {
    "grpc.client": "client",
    "grpc.demo": "service",
    "grpc.service": "service",
    "host.web": "web",
    "kube.api": "kube",
    "kube.runner": "kube",
}
"""The parts that programs import, and the extra that each asks for."""
NEED_BOTH = (
    "licorne.cli.scheduling",
    "licorne.cli.mcp_server",
    "licorne.cli.serving",
    "licorne.cli.showing",
)
"""The commands that need `service`, `kube`, `web` or `mcp` beside `cli`."""
NEED_REPORT_OR_RAY = (
    "licorne.lab.report.drawing",
    "licorne.lab.report.page",
    "licorne.lab.report.plots",
    "licorne.lab.report.sections",
    "licorne.lab.sweep.on_ray",
    "licorne.lab.sweep.page",
)
"""The modules that need `report` or `ray`, which others import when a report, or a sweep on Ray, is asked for."""
Environment = Callable[[str], Path]


def asked_for(lines: Iterable[str], extras: Iterable[str]) -> Iterator[Requirement]:
    """Yield what a package asks for, with these extras; what its own extras stand for in place of itself."""
    requirements = [Requirement(line) for line in lines]
    for requirement in requirements:
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            if requirement.name == "licorne":
                yield from asked_for(map(str, requirements), requirement.extras)
            else:
                yield requirement


def needed(pending: list[Requirement]) -> dict[str, Distribution]:
    """Return the distributions here that are asked for, and those that these need in turn."""
    found: dict[str, Distribution] = {}
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name not in found:
            found[name] = distribution(name)
            assert requirement.specifier.contains(found[name].version, prereleases=True)
            pending += asked_for(found[name].requires or (), requirement.extras)
    return found


def _is_of(name: str, extra: str) -> bool:
    """Return whether a module belongs to a part that the extra is for."""
    return any(f"{name}.".startswith(f"licorne.{part}.") for part in PARTS[extra])


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return a function that makes an environment with an extra, or returns the one made before."""
    wheel = zipfile.ZipFile(plain_wheel(tmp_path_factory))
    (metadata,) = (wheel.read(name).decode() for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    lines = message_from_string(metadata).get_all("Requires-Dist", [])
    made: dict[str, Path] = {}

    def make(extra: str) -> Path:
        if extra not in made:
            made[extra] = tmp_path_factory.mktemp("with") / "venv"
            venv.create(made[extra], with_pip=False)
            (packages,) = made[extra].glob("lib/python3*/site-packages")
            wheel.extractall(packages)
            for found in needed(list(asked_for(lines, [extra]))).values():
                for top in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}:
                    if not (packages / top).exists():  # two distributions may share a package
                        (packages / top).symlink_to(str(found.locate_file(top)))
        return made[extra]

    return make


def run(folder: Path, *arguments: str, status: int = 0) -> tuple[str, str]:
    """Run Python in an environment, away from the sources; return what it prints, and its errors."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LICORNE_"))}
    command = [str(folder / "bin" / "python"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=clean)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, done.stderr


@pytest.mark.gate
@pytest.mark.parametrize("extra", PARTS)
def test_the_readme_example_of_the_library_prints_what_the_readme_says(environment: Environment, extra: str) -> None:
    program, printed = library_example()
    assert run(environment(extra), "-c", program) == (printed, "")


@pytest.mark.gate
@pytest.mark.parametrize("extra", PARTS)
def test_every_module_that_the_extra_is_for_can_be_imported(environment: Environment, extra: str) -> None:
    source = ROOT / "src"
    paths = [path.relative_to(source).with_suffix("") for path in source.rglob("*.py") if path.stem != "__main__"]
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    names = [
        name for name in names if name not in NEED_REPORT_OR_RAY and (_is_of(name, extra) or not _is_of(name, "all"))
    ]
    if extra == "cli":
        names = [name for name in names if name not in NEED_BOTH]
    elif extra == "all":
        names.remove("licorne.cli.mcp_server")
    assert len(names) > 150
    run(environment(extra), "-c", "import sys\nfor name in sys.argv[1:]:\n    __import__(name)", *names)


@pytest.mark.gate
@pytest.mark.parametrize("extra", PARTS)
def test_other_parts_say_what_to_install(environment: Environment, extra: str) -> None:
    for part in (part for part in ENTRIES if not _is_of(f"licorne.{part}", extra)):
        _, error = run(environment(extra), "-c", f"import licorne.{part}", status=1)
        last = error.splitlines()[-1]
        assert last.startswith("licorne._extras.MissingExtraError: this needs licorne's extra")
        assert f" 'licorne[{ENTRIES[part]}]'" in last


@pytest.mark.gate
@pytest.mark.parametrize(
    ("extra", "arguments", "missing"),
    [
        ("", ["--version"], "cli"),
        ("client", ["--help"], "cli"),
        ("service", ["serve"], "cli"),
        ("cli", ["serve"], "service"),
        ("cli", ["health"], "service"),
        ("cli", ["kube"], "kube"),
        ("cli", ["mcp"], "mcp"),
        ("cli", ["page"], "web"),
    ],
)
def test_a_command_without_its_extra_says_what_to_install(
    environment: Environment, extra: str, arguments: list[str], missing: str
) -> None:
    out, error = run(environment(extra), "-m", "licorne.cli", *arguments, status=3)
    assert out == ""
    assert re.fullmatch(
        rf"licorne: this needs licorne's extra '{missing}': \S+.* 'licorne\[{missing}\]' \(missing: [\w, ]+\)\n",
        error,
    )


@pytest.mark.gate
@pytest.mark.parametrize(
    ("extra", "arguments"), [("cli", ["--help"]), ("cli", ["--version"]), ("all", ["serve", "--help"])]
)
def test_a_command_with_its_extra_runs(environment: Environment, extra: str, arguments: list[str]) -> None:
    out, error = run(environment(extra), "-m", "licorne.cli", *arguments)
    assert "licorne" in out
    assert error == ""


def named(extras: dict[str, list[str]], extra: str) -> Iterator[str]:
    """Yield the names of the packages of an extra; what it takes from others of licorne's in place of these."""
    for requirement in map(Requirement, extras[extra]):
        if requirement.name == "licorne":
            for other in requirement.extras:
                yield from named(extras, other)
        else:
            yield requirement.name


def test_the_modules_that_are_looked_for_are_those_of_the_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = packages_distributions()
    of_library = {
        Requirement(each).name for each in project["dependencies"]
    }  # of which an extra may want later versions
    for extra, modules in MODULES.items():
        if extra in ("data", "ray", "report") and any(find_spec(module) is None for module in modules):
            continue  # they are not part of `all`, and need not be here
        installed = {canonicalize_name(name) for name in named(project["optional-dependencies"], extra)}
        # protobuf comes with the packages of gRPC that need it, and its top-level package is shared with others
        of = {module: {canonicalize_name(name) for name in names[module]} for module in modules}
        assert all(distributions & installed for distributions in of.values())
        assert installed - of_library - {"protobuf"} <= set().union(*of.values())


@pytest.mark.nightly
def test_the_demonstration_has_the_digest_that_the_readme_shows(environment: Environment) -> None:
    (digest,) = re.findall(r"^digest ([0-9a-f]{64})$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    workload = str(ROOT / "examples" / "demo" / "week.jsonl")
    out, _ = run(environment("cli"), "-m", "licorne.cli", "simulate", workload)
    assert f"digest {digest}\n" in out


@pytest.mark.nightly
def test_the_example_of_a_resource_manager_runs(environment: Environment, tmp_path: Path) -> None:
    """The service from an environment with all, the resource manager from one with the client alone."""
    address = f"unix:{tmp_path}/grpc"
    service = [str(environment("all") / "bin" / "python"), "-m", "licorne.cli", "serve", "--grpc", address]
    with subprocess.Popen(service, stderr=subprocess.PIPE, cwd=tmp_path, text=True) as process:
        try:
            assert process.stderr is not None
            assert "listening" in process.stderr.readline()
            out, _ = run(environment("client"), str(ROOT / "examples" / "resource_manager.py"), address, "1")
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_S)
    assert "pod report-0 runs on node-1\n" in out
    assert out.endswith("all done, reported anew 0 times\n")
