"""Where the API server is, and who we are: a kubeconfig, or what a pod finds in its own file system.

lightkube reads the files. What a long-running program must renew is here: tokens and certificates in files that change
(`certificates`), and those that a program prints (`plugin`). So is what lightkube passes over: the proxy, the name in the
server's certificate, and what such a program is to be told.
"""

from __future__ import annotations

import base64
import os
import ssl
import time
import urllib.request
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from .certificates import Certificates
from .errors import KubeconfigError
from .plugin import ExecPlugin

FILES_S: Final = 60.0
"""How long what was read from files is taken for current."""
EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The extension of a cluster in a kubeconfig that a program is told."""
_LIGHTKUBE: Final = (KeyError, TypeError, AttributeError, yaml.YAMLError)
"""What lightkube raises where a file has another form, or names a cluster or a user that it does not have."""


class Access:
    """The address of an API server, how its certificate is checked, and the credentials of the requests.

    Parameters:
        found: a context of a kubeconfig, as lightkube has read it.
        content: the kubeconfig, for what lightkube does not read; None: that of the file that `found` names, if any.
    """

    def __init__(self, found: SingleConfig, content: Mapping[str, Any] | None = None) -> None:
        self.server = found.cluster.server.rstrip("/")
        self.context = found.context_name
        self.namespace = found.namespace
        self._found = found
        self._user = found.user or User()
        self._token = ""
        self._until = 0.0
        self._files_until = time.monotonic() + FILES_S
        more, of_program = _passed_over(found, content)
        self.proxy = more.proxy_url or _proxy_of_environment(self.server)
        """The address of the proxy through which the server is reached; None: directly."""
        self.server_name = more.tls_server_name or None
        """The name that the server's certificate must have; None: that of its address."""
        self._certificates = Certificates(found)
        self._plugin = self._plugin_of(more, of_program)

    @property
    def ssl(self) -> ssl.SSLContext | None:
        """The TLS context of a request whose headers have just been asked for; None: the server is reached without TLS."""
        return self._certificates.context

    def _plugin_of(self, cluster: _Cluster, more: _Exec) -> ExecPlugin | None:
        program = self._user.exec
        if program is None:
            return None
        if "/" in program.command:  # as the documentation has it: beside the kubeconfig
            program = copy(program)  # a struct, or before lightkube 1.0 a dataclass
            program.command = str(self._found.abs_file(program.command))
        told = self._told(cluster) if more.provide_cluster_info else None
        return ExecPlugin(program, interactive=more.interactive_mode or "IfAvailable", cluster=told)

    def _told(self, more: _Cluster) -> dict[str, Any]:
        """Return what a program is told of the cluster."""
        cluster = self._found.cluster
        authority = base64.b64encode(self._certificates.authority).decode()
        config = next((one.extension for one in more.extensions if one.name == EXTENSION), None)
        told = {
            "server": cluster.server,
            "tls-server-name": more.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure,
            "certificate-authority-data": authority,
            "proxy-url": more.proxy_url,
            "disable-compression": more.disable_compression,
            "config": config,
        }
        return {name: value for name, value in told.items() if value}

    @classmethod
    def load(cls, kubeconfig: str | None = None, context: str | None = None) -> Access:
        """Read a kubeconfig: the file given, else that of KUBECONFIG, else the pod's own, else `~/.kube/config`.

        KUBECONFIG may name several files, which count together, as they do for kubectl.

        Raises:
            KubeconfigError: there is none, or it cannot be used.
        """
        try:
            name = kubeconfig or os.environ.get("KUBECONFIG")
            content = None
            if not kubeconfig and name and os.pathsep in name:
                content = _together(name.split(os.pathsep))
                found = KubeConfig.from_dict(content).get(context)
            else:
                found = (KubeConfig.from_file(name) if name else KubeConfig.from_env()).get(context)
            if found is None:
                raise KubeconfigError(f"{kubeconfig or 'the kubeconfig'}: no current context; say --context NAME")
            return cls(found, content)
        except (ConfigError, OSError, ValueError, msgspec.DecodeError, *_LIGHTKUBE) as error:
            where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config, and this is no pod"
            raise KubeconfigError(f"{where}: no usable kubeconfig: {_said(error)}; say --kubeconfig FILE") from None

    async def headers(self, *, renew: bool = False) -> dict[str, str]:
        """Return the headers that say who we are. `renew`: the last ones were refused, so look again.

        The certificates of `ssl` are brought up to date, too.

        Raises:
            KubeconfigError: the program that prints credentials failed.
        """
        if renew or time.monotonic() >= self._files_until:
            self._certificates.look_again()
            self._files_until = time.monotonic() + FILES_S
        user = self._user
        if user.username and user.password is not None:
            pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        if self._plugin is not None:
            credential = await self._plugin.credential(renew=renew)
            self._certificates.take(credential.certificate, credential.key)
            token = credential.token
        else:
            token = self._own_token(renew=renew)
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _own_token(self, *, renew: bool) -> str:
        user = self._user
        now = time.monotonic()
        if renew or now >= self._until:
            if user.token_file:
                self._token, self._until = self._read_token(user.token_file), now + FILES_S
            else:
                self._token, self._until = (user.token or "").strip(), float("inf")
        return self._token

    def _read_token(self, name: str) -> str:
        try:
            return Path(self._found.abs_file(name)).read_text().strip()
        except OSError as error:
            if self._token:
                return self._token  # a moment while the file is replaced
            raise KubeconfigError(f"the token of context {self.context!r} cannot be read: {error}") from None


class _Extension(msgspec.Struct):
    name: str
    extension: Any = None


class _Cluster(msgspec.Struct, rename="kebab"):
    proxy_url: str = ""
    tls_server_name: str = ""
    disable_compression: bool = False
    extensions: list[_Extension] = []


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _Exec(msgspec.Struct, rename="camel"):
    interactive_mode: str | None = None
    provide_cluster_info: bool = False


class _User(msgspec.Struct):
    exec: _Exec | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _File(msgspec.Struct):
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []


_OF_CLUSTERS: Final = ("certificate-authority",)
_OF_USERS: Final = ("client-certificate", "client-key", "tokenFile")
"""What names a file, in the folder of the kubeconfig unless the path is absolute."""


def _together(names: Iterable[str]) -> dict[str, Any]:
    """Return several kubeconfigs as one, as kubectl reads them: of one name, what the first file has counts.

    A file that does not exist is passed over, unless none exists; paths in a file are made absolute.
    """
    paths = [Path(name).expanduser() for name in names if name]
    there = [path for path in paths if path.is_file()]
    if not there:
        raise KubeconfigError(f"{', '.join(map(str, paths)) or 'KUBECONFIG'}: no such file; say --kubeconfig FILE")
    made: dict[str, Any] = {"clusters": [], "contexts": [], "users": []}
    for path in there:
        read = msgspec.yaml.decode(path.read_bytes()) or {}
        made["current-context"] = made.get("current-context") or read.get("current-context") or None
        for kind, entries in made.items():
            if kind == "current-context":
                continue
            known = {entry["name"] for entry in entries}
            new = [entry for entry in read.get(kind) or () if entry["name"] not in known]
            for entry in new:
                _make_absolute(entry, path.absolute().parent)
            entries.extend(new)
    return made


def _make_absolute(entry: Mapping[str, Any], folder: Path) -> None:
    """Make the paths in an entry of a kubeconfig absolute, which are relative to the folder of its file."""
    for content, keys in ((entry.get("cluster"), _OF_CLUSTERS), (entry.get("user"), _OF_USERS)):
        for key in keys:
            if content and content.get(key):
                content[key] = str(folder / content[key])
    program = (entry.get("user") or {}).get("exec")
    if program and "/" in program.get("command", ""):
        program["command"] = str(folder / program["command"])


def _passed_over(found: SingleConfig, content: Mapping[str, Any] | None) -> tuple[_Cluster, _Exec]:
    """Return what the kubeconfig says of the cluster, and of the program of the user, that lightkube does not read."""
    if content is not None:
        read = msgspec.convert(content, _File)
    elif found.fname is not None:
        read = msgspec.yaml.decode(Path(found.fname).read_bytes(), type=_File)
    else:
        return _Cluster(), _Exec()
    cluster = next((one.cluster for one in read.clusters if one.name == found.context.cluster), _Cluster())
    user = next((one.user for one in read.users if one.name == found.context.user), None)
    return cluster, (user and user.exec) or _Exec()


def _said(error: Exception) -> str:
    """Return what an error says, as a sentence where it is the bare name of something that is missing."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _proxy_of_environment(server: str) -> str | None:
    """Return the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for a server."""
    address = urlsplit(server)
    if urllib.request.proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    return urllib.request.getproxies().get(address.scheme)
