"""deploy/Dockerfile: a linter accepts it, its files suffice to build the package, and its commands run."""

from __future__ import annotations

import fnmatch
import json
import subprocess
import threading
import zipfile
from pathlib import Path
from typing import Self

import pytest

import licorne
from common.waiting import WAIT_S
from deployment.places import COMMAND, DEPLOY, ROOT, certificate, here, instructions, tool
from deployment.wheel import build_wheel

DOCKERFILE = DEPLOY / "Dockerfile"
STEPS = instructions(DOCKERFILE.read_text(encoding="utf-8"))


def one(word: str) -> str:
    (found,) = [step.rest for step in STEPS if step.word == word]
    return found


def test_a_linter_accepts_the_dockerfile() -> None:
    found = subprocess.run([tool("hadolint"), str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_the_image_has_the_promised_user_ports_and_version() -> None:
    assert [step.word for step in STEPS].count("FROM") == 2
    assert "/venv" in next(step.rest for step in STEPS if "--from=build" in step.rest)
    user = one("USER")
    assert user.isdigit()
    assert int(user) > 0
    assert one("EXPOSE").split() == ["3333", "9080"]
    version = version_of_python().split(".")
    assert len(version) == 3  # a tag that stays
    assert f"Programming Language :: Python :: {'.'.join(version[:2])}" in (ROOT / "pyproject.toml").read_text(
        encoding="utf-8"
    )


def version_of_python() -> str:
    images = {step.rest.split()[0] for step in STEPS if step.word == "FROM"}
    (image,) = images
    return image.removeprefix("python:").split("-")[0]


def test_what_is_installed_and_what_builds_it_has_the_versions_of_the_constraints() -> None:
    words = " ".join(step.rest for step in STEPS if step.word == "ENV").split()
    assert "constraints.txt" in copied()
    assert {f"{name}=/src/constraints.txt" for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")} <= set(words)


def copied() -> list[str]:
    """The paths that the stages copy from the repository."""
    copies = [step.rest.split() for step in STEPS if step.word == "COPY" and "--from" not in step.rest]
    return [source for words in copies for source in words[:-1]]


def test_copied_files_exist_and_are_not_ignored() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    for source in copied():
        assert (ROOT / source).exists(), source
        ignored = False
        for rule in rules:
            if fnmatch.fnmatch(source, rule.removeprefix("!")):
                ignored = not rule.startswith("!")
        assert not ignored, source


def build(folder: Path, **environment: str) -> zipfile.ZipFile:
    """Build the wheel of the first stage, from nothing but the files that it copies."""
    return zipfile.ZipFile(build_wheel(folder, copied(), **environment))


@pytest.mark.gate
def test_copied_files_are_enough_to_build_the_package(tmp_path: Path) -> None:
    with build(tmp_path, LICORNE_PURE="1") as wheel:
        names = set(wheel.namelist())
    package = Path(licorne.__file__).parent
    modules = {path.relative_to(package.parent).as_posix() for path in package.rglob("*.py")}
    assert modules - names == set()
    assert "licorne/grpc/service/proto/si_v1.proto" in names


@pytest.mark.nightly
def test_the_image_builds_the_compiled_package(tmp_path: Path) -> None:
    tool("cc")
    required = [step.rest for step in STEPS if step.word == "ENV" and "COMPILED" in step.rest]
    name, value = required[0].split("=")
    with build(tmp_path, **{name: value}) as wheel:
        assert any("licorne/core/scheduling/descent." in name and name.endswith(".so") for name in wheel.namelist())


@pytest.mark.gate
def test_the_commands_of_the_image_run(tmp_path: Path) -> None:
    certificate(tmp_path, "licorne")
    for name in ("grpc-token", "rest-admin-tokens", "rest-read-tokens"):
        (tmp_path / name).write_text(f"secret-of-{name}\n")
    folders = {"/run/secrets": str(tmp_path), "/etc/licorne": str(DEPLOY)}
    entry, command = (json.loads(one(word)) for word in ("ENTRYPOINT", "CMD"))
    words = here([*entry, *command], {**folders, ":3333": ":0", ":9080": ":0"})
    assert words[0] == "licorne"
    with Running([*COMMAND, *words[1:]]) as running:
        port = running.listening["addresses"][0].rpartition(":")[2]
        check = here(json.loads(one("HEALTHCHECK").partition("CMD")[2]), folders)
        assert check[:2] == ["licorne", "health"]
        healthy = subprocess.run(
            [*COMMAND, *check[1:], f"127.0.0.1:{port}"], capture_output=True, text=True, check=False
        )
        assert (healthy.returncode, healthy.stdout) == (0, "serving\n"), healthy.stderr
        running.process.terminate()
        assert running.process.wait(WAIT_S) == 0
    assert not any("secret-of" in line for line in running.lines)


class Running:
    """A service whose log is JSON lines on standard error."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self.listening: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("{") and json.loads(line)["event"] == "listening":
                self.listening = json.loads(line)
                break
        assert self.listening, self.lines
        self._rest = threading.Thread(target=lambda: self.lines.extend(self.process.stderr or ()), daemon=True)
        self._rest.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(WAIT_S)
        self._rest.join(WAIT_S)
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.mark.gate
def test_the_demonstration_that_the_dockerfile_mentions_runs() -> None:
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert "licorne --demo --rest 0.0.0.0:9080 --insecure" in text
    words = ["--demo", "--rest", "0.0.0.0:0", "--insecure", "--grpc", "127.0.0.1:0", "--log-format", "json"]
    with Running([*COMMAND, "serve", *words]) as running:
        running.process.terminate()
        assert running.process.wait(WAIT_S) == 0
