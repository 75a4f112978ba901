"""Shared by the tests of the Kubernetes side: certificates; assertions of modules that hold cases explain themselves too."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.certificates import make_certificates

pytest.register_assert_rewrite("kube.cases", "kube.cluster")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and from it certificates and keys of a server on loopback and of two clients, as files ending in .pem and .key."""
    return make_certificates(tmp_path_factory.mktemp("tls"), "server", "one", "two")
