"""Where the API server is, and who we are: a kubeconfig, or what a pod finds in its own file system.

lightkube reads the files. What a kubeconfig may name as credentials, and a long-running program must renew, is here:
tokens in files that change, and programs that print a token.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import time
from pathlib import Path
from typing import Final

import msgspec
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User, UserExec
from lightkube.core.exceptions import ConfigError

TOKEN_FILE_S: Final = 60.0
"""How long a token that was read from a file is taken for current."""
EXEC_S: Final = 60.0
"""How long a program that prints a token may take."""
EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class KubeconfigError(Exception):
    """The configuration of the connection cannot be used; the text says what to do."""


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
        self.ssl = self._ssl()

    @classmethod
    def load(cls, kubeconfig: str | None = None, context: str | None = None) -> Access:
        """Read a kubeconfig: the file given, else that of KUBECONFIG, else the pod's own, else `~/.kube/config`.

        Raises:
            KubeconfigError: there is none, or it cannot be used.
        """
        try:
            config = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()
            found = config.get(context)
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
        now = time.monotonic()
        if renew or now >= self._until:
            if user.token_file:
                self._token, self._until = self._read_token(user.token_file), now + TOKEN_FILE_S
            elif user.token:
                self._token, self._until = user.token.strip(), float("inf")
            elif user.exec is not None:
                self._token, self._until = await self._run(user.exec), now + TOKEN_FILE_S
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def _read_token(self, name: str) -> str:
        try:
            return Path(self._found.abs_file(name)).read_text().strip()
        except OSError as error:
            if self._token:
                return self._token  # a moment while the file is replaced
            raise KubeconfigError(f"the token of context {self.context!r} cannot be read: {error}") from None

    async def _run(self, program: UserExec) -> str:
        if program.apiVersion not in EXEC_VERSIONS:
            raise KubeconfigError(f"exec: {program.apiVersion!r}: only {' and '.join(EXEC_VERSIONS)} are supported")
        info = {"apiVersion": program.apiVersion, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        environment |= {one.name: one.value for one in program.env or ()}
        try:
            async with asyncio.timeout(EXEC_S):
                process = await asyncio.create_subprocess_exec(
                    program.command,
                    *(program.args or ()),
                    env=environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                try:
                    out, err = await process.communicate()
                except BaseException:
                    process.kill()
                    raise
            if process.returncode:
                raise KubeconfigError(
                    f"{program.command} ended with {process.returncode}: {err.decode()[:500].strip()}"
                )
            return msgspec.json.decode(out, type=_Credential).status.token
        except TimeoutError:
            raise KubeconfigError(f"{program.command} took longer than {EXEC_S:.0f} s to print a token") from None
        except (OSError, msgspec.DecodeError) as error:
            hint = f"; {program.installHint.strip()}" if program.installHint else ""
            raise KubeconfigError(f"{program.command} printed no token: {error}{hint}") from None


class _CredentialStatus(msgspec.Struct):
    token: str


class _Credential(msgspec.Struct):
    status: _CredentialStatus
