"""Shared by the tests of the Kubernetes side: assertions of modules that hold cases explain themselves too."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("kube.cases", "kube.cluster")
