"""REST: the scheduler's state for people and tools (docs/spec/rest-api.md). `make_app` returns an ASGI application.

app         a request from its first byte to its answer: limits, compression, errors
access      tokens and limits; `gate`: who may do what; `sessions`: logging in by a page
routing     from a path to its endpoint
endpoints   the list of all endpoints
handlers    the answer of each endpoint; `debug`: about the process; `questions`: that explain; `stream`: events as they happen
errors      answers to bad requests; `numbers`: numbers of a query
shared      answers that are shared by concurrent requests and cached
views       JSON objects (`licorne.si.rest_objects`) made from the scheduler's; also `allocations` and `config`; `amounts`: what they compute
pieces      large objects in pieces; `answers`: how pieces are sent; `state`: the state dump of a scheduler without a server
openapi     the OpenAPI document
"""

from __future__ import annotations

from licorne.host.web.rest.access import Access, RequestLimits
from licorne.host.web.rest.app import make_app

__all__ = ["Access", "RequestLimits", "make_app"]
