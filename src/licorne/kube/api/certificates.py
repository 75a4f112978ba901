"""The TLS contexts of the connections: which certificate the API server must have, and which one is ours.

Files with certificates are replaced while a program runs, as cert-manager and kubelets do, and a program of the kubeconfig
may print another one (`plugin`). Each change makes a new context. aiohttp keeps the connections of each context apart: what
is under way ends on the connections that are there, and each later request goes over one with the new certificate.
"""

from __future__ import annotations

import base64
import os
import ssl
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lightkube.config.models import User

from licorne._tls import client_context

from .errors import KubeconfigError

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

NO_PAIR: Final[tuple[bytes, bytes]] = (b"", b"")


class Certificates:
    """The TLS context for a context of a kubeconfig.

    Parameters:
        found: the context, as lightkube has read it.

    Raises:
        KubeconfigError: a certificate cannot be read or used.
    """

    def __init__(self, found: SingleConfig) -> None:
        self._found = found
        self._user = found.user or User()
        self._secure = found.cluster.server.startswith("https")
        self._printed = NO_PAIR
        self._texts = self._read()
        self.context = self._made(self._texts)
        """For new requests; None: the server is reached without TLS."""

    @property
    def authority(self) -> bytes:
        """The certificates of the authorities that the server's certificate may come from, PEM; empty: the system's."""
        return self._texts[0]

    def look_again(self) -> None:
        """Read the files again; another context if they have changed. What cannot be used, half replaced, changes nothing."""
        try:
            texts = self._read()
            if texts != self._texts:
                self.context, self._texts = self._made(texts), texts
        except KubeconfigError:
            return  # looked at again soon

    def take(self, certificate: bytes, key: bytes) -> None:
        """Use a certificate and its key that a program has printed, PEM; empty: those of the kubeconfig.

        Raises:
            KubeconfigError: they cannot be used.
        """
        if (certificate, key) != self._printed:
            before, self._printed = self._printed, (certificate, key)
            try:
                texts = self._read()
                self.context, self._texts = self._made(texts), texts
            except KubeconfigError:
                self._printed = before
                raise

    def _read(self) -> tuple[bytes, bytes, bytes]:
        """Return the certificates of the authority, the certificate of the client, and its key; each as PEM, empty without one."""
        if not self._secure:
            return b"", *NO_PAIR
        cluster, user = self._found.cluster, self._user
        try:
            authority = self._text(cluster.certificate_auth_data, cluster.certificate_auth)
            if self._printed != NO_PAIR:
                return authority, *self._printed
            certificate = self._text(user.client_cert_data, user.client_cert)
            return authority, certificate, self._text(user.client_key_data, user.client_key)
        except (OSError, ValueError) as error:
            raise self._unusable(error) from None

    def _text(self, data: str | None, name: str | None) -> bytes:
        """Return what stands in the kubeconfig itself, which counts first, or in a file that it names."""
        if data:
            return base64.b64decode(data)
        return Path(self._found.abs_file(name)).read_bytes() if name else b""

    def _made(self, texts: tuple[bytes, bytes, bytes]) -> ssl.SSLContext | None:
        if not self._secure:
            return None
        authority, certificate, key = texts
        cluster = self._found.cluster
        if not authority and (cluster.certificate_auth_data or cluster.certificate_auth):
            raise self._unusable("that of the authority is empty")  # else those of the system would be trusted
        try:
            known = authority.decode("ascii", "ignore")  # its comments may be in any language
            context = client_context(cadata=known or None)
            if cluster.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if certificate and key:
                _load(context, certificate, key)
        except (OSError, ValueError) as error:
            raise self._unusable(error) from None
        return context

    def _unusable(self, error: Exception | str) -> KubeconfigError:
        return KubeconfigError(f"the certificates of context {self._found.context_name!r} cannot be used: {error}")


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate and its key. Python can only read files, so they are one for a moment, which only we can read."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("licorne-certificate")
        try:
            os.write(descriptor, certificate + b"\n" + key)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pair.pem"
            file.write_bytes(certificate + b"\n" + key)
            context.load_cert_chain(file)
