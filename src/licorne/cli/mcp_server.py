"""The work of `licorne mcp`: a server of the Model Context Protocol, with which chat assistants ask what four commands of licorne answer.

Its tools are `why`, `shares`, `check` (`licorne config check`) and `place`.
Each call of a tool runs the command with `--json` in a process of its own, so a tool answers what the command answers, and
nothing that it does changes this process. All tools only read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations

from licorne import __version__
from licorne.answers.process import run_module
from licorne.cli.statuses import Status

LIMIT_S: Final = 60
"""Seconds for which `why` looks for changes."""
ENDING_S: Final = 60
"""Seconds that a command may take beyond `LIMIT_S`, to read the state of the scheduler and to write its answer."""
INSTRUCTIONS: Final = """\
Answers questions about a cluster that licorne or Apache YuniKorn schedules, from its state; nothing is changed.
Ask `why` without a name first to see what waits, by reason. A change that `why` proposes has been tried on a copy of the
cluster. Amounts are in base units: vcore in thousandths of a core, memory in bytes."""
READ_ONLY: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def server(source: str, token_file: Path | None = None, tls_ca: Path | None = None) -> MCPServer:
    """Return the server of the tools, for the cluster at a source as `licorne why --from` takes it."""
    access = [f"--{name}={path}" for name, path in (("token-file", token_file), ("tls-ca", tls_ca)) if path is not None]
    turn = asyncio.Semaphore(1)

    async def answer(command: Sequence[str], text: str = "", done: Sequence[int] = (Status.DONE,)) -> dict[str, Any]:
        async with turn:  # one at a time: each answer may take a processor and the memory of a whole cluster
            return await _answer(command, text, done)

    async def why(name: str = "", partition: str = "", *, prove: bool = True) -> dict[str, Any]:
        """Say why an application, ask or pod waits, and the smallest changes with which it would run.

        name: id of an application, key of an ask, or a pod as NAME or NAMESPACE/NAME; empty: all that waits, by reason.
        partition: look at this partition alone. prove: false leaves out the changes, which takes less time.
        """
        options = [f"--from={source}", *access, f"--partition={partition}", f"--limit={LIMIT_S}"]
        return await answer(
            ["why", "--json", *options, *([] if prove else ["--no-prove"]), "--", *([name] if name else [])]
        )

    async def shares(partition: str = "") -> dict[str, Any]:
        """Say who has what of which guarantee and max, by queue, user and group, and who borrows from whom."""
        return await answer(["shares", "--json", f"--from={source}", *access, f"--partition={partition}"])

    async def check(configuration: str, *, beside_cluster: bool = True) -> dict[str, Any]:
        """Check a queue configuration (YAML, or a ConfigMap with one): faults, for which it is refused, and warnings.

        beside_cluster: also compare it with the cluster: guarantees beyond its size, pods that are too large, ...
        """
        options = [f"--from={source}", *access] if beside_cluster else []
        return await answer(["config", "check", "--json", *options, "-"], configuration, (Status.DONE, Status.NO))

    async def place(
        configuration: str, user: str, groups: Sequence[str] = (), queue: str = "", tags: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Say in which queue an application would be placed under a queue configuration, and what each rule said to it.

        queue: the queue that it asks for. tags: its tags, each as KEY=VALUE, such as namespace=dev.
        """
        given = [f"--user={user}", f"--queue={queue}"]
        given += [f"--group={group}" for group in groups] + [f"--tag={tag}" for tag in tags]
        return await answer(["place", "--json", "--config=-", *given], configuration, (Status.DONE, Status.NO))

    tools = [Tool.from_function(tool, annotations=READ_ONLY) for tool in (why, shares, check, place)]
    for tool in tools:  # an argument with another name is refused: passed over, it would leave another question
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"
        arguments.model_rebuild(force=True)
        tool.parameters = arguments.model_json_schema()
    return MCPServer("licorne", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING", tools=tools)


async def _answer(command: Sequence[str], text: str, done: Sequence[int]) -> dict[str, Any]:
    """Run a command of `licorne` that prints JSON, and return that.

    `text`: the standard input of the command. `done`: the exit statuses with which it has answered.

    Raises:
        ToolError: there is no answer; the text says why.
    """
    try:
        status, out, said = await run_module(["licorne.cli", *command], text.encode(), LIMIT_S + ENDING_S)
    except TimeoutError:
        raise ToolError(f"there was no answer within {LIMIT_S + ENDING_S} s") from None
    except (OSError, ValueError) as error:  # no process can be given an argument that is too long, or has a NUL
        raise ToolError(f"the command cannot be started: {error}") from None
    if status not in done or not out:
        raise ToolError(said or f"the command ended with {status}")
    found: dict[str, Any] = json.loads(out)
    return found
