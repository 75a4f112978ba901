"""Where the API server is, and who we are: what kubeconfigs and pods say, and credentials that change."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from lightkube.config.models import NameValue, UserExec

from licorne.kube.api import Access, KubeconfigError
from licorne.kube.api import config as config_module
from licorne.kube.api import plugin as plugin_module
from licorne.kube.api.plugin import ExecPlugin

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy", "ALL_PROXY")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*PROXIES, "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def kubeconfig(folder: Path, user: Any = None, name: Any = "config", **cluster: Any) -> str:
    """Write a kubeconfig; return its name."""
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "one", "cluster": {"server": "http://10.0.0.1:6443", **cluster}}],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
    }
    (folder / name).write_text(json.dumps(made))
    return str(folder / name)


def authorization(access: Access, *, renew: bool = False) -> str:
    """Return the credentials of a request."""
    return asyncio.run(access.headers(renew=renew)).get("Authorization", "")


def test_a_token_file_that_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("first\n")
    access = Access.load(kubeconfig(tmp_path, {"tokenFile": "token"}))
    assert authorization(access) == "Bearer first"
    (tmp_path / "token").write_text("second\n")
    assert authorization(access) == "Bearer first"  # not with every call
    assert authorization(access, renew=True) == "Bearer second"  # but when it was refused
    (tmp_path / "token").write_text("third\n")
    monkeypatch.setattr(config_module, "FILES_S", 0.0)
    authorization(access, renew=True)
    assert authorization(access) == "Bearer third"  # and after a while
    (tmp_path / "token").unlink()
    assert authorization(access) == "Bearer third"  # a moment while the file is replaced


def test_inside_a_pod_its_own_account_counts(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token of a service account changes every hour, so its file is read, not its first content."""
    from lightkube.config.kubeconfig import KubeConfig  # noqa: PLC0415

    for name, text in (("token", "mine"), ("namespace", "licorne"), ("ca.crt", (certificates / "ca.pem").read_text())):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = KubeConfig.from_service_account(tmp_path).get()
    assert found is not None
    access = Access(found)
    assert access.server == "https://[fd00::1]:443"
    assert access.namespace == "licorne"
    assert authorization(access) == "Bearer mine"
    (tmp_path / "token").write_text("renewed")
    assert authorization(access, renew=True) == "Bearer renewed"


def test_the_variable_kubeconfig_counts_before_the_file_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube", server="http://home")
    assert Access.load().server == "http://home"
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, name="other", server="http://variable"))
    assert Access.load().server == "http://variable"


def test_several_files_of_the_variable_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
    (second / "token").write_text("of b")
    (first / "config").write_text(
        "current-context: there\nclusters: [{name: one, cluster: {server: 'http://a', tls-server-name: a}}]\nusers: null\n"
    )
    more = """
current-context: here
clusters:
  - {name: one, cluster: {server: 'http://hidden'}}
  - {name: two, cluster: {server: 'http://b', tls-server-name: b}}
users:
  - {name: me, user: {tokenFile: token}}
  - {name: program, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./print, interactiveMode: Never}}}
contexts:
  - {name: here, context: {cluster: one, user: me}}
  - {name: there, context: {cluster: two, user: me}}
  - {name: third, context: {cluster: two, user: program}}
"""
    (second / "config").write_text(more)
    names = [str(first / "config"), "", str(tmp_path / "missing"), str(second / "config")]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(names))
    found = Access.load()
    assert (found.server, found.server_name, authorization(found)) == ("http://b", "b", "Bearer of b")
    assert Access.load(context="here").server == "http://a"
    program = Access.load(context="third")._plugin
    assert program is not None
    assert program._program.command == str(second / "print")
    with pytest.raises(KubeconfigError, match="Context 'none' not found"):
        Access.load(context="none")
    assert Access.load(kubeconfig(tmp_path, server="http://given")).server == "http://given"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "no such file"),
        ("[1]", "no usable kubeconfig"),
        ("{", "no usable kubeconfig"),
        ("clusters: [{}]", "no usable kubeconfig"),
        ("", "current"),
    ],
)
def test_several_files_that_cannot_be_used(
    content: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "a").write_text(content)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")]))
    with pytest.raises(KubeconfigError, match=expected):
        Access.load()


@pytest.mark.parametrize(
    ("cluster", "environment", "expected"),
    [
        ({}, {}, None),
        ({"proxy-url": "http://proxy:3128"}, {}, "http://proxy:3128"),
        ({}, {"HTTP_PROXY": "http://other:8080"}, "http://other:8080"),
        ({"proxy-url": "http://proxy:3128"}, {"HTTP_PROXY": "http://other:8080"}, "http://proxy:3128"),
        ({}, {"HTTP_PROXY": "http://other:8080", "NO_PROXY": "10.0.0.1"}, None),
        ({}, {"HTTPS_PROXY": "http://other:8080"}, None),  # the server is reached by http
    ],
)
def test_proxies(
    cluster: dict[str, str],
    environment: dict[str, str],
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Access.load(kubeconfig(tmp_path, **cluster)).proxy == expected


def test_the_name_in_the_certificate_may_be_given(tmp_path: Path) -> None:
    assert Access.load(kubeconfig(tmp_path, **{"tls-server-name": "kubernetes"})).server_name == "kubernetes"


PRINTS = """
import json, os, pathlib, sys
calls = pathlib.Path(os.environ["CALLS"])
calls.write_text((calls.read_text() if calls.exists() else "") + "x")
assert json.loads(os.environ["KUBERNETES_EXEC_INFO"])["kind"] == "ExecCredential"
status = {"token": f"token-{len(calls.read_text())}"}
if os.environ.get("ENDS"): status["expirationTimestamp"] = os.environ["ENDS"]
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""

SAYS = """
import json
import os
head = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
print(json.dumps({**head, "status": %s}))
"""


def program(folder: Path, code: str = PRINTS, **environment: str) -> UserExec:
    """Return a program that a kubeconfig could name."""
    return UserExec(
        apiVersion="client.authentication.k8s.io/v1",
        command=sys.executable,
        args=["-c", code],
        env=[NameValue(name, value) for name, value in {"CALLS": str(folder / "calls"), **environment}.items()],
        installHint="see the page of the tool",
    )


@pytest.mark.parametrize(
    ("ends", "runs"),
    [("2999-01-01T00:00:00Z", 1), ("2001-01-01T00:00:00Z", 2), ("", 1)],
    ids=["valid", "expired", "does not say"],
)
def test_a_program_runs_when_its_token_ends(ends: str, runs: int, tmp_path: Path) -> None:
    async def twice() -> None:
        plugin = ExecPlugin(program(tmp_path, ENDS=ends))
        for number in range(2):
            assert (await plugin.credential(renew=False)).token == f"token-{min(number + 1, runs)}"

    asyncio.run(twice())
    assert len((tmp_path / "calls").read_text()) == runs


def test_a_credential_that_does_not_say_when_it_ends_is_used_until_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def after(later_s: float, *, renew: bool) -> str:
        monkeypatch.setattr(time, "time", lambda: began_s + later_s)
        return (await plugin.credential(renew=renew)).token

    began_s = time.time()
    plugin = ExecPlugin(program(tmp_path))
    assert asyncio.run(after(0.0, renew=False)) == "token-1"
    assert asyncio.run(after(1e6, renew=False)) == "token-1"
    assert asyncio.run(after(1e6, renew=True)) == "token-2"


def test_a_program_runs_once_for_all_that_wait(tmp_path: Path) -> None:
    """Hundreds of bindings may find at the same time that their token is refused."""

    async def many() -> None:
        plugin = ExecPlugin(program(tmp_path))
        found = await asyncio.gather(*(plugin.credential(renew=True) for _ in range(100)))
        assert {one.token for one in found} == {"token-1"}

    asyncio.run(many())
    assert (tmp_path / "calls").read_text() == "x"


@pytest.mark.parametrize("fails", [False, True], ids=["is refused", "fails"])
def test_a_program_that_is_of_no_use_runs_less_and_less_often(fails: bool, tmp_path: Path) -> None:
    """As many calls as there may be, at once and one after another, it runs less often each time until it is left alone."""
    now = 0.0
    code = PRINTS + "sys.exit('no network')" if fails else PRINTS

    async def calls() -> list[int]:
        nonlocal now
        plugin = ExecPlugin(program(tmp_path, code), clock=lambda: now)
        runs = []
        for at_s in (0.0, 0.5, 1.5, 1.6, 4.0, 8.5, 100.0, 130.0, 159.0, 161.0):
            now = at_s
            found = await asyncio.gather(*(plugin.credential(renew=True) for _ in range(20)), return_exceptions=True)
            failed = [one for one in found if isinstance(one, KubeconfigError) and "no network" in str(one)]
            assert len(failed) == (20 if fails else 0)
            runs.append(len((tmp_path / "calls").read_text()))
        return runs

    runs = asyncio.run(calls())
    assert runs == ([1, 1, 2, 2, 3, 4, 5, 6, 7, 7] if fails else [1, 2, 3, 3, 4, 5, 6, 7, 8, 9])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('no network')", "no network"),
        ("print('{}')", "printed no credential"),
        ('print(\'{"status": {"token": "t"}}\')', "ExecCredential client.authentication.k8s.io/v1 was asked for"),
        (SAYS % {}, "neither a token nor a certificate"),
        (SAYS % {"clientCertificateData": "c"}, "a certificate without its key"),
        ("print('rubbish')", "see the page of the tool"),
        ("import time; time.sleep(60)", "took longer than"),
    ],
)
def test_a_program_that_fails_is_named(code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_module, "EXEC_S", 0.5 if "sleep" in code else 60.0)
    with pytest.raises(KubeconfigError, match=said):
        asyncio.run(ExecPlugin(program(tmp_path, code)).credential(renew=False))


def test_a_program_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    made = program(tmp_path)
    made.apiVersion = "client.authentication.k8s.io/v9"
    with pytest.raises(KubeconfigError, match="are supported"):
        ExecPlugin(made)


TELLS = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
head = {"apiVersion": info["apiVersion"], "kind": "ExecCredential"}
print(json.dumps({**head, "status": {"token": json.dumps(info["spec"])}}))
"""


@pytest.mark.parametrize("wanted", [False, True])
def test_a_program_is_told_of_the_cluster_if_it_asks_for_that(wanted: bool, certificates: Path, tmp_path: Path) -> None:
    made = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": sys.executable,
        "args": ["-c", TELLS],
        "interactiveMode": "Never",
        "provideClusterInfo": wanted,
    }
    cluster = {
        "server": "https://10.0.0.1:6443",
        "certificate-authority": str(certificates / "ca.pem"),
        "tls-server-name": "kubernetes",
        "extensions": [
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}},
            {"name": "other"},
        ],
    }
    said = authorization(Access.load(kubeconfig(tmp_path, {"exec": made}, **cluster))).removeprefix("Bearer ")
    told = {
        "server": "https://10.0.0.1:6443",
        "tls-server-name": "kubernetes",
        "certificate-authority-data": base64.b64encode((certificates / "ca.pem").read_bytes()).decode(),
        "config": {"audience": "a"},
    }
    assert json.loads(said) == {"interactive": False, **({"cluster": told} if wanted else {})}


@pytest.mark.parametrize(
    ("mode", "said"), [("Always", "there is nobody at a terminal"), ("Sometimes", "there is no such mode")]
)
def test_a_program_that_needs_somebody_at_a_terminal_is_refused(mode: str, said: str, tmp_path: Path) -> None:
    made = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": mode}
    with pytest.raises(KubeconfigError, match=said):
        Access.load(kubeconfig(tmp_path, {"exec": made}))


def test_a_command_with_a_folder_is_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    file = tmp_path / "bin" / "prints"
    file.write_text(f"#!{sys.executable}\n{SAYS % {'token': 'mine'}}")
    file.chmod(0o700)
    made = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./bin/prints"}
    assert authorization(Access.load(kubeconfig(tmp_path, {"exec": made}))) == "Bearer mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no usable kubeconfig"),
        ("a: [", "no usable kubeconfig"),
        ("{clusters: [], contexts: [{name: c, context: {cluster: none}}], current-context: c}", "'none' is missing"),
        ("{clusters: [{}], contexts: []}", "'name' is missing"),
    ],
)
def test_a_kubeconfig_of_another_form_is_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(KubeconfigError, match=said):
        Access.load(str(tmp_path / "config"))
