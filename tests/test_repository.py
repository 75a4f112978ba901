"""The project's rules that no other tool checks: short functions, modules with docstrings, no path of one machine, hosted
workflows and hooks that do nothing that `make` does not do, and versions of packages that agree."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
import warnings
from configparser import ConfigParser
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import licorne
import nightly

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = ["actions/checkout", "actions/setup-python"]
ADVISED_FILE_LINES = 450
MAX_FUNCTION_LINES = 70
"""Without the docstring: that of a command is its help, and names each option."""
PATHS_OF_ONE_MACHINE = re.compile(r"(?<![\w.<])/(?:home|root|Users|work|tmp|opt|mnt)/[\w.]+")


def repository_texts() -> list[Path]:
    """List the text files that belong to the repository: those that git knows, or would if they were added."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not in a git checkout")
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8192]]


@pytest.mark.filterwarnings("default:long files:UserWarning")
def test_long_files_are_reported() -> None:
    """This is advice, and fails for no length: a long file may hold two things, but one class in two files is worse."""
    lengths = {module: (ROOT / module).read_text(encoding="utf-8").count("\n") for module in MODULES}
    long = [f"{module} ({lines} lines)" for module, lines in lengths.items() if lines > ADVISED_FILE_LINES]
    if long:
        warnings.warn(f"long files, do two things live in one of them? {', '.join(long)}", stacklevel=1)


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@cache
def trees() -> dict[str, ast.Module]:
    """Return the modules of the package as programs; reading all of them takes a second."""
    return {module: ast.parse((ROOT / module).read_text(encoding="utf-8")) for module in MODULES}


def test_functions_are_short() -> None:
    functions = [
        (f"{module}:{node.lineno}", _lines(node) - (_lines(node.body[0]) if ast.get_docstring(node) else 0))
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [(place, length) for place, length in functions if length > MAX_FUNCTION_LINES] == []


def test_modules_have_docstrings() -> None:
    assert [module for module, tree in trees().items() if not ast.get_docstring(tree)] == []


NAMED = re.compile(r"`(\w+)/?`|^ {0,4}(\w+/?(?:, \w+/?)*)  +\S", re.MULTILINE)
"""What a docstring names: in backticks, or in the first column of a table."""


def test_the_docstring_of_a_package_names_each_of_its_modules() -> None:
    """But those that begin with an underscore. A word of a sentence is no name, though it may be spelt like one."""
    of_package: dict[str, set[str]] = {}
    for module in MODULES:
        path = module.removesuffix(".py").removesuffix("/__init__")
        package, _, name = path.rpartition("/")
        if package != "src" and not name.startswith("_"):
            of_package.setdefault(package, set()).add(name)
    unnamed = {}
    for package, names in of_package.items():
        text = ast.get_docstring(trees()[f"{package}/__init__.py"]) or ""
        found = re.findall(r"\w+", " ".join(column or quoted for quoted, column in NAMED.findall(text)))
        if missing := sorted(names - set(found)):
            unnamed[package] = missing
    assert unnamed == {}


def test_nothing_names_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in repository_texts()
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PATHS_OF_ONE_MACHINE.search(line)
    ]
    assert found == []


def test_changelog_has_this_version() -> None:
    assert f"## {licorne.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_pages_have_the_layers_of_the_import_contract() -> None:
    contract = ConfigParser()
    contract.read(ROOT / ".importlinter", encoding="utf-8")
    layers = contract["importlinter:contract:layers"]["layers"].replace("(__main__)", "")
    line = " -> ".join(re.sub(r"[()]", "", layers).replace(" |", ",").split("\n")).strip(" ->")
    for page in (".importlinter", "CONTRIBUTING.md", "docs/spec/design.md"):
        assert line in (ROOT / page).read_text(encoding="utf-8").replace("→", "->"), page


def test_all_public_names_are_listed_and_exist() -> None:
    names = getattr(licorne, "__all__", [])
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if not hasattr(licorne, name)] == []


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == licorne.__version__


def test_documents_name_files_and_images_of_this_version() -> None:
    named = {
        (path.relative_to(ROOT).as_posix(), version)
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for version in re.findall(r"\blicorne[-:](\d+\.\d+\.\d+)\b", path.read_text(encoding="utf-8"))
    }
    assert {name for name, _ in named} >= {"docs/use/install.md", "docs/use/kubernetes.md"}
    assert {one for one in named if one[1] != licorne.__version__} == set()


def dependencies() -> list[str]:
    """List what pyproject.toml asks for: the library, the extras, and what builds them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"].values()
    wanted = [
        *settings["build-system"]["requires"],
        *settings["project"]["dependencies"],
        *(item for extra in extras for item in extra),
    ]
    return [item for item in wanted if not item.startswith("licorne[")]


ENVIRONMENT = {
    "python_version": "3.11",
    "python_full_version": "3.11.0",
    "sys_platform": "linux",
    "platform_system": "Linux",
}
"""The one in which the table of extras in docs/use/install.md was measured."""


def requirements(package: str) -> list[str]:
    """List what a package requires, each with its marker: licorne as pyproject.toml says, others as they are installed.

    One that is not installed, as this Python does not need it, requires nothing.
    """
    if package != "licorne":
        try:
            return metadata.requires(package) or []
        except metadata.PackageNotFoundError:
            return []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [(extra, item) for extra, items in project["optional-dependencies"].items() for item in items]
    marked = [f"{item} {'and' if ';' in item else ';'} extra == {extra!r}" for extra, item in extras]
    return [*project["dependencies"], *marked]


def installed_with(extra: str) -> set[str]:
    """Return the names of the packages that an installation with an extra brings, licorne among them."""
    found: set[tuple[str, str]] = set()
    left = {("licorne", ""), ("licorne", extra)}
    while left:
        package, with_extra = one = left.pop()
        found.add(one)
        for item in map(Requirement, requirements(package)):
            if item.marker is None or item.marker.evaluate({**ENVIRONMENT, "extra": with_extra}):
                left |= {(canonicalize_name(item.name), each) for each in ("", *item.extras)} - found
    return {package for package, _ in found}


def test_the_table_of_extras_has_the_numbers_of_packages() -> None:
    """`make sizes` measures them, and the megabytes too. Ray is too large to be installed for this."""
    rows = re.findall(
        r"^\| (none|`\.\[(\w+)\]`).*\| (\d+), \d+ \|$", (ROOT / "docs/use/install.md").read_text("utf-8"), re.MULTILINE
    )
    told = {extra: int(packages) for _, extra, packages in rows}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert told.keys() == {"", *project["optional-dependencies"]} - {"dev"}
    del told["ray"]
    assert told == {extra: len(installed_with(extra)) for extra in told}, "run: make sizes"


def test_every_dependency_has_a_lower_bound() -> None:
    assert [item for item in dependencies() if ">=" not in item] == []


def test_the_constraints_name_one_allowed_version_of_every_dependency() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if not line.startswith("#")]
    versions = {canonicalize_name(name): version for name, version in pins}
    assert len(versions) == len(pins)
    wanted = [Requirement(item) for item in dependencies()]
    bad = [str(one) for one in wanted if not one.specifier.contains(versions.get(canonicalize_name(one.name), "0"))]
    assert bad == [], "run: make constraints"


def test_every_property_test_obeys_the_profile() -> None:
    """Only `tests/common/examples.py` says that the same examples are taken each time, so that the random profiles take others."""
    calls = {
        f"{path.relative_to(ROOT)}:{node.lineno}": [keyword.arg for keyword in node.keywords]
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != ROOT / "tests" / "common" / "examples.py" and "derandomize" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    }
    assert [place for place, names in calls.items() if "derandomize" in names] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_each_step_of_a_workflow_is_a_make_target(workflow: Path) -> None:
    """Beside those that fetch the source and Python. Who has no such host then runs the same, and nothing is said twice."""
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    assert jobs
    for job in jobs:
        before, runs = job["steps"][: len(ACTIONS)], job["steps"][len(ACTIONS) :]
        assert [step["uses"].partition("@")[0] for step in before] == ACTIONS
        assert runs
        for step in runs:
            command, target, *variables = step["run"].split(maxsplit=2)
            assert command == "make"
            assert target in targets
            assert all(re.fullmatch(r"[A-Z]+=(\w+|\$\{\{ matrix.part }})", variable) for variable in variables)


def test_the_hooks_run_the_commands_of_make_check() -> None:
    """A hook may get the names of the changed files where `make check` names all."""
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    for command, hook in zip(commands, local["hooks"], strict=True):
        if hook.get("pass_filenames", True):
            assert command.startswith(f"{hook['entry']} ")
        else:
            assert command == hook["entry"]


def test_the_workflow_tests_the_pythons_of_the_night() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]
    assert " ".join(jobs["test"]["strategy"]["matrix"]["python"]) == nightly.PYTHONS
