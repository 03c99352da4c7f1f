"""The tools as the Model Context Protocol has them; the only module that imports its SDK."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from jaxsight import __version__
from jaxsight.cli.agents.tools import ToolFailure, Tools

INSTRUCTIONS = (
    "Ask about JAX functions before and after you change them: `ask` needs no device and runs "
    "nothing but the trace. Answers have at most `budget` characters; ask again about one thing "
    "rather than with a larger budget."
)
_BUDGET = 2000

Budget = Annotated[int, Field(ge=400, le=20_000, description="Most characters of the answer.")]
Where = Annotated[str, Field(description="FILE:FUNCTION, FILE:LINE, or FILE.")]
Against = Annotated[str, Field(description="To compare with: revision, FILE:FUNCTION.")]
Question = Literal["overview", "shapes", "kernels", "why", "fix", "memory", "compare"]
Target = Annotated[str, Field(description="Device, e.g. cuda:h100 or cpu; default: the project's.")]


def serve(tools: Tools) -> None:
    """Serve an agent on stdin and stdout until it closes them."""
    server(tools).run("stdio")


def server(tools: Tools) -> MCPServer:
    """Return the server, with its five tools."""
    made = MCPServer("jaxsight", instructions=INSTRUCTIONS, version=__version__)

    async def ask(
        where: Where,
        question: Question = "overview",
        against: Against = "",
        target: Target = "",
        text: Annotated[str, Field(description="The whole text of the file, if unsaved.")] = "",
        budget: Budget = _BUDGET,
    ) -> str:
        """Ask about a JAX function: inputs, shapes, kernels, memory, findings, fixes as edits.

        `compare` is with HEAD, or with the saved file if there is `text`, or with `against`.
        """
        return await _answered(tools.ask(where, question, target, against, text, budget))

    async def check(
        paths: Annotated[list[str], Field(description="Files or folders.")],
        target: Target = "",
        budget: Budget = _BUDGET,
    ) -> str:
        """Check all JAX functions of files: errors and performance problems, with help."""
        return await _answered(tools.check(paths, target, budget))

    async def sweep(
        where: Where,
        sizes: Annotated[list[str], Field(description="E.g. B=1..4096 or L=128,256.")],
        target: Target = "",
        budget: Budget = _BUDGET,
    ) -> str:
        """Compile with other sizes: memory, kernels, time, and the largest size that fits."""
        return await _answered(tools.sweep(where, sizes, target, budget))

    async def reduce(where: Where, budget: Budget = _BUDGET) -> str:
        """Make the smallest file that fails as a function or script does. Runs it for minutes."""
        return await _answered(tools.reduce(where, budget))

    async def explain(
        rule: Annotated[str, Field(description="JX201, or an operation: dot_general.")],
        budget: Budget = _BUDGET,
    ) -> str:
        """Explain a rule (why it matters, an example, how to fix it), or an operation."""
        return await _answered(tools.explain(rule, budget))

    for tool in (ask, check, sweep, reduce, explain):
        made.add_tool(tool)
    return made


async def _answered(answer: Awaitable[str]) -> str:
    try:
        return await answer
    except ToolFailure as error:
        raise ToolError(str(error)) from error
