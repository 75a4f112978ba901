"""`licorne mcp`: its tools answer what the commands answer, only read, and say why they have no answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from licorne.cli import run as run_command
from licorne.cli.mcp_server import server

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pods-wait"
DUMP = str(EXAMPLE / "dump.json")
CONFIGURATION = (EXAMPLE / "raised.yaml").read_text()
Call = Callable[..., Any]


@pytest.fixture
def call() -> Call:
    """Call a tool of a server in this process: (whether it failed, what it answers)."""

    def called(tool: str, source: str = DUMP, **arguments: Any) -> tuple[bool, Any]:
        async def run(client: Client) -> tuple[bool, Any]:
            result = await client.call_tool(tool, arguments)
            return bool(result.is_error), result.structured_content or getattr(result.content[0], "text", "")

        found: tuple[bool, Any] = with_client(server(source), run)
        return found

    return called


def with_client(to: Any, run: Callable[[Client], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with Client(to) as client:
            return await run(client)

    return asyncio.run(connected())


def test_the_tools_say_that_they_only_read() -> None:
    async def tools(client: Client) -> Any:
        return (await client.list_tools()).tools

    found = {tool.name: tool for tool in with_client(server(DUMP), tools)}
    assert found.keys() == {"why", "shares", "check", "place"}
    assert all(tool.annotations.read_only_hint and tool.description for tool in found.values())
    assert found["place"].input_schema["required"] == ["configuration", "user"]


def test_why(call: Call) -> None:
    failed, answer = call("why", name="search/index-0")
    assert not failed
    assert answer["sentence"] == "The limit of user sue at root.search leaves too little: 4 vcore missing."
    assert answer["proposals"]["found"][0]["text"].startswith("4 vcore more in the limit of user sue")
    failed, answer = call("why", prove=False)
    assert (failed, answer["type"], answer["waiting"]) == (False, "overview", 4)


def test_a_recording_is_asked_about_its_end(call: Call, tmp_path: Path) -> None:
    holiday = EXAMPLE.parent / "gpu-holiday" / "workload.jsonl"
    assert run_command(["simulate", str(holiday), "--record", str(tmp_path / "rec")]) == 0
    failed, answer = call("why", source=str(tmp_path / "rec"), prove=False)
    assert (failed, answer["type"], answer["waiting"]) == (False, "overview", 0)


def test_shares(call: Call) -> None:
    failed, answer = call("shares")
    assert not failed
    assert [part["partition"] for part in answer["partitions"]] == ["default"]


def test_a_configuration_is_checked_beside_the_cluster_or_alone(call: Call) -> None:
    _, answer = call("check", configuration=CONFIGURATION)
    assert [each["rule"] for each in answer["warnings"]] == ["cluster-unbound"]
    assert call("check", configuration=CONFIGURATION, beside_cluster=False) == (False, {"faults": [], "warnings": []})
    failed, answer = call("check", configuration="partitions: 3")
    assert (failed, [each["rule"] for each in answer["faults"]]) == (False, ["yaml-type"])


def test_place(call: Call) -> None:
    _, answer = call("place", configuration=CONFIGURATION, user="ann", groups=["dev"], queue="root.ads")
    assert (answer["queue"], answer["admitted_by"]) == ("root.ads", "root: submitacl")
    failed, answer = call("place", configuration=CONFIGURATION, user="ann", tags=["namespace=x"])
    assert (failed, answer["queue"]) == (False, None)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("why", {"name": "indx"}, "did you mean 'index'?"),
        (
            "why",
            {"name": "--config=/etc/passwd"},
            "no application, ask, allocation or pod is named '--config=/etc/passwd'",
        ),
        ("why", {"partition": "gpu"}, "there is no partition 'gpu'; there are: default"),
        ("shares", {"partition": "--from=x"}, "there is no partition '--from=x'"),
        ("why", {"name": "x" * 200_000}, "the command cannot be started: [Errno 7] Argument list too long"),
        ("why", {"name": "x\0"}, "the command cannot be started: embedded null byte"),
        ("why", {"nme": "index"}, "Extra inputs are not permitted"),
        ("why", {"source": "nowhere.json"}, "nowhere.json: No such file or directory"),
        ("place", {"configuration": "partitions: 3", "user": "ann"}, "the queue configuration cannot be used"),
    ],
)
def test_where_there_is_no_answer_the_tool_says_why(
    call: Call, tool: str, arguments: dict[str, Any], said: str
) -> None:
    failed, text = call(tool, **arguments)
    assert failed
    assert said in text


def test_the_command_speaks_on_standard_input_and_output() -> None:
    async def run(client: Client) -> Any:
        return (await client.call_tool("why", {"prove": False})).structured_content

    command = StdioServerParameters(command=sys.executable, args=["-m", "licorne.cli", "mcp", "--from", DUMP])
    assert with_client(command, run)["waiting"] == 4
