"""The TLS context of a connection to a server: how strictly its certificate is verified, the same on every Python."""

from __future__ import annotations

import ssl


def client_context(*, cafile: str | None = None, cadata: str | None = None) -> ssl.SSLContext:
    """Return a context that trusts these authorities, PEM in a file or as text, or those of the system where both are None.

    It is as strict as gRPC, curl and Go's clients. From Python 3.13 on the default refuses authorities without a key usage or
    an authority key identifier, such as those of clouds' clusters (kubernetes-client/python#2394) and those that `openssl req -x509`
    makes by default; before, it refused a certificate that is trusted itself, but that another authority has signed, such as an
    intermediate of a company.

    Raises:
        OSError: the file cannot be read, or has no certificate; an `ssl.SSLError` is one.
        ValueError: the text cannot be read.
    """
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    return context
