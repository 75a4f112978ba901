"""Where the API server is, and who we are: a kubeconfig, or what a pod finds in its own file system.

lightkube reads the files. What a long-running program must renew is here: tokens in files that change, and those that a
program prints (`plugin`). So are the proxy and the name in the server's certificate, which lightkube passes over.
"""

from __future__ import annotations

import base64
import os
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from .errors import KubeconfigError
from .plugin import TokenPlugin

TOKEN_FILE_S: Final = 60.0
"""How long a token that was read from a file is taken for current."""


class Access:
    """The address of an API server, how its certificate is checked, and the credentials of the requests.

    Parameters:
        found: a context of a kubeconfig, as lightkube has read it.
    """

    def __init__(self, found: SingleConfig) -> None:
        self.server = found.cluster.server.rstrip("/")
        self.context = found.context_name
        self.namespace = found.namespace
        self._found = found
        self._user = found.user or User()
        self._token = ""
        self._until = 0.0
        self._plugin = TokenPlugin(self._user.exec) if self._user.exec is not None else None
        more = _passed_over(found)
        self.proxy = more.proxy_url or _proxy_of_environment(self.server)
        """The address of the proxy through which the server is reached; None: directly."""
        self.server_name = more.tls_server_name or None
        """The name that the server's certificate must have; None: that of its address."""
        self.ssl = self._ssl()

    @classmethod
    def load(cls, kubeconfig: str | None = None, context: str | None = None) -> Access:
        """Read a kubeconfig: the file given, else that of KUBECONFIG, else the pod's own, else `~/.kube/config`.

        Raises:
            KubeconfigError: there is none, or it cannot be used.
        """
        try:
            name = kubeconfig or os.environ.get("KUBECONFIG")
            found = (KubeConfig.from_file(name) if name else KubeConfig.from_env()).get(context)
        except (ConfigError, OSError, ValueError, msgspec.ValidationError) as error:
            where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config, and this is no pod"
            raise KubeconfigError(f"{where}: no usable kubeconfig: {error}; say --kubeconfig FILE") from None
        if found is None:
            raise KubeconfigError(f"{kubeconfig or 'the kubeconfig'}: no current context; say --context NAME")
        return cls(found)

    def _ssl(self) -> ssl.SSLContext | None:
        cluster = self._found.cluster
        if not self.server.startswith("https"):
            return None
        try:
            if cluster.certificate_auth_data:
                context = ssl.create_default_context(cadata=base64.b64decode(cluster.certificate_auth_data).decode())
            elif cluster.certificate_auth:
                context = ssl.create_default_context(cafile=str(self._found.abs_file(cluster.certificate_auth)))
            else:
                context = ssl.create_default_context()
            if cluster.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            self._load_own_certificate(context)
        except (OSError, ValueError) as error:
            raise KubeconfigError(f"the certificates of context {self.context!r} cannot be used: {error}") from None
        return context

    def _load_own_certificate(self, context: ssl.SSLContext) -> None:
        user = self._user
        if user.client_cert and user.client_key:
            files = self._found.abs_file(user.client_cert), self._found.abs_file(user.client_key)
            context.load_cert_chain(str(files[0]), str(files[1]))
        elif user.client_cert_data and user.client_key_data:
            self._load_pem(context, base64.b64decode(user.client_cert_data), base64.b64decode(user.client_key_data))

    @staticmethod
    def _load_pem(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        """Load a certificate that is no file; Python can only read files, so it is one for a moment, for us alone."""
        descriptor = os.memfd_create("licorne-certificate")
        try:
            os.write(descriptor, certificate + b"\n" + key)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)

    async def headers(self, *, renew: bool = False) -> dict[str, str]:
        """Return the headers that say who we are. `renew`: the last ones were refused, so look again.

        Raises:
            KubeconfigError: the program that prints the token failed.
        """
        user = self._user
        if user.username and user.password is not None:
            pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        if self._plugin is not None:
            token = await self._plugin.token(renew=renew)
        else:
            token = self._own_token(renew=renew)
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _own_token(self, *, renew: bool) -> str:
        user = self._user
        now = time.monotonic()
        if renew or now >= self._until:
            if user.token_file:
                self._token, self._until = self._read_token(user.token_file), now + TOKEN_FILE_S
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


class _Cluster(msgspec.Struct, rename="kebab"):
    proxy_url: str = ""
    tls_server_name: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _File(msgspec.Struct):
    clusters: list[_NamedCluster] = []


def _passed_over(found: SingleConfig) -> _Cluster:
    """Return what the kubeconfig says of the cluster that lightkube does not read."""
    if found.fname is None:
        return _Cluster()
    read = msgspec.yaml.decode(Path(found.fname).read_bytes(), type=_File)
    return next((one.cluster for one in read.clusters if one.name == found.context.cluster), _Cluster())


def _proxy_of_environment(server: str) -> str | None:
    """Return the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for a server."""
    address = urlsplit(server)
    if urllib.request.proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    return urllib.request.getproxies().get(address.scheme)


__all__ = ["Access", "KubeconfigError"]
