"""Certificates for tests of TLS, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def make_certificates(folder: Path, *names: str) -> Path:
    """Make an authority, and from it a key and a certificate of each name, all for a server on loopback; return the folder.

    The files are `ca.pem` and `ca.key`, and likewise for each name. The test is skipped where openssl is missing.
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
