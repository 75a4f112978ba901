"""Requests as bytes: answers come in order, and bytes that are no HTTP are refused."""

from __future__ import annotations

import asyncio

import pytest

from licorne.grpc.service import Web
from service.peers import service

GET = b"GET /ws/v1/clusters HTTP/1.1\r\nHost: here\r\n\r\n"


TALKS = [
    ("one after the other", [GET, GET], [200, 200]),
    ("at once", [GET * 3], [200, 200, 200]),
    ("in pieces", [GET[:7], GET[7:]], [200]),
    ("a head alone", [b"HEAD /ws/v1/clusters HTTP/1.1\r\nHost: here\r\n\r\n" + GET], [405, 200]),
    ("an old client", [b"GET /ws/v1/clusters HTTP/1.0\r\n\r\n"], [200]),
    ("no such path", [b"GET /x HTTP/1.1\r\nHost: here\r\n\r\n"], [404]),
    ("no HTTP", [b"\x16\x03\x01 what\r\n\r\n"], [400]),
    ("HTTP, then none", [GET, b"what\r\n\r\n"], [200, 400]),
    ("two lengths", [b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"], [400]),
    ("no length", [b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n"], [400]),
    (
        "a body that waits to be wanted",
        [b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", b"{}"],
        [100, 200],
    ),
    (
        "a body in chunks",
        [b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"],
        [200],
    ),
]


@pytest.mark.parametrize(("what", "sent", "statuses"), TALKS, ids=[what for what, _, _ in TALKS])
def test_talks(what: str, sent: list[bytes], statuses: list[int]) -> None:
    async def story() -> bytes:
        async with service(web=Web(addresses=("127.0.0.1:0",))) as made:
            assert made.web is not None
            host, _, port = made.web.addresses[0].rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            answers = b""
            for count, piece in enumerate(sent, 1):
                writer.write(piece)
                while answers.count(b"HTTP/1.1 ") < len(statuses) - len(sent) + count:
                    part = await reader.read(65_536)
                    assert part, answers
                    answers += part
            writer.close()
            return answers

    answers = asyncio.run(story())
    assert [int(one[:3]) for one in answers.split(b"HTTP/1.1 ")[1:]] == statuses
    assert b"Method Not Allowed\n" not in answers  # which would be the body of what has none
