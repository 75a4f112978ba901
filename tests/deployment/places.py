"""The examples in deploy/, read as Docker and systemd read them, as far as needed; and their commands, made to run here."""

from __future__ import annotations

import configparser
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
COMMAND = [sys.executable, "-m", "licorne.cli"]


class Instruction(NamedTuple):
    """An instruction of a Dockerfile: its word, and the rest with continued lines joined."""

    word: str
    rest: str

    def words(self) -> list[str]:
        """The list that it gives in JSON."""
        found: list[str] = json.loads(self.rest)
        return found


def instructions(text: str) -> list[Instruction]:
    """All instructions of a Dockerfile, in order; comments are left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found = [line.split(None, 1) for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line.strip()]
    return [Instruction(word.upper(), rest) for word, rest in found]


def unit(text: str) -> dict[str, dict[str, str]]:
    """Sections of a unit file. Of a key that is given more than once the last one counts."""
    parser = configparser.RawConfigParser(strict=False, comment_prefixes=("#", ";"), delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text.replace("\\\n", " "))
    return {name: dict(parser[name]) for name in parser.sections()}


def here(words: list[str], replaced: dict[str, str]) -> list[str]:
    """A command line with texts replaced: other ports, files that are here."""
    for old, new in replaced.items():
        words = [word.replace(old, new) for word in words]
    return words


def program(line: str, path: str) -> list[str]:
    """The words of a command line that begins with this program, which becomes the one under test."""
    first, *rest = shlex.split(line)
    assert first == path
    return [*COMMAND, *rest]


def tool(name: str) -> str:
    """Find a tool that is not installed everywhere; skip the test without it."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here")
    return found


def certificate(folder: Path, name: str) -> None:
    """A certificate that has signed itself, and its key: tls.crt and tls.key."""
    command = [tool("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run([*command, "-addext", f"subjectAltName=DNS:{name}", *files], check=True, capture_output=True)
