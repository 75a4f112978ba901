"""deploy/licorne.service: systemd's own checks accept it, and its commands really run and notify."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from common.waiting import WAIT_S
from deployment.places import DEPLOY, here, program, tool, unit
from licorne.host.notify import READY, STOPPING, WATCHDOG, notify, watchdog_s

TEXT = (DEPLOY / "licorne.service").read_text(encoding="utf-8")
SERVICE = unit(TEXT)["Service"]
LICORNE = "/usr/local/bin/licorne"


def made_verifiable(folder: Path) -> Path:
    """The unit with a program that is here, for the check wants to see it."""
    stand_in = folder / "licorne"
    stand_in.write_text("#!/bin/sh\n")
    stand_in.chmod(0o755)
    found = folder / "licorne.service"
    found.write_text(TEXT.replace(LICORNE, str(stand_in)))
    return found


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    command = [tool("systemd-analyze"), "verify", "--man=no", str(made_verifiable(tmp_path))]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    mine = [line for line in found.stderr.splitlines() if "licorne" in line]
    assert mine == [], found.stderr
    if found.returncode:
        pytest.skip(f"systemd-analyze finds fault with this machine: {found.stderr.strip()[:200]}")


def test_the_unit_has_few_privileges(tmp_path: Path) -> None:
    """Exposure is from 0 to 10; below 2 systemd itself calls it OK."""
    options = ["security", "--offline=true", "--threshold=20", "--no-pager"]
    found = subprocess.run(
        [tool("systemd-analyze"), *options, str(made_verifiable(tmp_path))], capture_output=True, text=True, check=False
    )
    if "nrecognized option" in found.stderr or "nknown" in found.stderr:
        pytest.skip("this systemd-analyze cannot judge a file")
    assert found.returncode == 0, found.stdout[-500:] + found.stderr


def test_the_first_command_accepts_the_configuration() -> None:
    words = here(program(SERVICE["ExecStartPre"], LICORNE), {"/etc/licorne": str(DEPLOY)})
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_the_command_runs_notifies_readiness_and_ends(tmp_path: Path) -> None:
    assert SERVICE["Type"] == "notify"
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(tmp_path / "notify"))
    told.settimeout(WAIT_S)
    words = here(program(SERVICE["ExecStart"], LICORNE), {"/etc/licorne": str(DEPLOY), ":3333": ":0", ":9080": ":0"})
    with told, subprocess.Popen(words, env=environment(tmp_path), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert told.recv(100).decode() == READY
            process.terminate()
            assert told.recv(100).decode() == STOPPING
            _, log = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
    assert process.returncode == 0
    assert [word in log for word in ("listening ", "listening for REST ", "ended ")] == [True] * 3, log


def environment(folder: Path) -> dict[str, str]:
    """The environment that systemd gives to a service: little, and the socket to notify; here also the path of the package."""
    return {
        "NOTIFY_SOCKET": str(folder / "notify"),
        "PYTHONPATH": ":".join(filter(None, sys.path)),
        "PATH": "/usr/bin:/bin",
    }


def test_the_command_for_other_machines_names_options_that_there_are(tmp_path: Path) -> None:
    """The drop-in in the comment: its command is refused for its missing files, not for its options."""
    comment = "\n".join(line.removeprefix("#").strip() for line in TEXT.partition("[Unit]")[0].splitlines())
    command = unit("[Service]" + comment.partition("[Service]")[2])["Service"]["ExecStart"]
    assert SERVICE["StateDirectory"] == "licorne"
    words = here(program(command, LICORNE), {"/etc/licorne": str(DEPLOY), "${STATE_DIRECTORY}": str(tmp_path)})
    assert {"--token-file", "--rest-token-file"} <= set(words)
    assert words[words.index("--record") + 1] == f"{tmp_path}/recording"
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "${CREDENTIALS_DIRECTORY}/rest-token: no such file" in found.stderr


def test_the_watchdog_is_notified(tmp_path: Path) -> None:
    assert float(SERVICE["WatchdogSec"]) > 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(WAIT_S)
        words = here(
            program(SERVICE["ExecStart"], LICORNE), {"/etc/licorne": str(DEPLOY), ":3333": ":0", ":9080": ":0"}
        )
        given = environment(tmp_path) | {"WATCHDOG_USEC": "300000"}
        with subprocess.Popen(words, env=given, stderr=subprocess.DEVNULL) as process:
            try:
                said = [told.recv(100).decode() for _ in range(5)]
                assert sorted(set(said)) == [READY, WATCHDOG]
                assert said.count(WATCHDOG) >= 4
            finally:
                process.kill()


def test_a_watchdog_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    for wanted, seconds in (("", 0.0), ("30000000", 30.0), ("soon", 0.0)):
        monkeypatch.setenv("WATCHDOG_USEC", wanted)
        assert watchdog_s() == seconds
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert watchdog_s() == 0.0


def test_notifications_need_no_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify(READY)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify(READY)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names outside the file system are Linux's")
def test_a_name_outside_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"licorne-test-{shlex.quote(tmp_path.name)}-{id(tmp_path)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(f"\0{name}")
        told.settimeout(WAIT_S)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        notify(STOPPING)
        assert told.recv(100).decode() == STOPPING
