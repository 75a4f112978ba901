"""What others wrote is read and unpacked with a bound: the functions that do so, and that nothing else does."""

from __future__ import annotations

import ast
import gzip
import os
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import licorne
from licorne._bounded import (
    CONTAINERS_MAX,
    UNDECODABLE,
    CutOffError,
    TooLargeError,
    json_value,
    read_all,
    unpacked,
)
from licorne._files import NoFileError, file_bytes, opened
from licorne.state.dump import DumpError, read_dump
from licorne.workload.workload import WorkloadError, read_workload

SOURCE = Path(licorne.__file__).parent
READERS = {"_bounded.py", "_files.py"}
ALLOWED = {
    "_machine.py": "what the kernel says",
    "state/copies.py": "the answer of a fork of this process",
    "host/follower.py": "a process that this one has started",
    "kube/api/certificates.py": "files that the kubeconfig of this user names",
    "kube/api/client.py": "answers of the API server, in whose hands the cluster is",
    "kube/api/config.py": "the kubeconfig of this user",
    "grpc/service/proto/__init__.py": "a file of the package",
    "host/web/page/frame.py": "files of the package",
    "host/web/page/past.py": "a process that this one has started",
    "lab/papers/reproduction.py": "files whose content has been read with bounds before",
    "sim/policies/loading.py": "a program that is run",
    "sim/verification.py": "what this process has written",
    "lab/sweep/running.py": "what a process of this user has written",
}
WHOLE = {"read", "read1", "readline", "readlines", "read_bytes", "read_text"}
"""Methods that without arguments read all that is there."""
UNPACKING = {"decompress", "decompressobj"}


def unbounded(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which something is unpacked, opened to be read, or read without a bound."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = (
            call.func.attr
            if isinstance(call.func, ast.Attribute)
            else "open"
            if getattr(call.func, "id", "") == "open"
            else ""
        )
        first = call.args[0] if call.args else None
        mode = first.value if isinstance(first, ast.Constant) else None
        of_gzip = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "gzip"
        keywords = {keyword.arg for keyword in call.keywords}
        if (
            name in UNPACKING
            or (name in WHOLE and (first is None or name == "read_text"))
            or (name == "open" and (of_gzip or mode in ("r", "rb") or (first is None and "encoding" in keywords)))
        ):
            yield call.lineno


@pytest.mark.parametrize(
    "text",
    [
        "zlib.decompress(data)",
        "zlib.decompressobj()",
        "gzip.open(path)",
        "path.read_bytes()",
        "path.read_text('utf-8')",
        "path.open('rb')",
        "path.open(encoding='utf-8')",
        "answer.read()",
        "stream.readline()",
    ],
)
def test_an_unbounded_read_is_found(text: str) -> None:
    assert list(unbounded(ast.parse(text))) == [1]


def test_nothing_is_read_or_unpacked_elsewhere_without_a_bound() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if path.name not in READERS and (lines := list(unbounded(ast.parse(path.read_text("utf-8")))))
    }
    assert {file: lines for file, lines in found.items() if file not in ALLOWED} == {}
    assert set(ALLOWED) == set(found), "an exception that nothing needs any more"


@pytest.mark.parametrize("text", [b'{"a": ', b'{"a": 1}', b'{"a": "\xff"}', b'{"a": ' + b"[" * 100_000])
def test_what_cannot_be_decoded_raises_one_of_these(text: bytes) -> None:
    with pytest.raises(UNDECODABLE):
        msgspec.json.decode(text, type=dict[str, str] if b"[" not in text else dict[str, object])


def caught(handler: ast.ExceptHandler) -> set[str]:
    """Return the names of the exceptions that a handler takes."""
    nodes = ast.walk(handler.type) if handler.type is not None else ()
    return {getattr(node, "attr", "") or getattr(node, "id", "") for node in nodes}


def test_who_takes_an_error_of_the_decoder_takes_bytes_that_are_no_utf_8_too() -> None:
    converted = {"state/dump.py", "state/recording/entries.py"}  # these read with `json_value`
    converted |= {"cli/objects.py"}  # its caller takes both
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = set().union(*map(caught, node.handlers)) if isinstance(node, ast.Try) else set()
            if names & {"DecodeError", "MsgspecError"} and not names & {"UnicodeDecodeError", "ValueError"}:
                found.add(str(path.relative_to(SOURCE)))
    assert found == converted


def test_what_is_unpacked_is_no_more_than_the_bound() -> None:
    packed = zlib.compress(bytes(1_000))
    assert unpacked(packed, 1_000) == bytes(1_000)
    assert unpacked(gzip.compress(b"a"), 1, gzip=True) == b"a"
    with pytest.raises(TooLargeError, match="has more than 999 bytes once it is unpacked"):
        unpacked(packed, 999)
    with pytest.raises(CutOffError):
        unpacked(packed[:-1], 1_000)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        unpacked(b"xxxx", 1_000)


def test_what_is_unpacked_beyond_the_bound_takes_no_memory() -> None:
    bomb = zlib.compress(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            unpacked(bomb, 1_000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_values_of_json_are_counted_before_they_are_made() -> None:
    assert json_value(b'{"a": [1, 2]}') == {"a": [1, 2]}
    many = b'{"partitions": [' + b"{}," * CONTAINERS_MAX + b"{}]}"
    with pytest.raises(DumpError, match="this is no state dump: it has more than"):
        read_dump(gzip.compress(many, 1))
    with pytest.raises(TooLargeError):
        json_value(b"[" + b"1," * 32_000_001 + b"1]")


def test_objects_that_lack_everything_take_no_memory_that_the_dump_does_not_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("licorne.state.dump.CONTAINERS_MAX", 100)
    with pytest.raises(DumpError, match="too many of its objects lack"):
        read_dump(b'{"partitions": [' + b"{}," * 100 + b"{}]}")


def test_only_regular_files_up_to_the_bound_are_read(tmp_path: Path) -> None:
    sparse, pipe, small = (tmp_path / name for name in ("sparse", "pipe", "small"))
    with sparse.open("wb") as file:
        file.truncate(12 << 30)
    os.mkfifo(pipe)
    small.write_bytes(b"abc")
    assert file_bytes(small, 3) == b"abc"
    for path, bound in ((sparse, 1 << 20), (small, 2)):
        with pytest.raises(OSError, match=f"has more than {bound:,} bytes"):
            file_bytes(path, bound)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(NoFileError, match="is no regular file"):
            file_bytes(path)
    with pytest.raises(IsADirectoryError):
        opened(tmp_path)


def test_a_pipe_that_the_shell_has_opened_is_read_up_to_the_bound() -> None:
    reading, writing = os.pipe()
    path = Path(f"/dev/fd/{reading}")
    os.write(writing, b"abc")
    with pytest.raises(OSError, match="has more than 2 bytes"):
        file_bytes(path, 2, from_shell=True)
    os.write(writing, b"abc")
    os.close(writing)
    assert file_bytes(path, from_shell=True) == b"abc"
    with pytest.raises(NoFileError):
        file_bytes(path)
    os.close(reading)


def test_a_stream_is_read_up_to_the_bound() -> None:
    with Path("/dev/zero").open("rb") as endless, pytest.raises(TooLargeError):
        read_all(endless.read, 100)


def test_a_line_of_a_workload_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licorne.workload.workload.LINE_BYTES", 1_000)
    for path, content in (
        (tmp_path / "w.jsonl", b" " * 5_000),
        (tmp_path / "w.jsonl.gz", gzip.compress(b" " * 5_000)),
    ):
        path.write_bytes(content)
        with pytest.raises(WorkloadError, match=r"w\.jsonl.*:1.* a line of more than 1,000 bytes"):
            read_workload(path)
