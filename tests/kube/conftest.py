"""Shared by the tests of the Kubernetes side: certificates; assertions of modules that hold cases explain themselves too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.register_assert_rewrite("kube.cases", "kube.cluster")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and from it certificates and keys of a server on loopback and of two clients, as files ending in .pem and .key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here: it makes the certificates")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "one", "two"):
        openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        sign = ("x509", "-req", "-days", "2", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key")
        openssl(*sign, "-CAcreateserial", "-extfile", "names", "-out", f"{name}.pem")
    return folder
