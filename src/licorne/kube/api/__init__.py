"""The client of the API server: `config` says where it is, `kinds` what there is, `client` calls it.

`plugin`: programs that print credentials; `certificates`: TLS, with certificates that change; `errors`: what a call may raise.
"""

from __future__ import annotations

from licorne._extras import require

require("kube")

from .client import Client, Fault, Page, Requests, WatchEvent
from .config import Access
from .errors import ApiError, ExpiredError, KubeconfigError, UnansweredError
from .kinds import Kind

__all__ = [
    "Access",
    "ApiError",
    "Client",
    "ExpiredError",
    "Fault",
    "Kind",
    "KubeconfigError",
    "Page",
    "Requests",
    "UnansweredError",
    "WatchEvent",
]
