"""The measurement of the codec compares readings that make the same objects; no speed is tested."""

from __future__ import annotations

import pytest
from bench import codec
from bench.run import BenchError

from licorne.si.wire import decode


def test_asks_without_tags_and_with_two_and_nodes() -> None:
    found = codec.measure_codec(20, 1, lambda _: None)
    assert [one.tags for one in found.asks] == [0, 2]
    assert found.asks[0].bytes < found.asks[1].bytes
    for one in found.asks:
        assert min(one.parsed_us, one.licorne_us) > 0
        assert one.protobuf_us > one.parsed_us
    assert min(found.node_protobuf_us, found.node_licorne_us, found.node_checked_us, found.application_checked_us) > 0


def test_readings_that_differ_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "decode", lambda message, data: decode(message, data.replace(b"node", b"edon")))
    with pytest.raises(BenchError, match=r"^node: protobuf and licorne read something different$"):
        codec.measure_codec(20, 1, lambda _: None)


def test_more_asks_than_a_request_has_are_refused() -> None:
    with pytest.raises(BenchError, match=r"^a request has at most 1000 asks, not 1001$"):
        codec.measure_codec(1001, 1, lambda _: None)
