"""Requests as bytes: an answer leaves with its head, answers come in order, and bytes that are no HTTP are refused."""

from __future__ import annotations

import asyncio

import h11
import pytest

from licorne.service import Web
from licorne.web.http import JOINED_MAX, HttpConnection
from service.peers import service

GET = b"GET /ws/v1/clusters HTTP/1.1\r\nHost: here\r\n\r\n"


def asked(request: bytes = GET) -> tuple[HttpConnection, list[bytes]]:
    """A connection on which this was asked, and what it writes of itself."""
    connection, written = HttpConnection(65_536), list[bytes]()
    connection.write = written.append
    connection.receive_data(request)
    assert type(connection.next_event()) is h11.Request
    return connection, written


def head(size: int) -> h11.Response:
    return h11.Response(status_code=200, headers=[("Content-Length", str(size))], reason=b"OK")


@pytest.mark.parametrize("size", [0, 1, JOINED_MAX])
def test_the_head_leaves_with_the_body(size: int) -> None:
    connection, written = asked()
    assert connection.send(head(size)) == b""
    sent = connection.send(h11.Data(data=b"x" * size))
    assert sent.startswith(b"HTTP/1.1 200 OK\r\n")
    assert sent.endswith(b"\r\n\r\n" + b"x" * size)
    assert connection.send(h11.EndOfMessage()) == b""
    assert written == []


def test_a_long_body_is_not_copied() -> None:
    connection, written = asked()
    connection.send(head(JOINED_MAX + 1))
    body = b"x" * (JOINED_MAX + 1)
    assert connection.send(h11.Data(data=body)) is body
    assert [one.endswith(b"\r\n\r\n") for one in written] == [True]


def test_an_answer_without_a_body_leaves_at_its_end() -> None:
    connection, _ = asked()
    connection.send(head(0))
    assert connection.send(h11.EndOfMessage()).endswith(b"\r\n\r\n")


def test_a_client_that_expects_continue_is_answered_at_once() -> None:
    connection, _ = asked(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert connection.send(h11.InformationalResponse(status_code=100, headers=[])).startswith(b"HTTP/1.1 100 ")


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
                    part = await asyncio.wait_for(reader.read(65_536), 20)
                    assert part, answers
                    answers += part
            writer.close()
            return answers

    answers = asyncio.run(story())
    assert [int(one[:3]) for one in answers.split(b"HTTP/1.1 ")[1:]] == statuses
    assert b"Method Not Allowed\n" not in answers  # which would be the body of what has none
