"""Certificates for tests of TLS, made by openssl."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

FLAGS_OF_313 = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
"""What Python's default contexts have from 3.13 on, and before not."""


def default_flags(monkeypatch: pytest.MonkeyPatch, flags: int) -> None:
    """Have default contexts made with some of these flags, and without the others, whatever this Python does."""
    make = ssl.create_default_context

    def made(**words: Any) -> ssl.SSLContext:
        context = make(**words)
        context.verify_flags = ssl.VerifyFlags((context.verify_flags & ~FLAGS_OF_313) | flags)
        return context

    monkeypatch.setattr(ssl, "create_default_context", made)


def make_certificates(folder: Path, *names: str) -> Path:
    """Make an authority, and from it a key and a certificate of each name, all for a server on loopback; return the folder.

    The files are `ca.pem` and `ca.key`, and likewise for each name. The authority has no key usage, as one made after
    docs/use/protection.md and those of some clusters: Python's default contexts refuse it from 3.13 on. The test is skipped
    where openssl is missing.
    """
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here: it makes the certificates")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in names:
        openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        sign = ("x509", "-req", "-days", "2", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key")
        openssl(*sign, "-CAcreateserial", "-extfile", "names", "-out", f"{name}.pem")
    return folder


def self_signed(folder: Path) -> tuple[bytes, bytes]:
    """Make a key and a certificate for localhost that it signs, `key.pem` and `certificate.pem`; return both."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here: it makes the certificate")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    files = ("-keyout", "key.pem", "-out", "certificate.pem")
    subprocess.run(["openssl", *words.split(), *files], cwd=folder, check=True, capture_output=True)
    return (folder / "key.pem").read_bytes(), (folder / "certificate.pem").read_bytes()
