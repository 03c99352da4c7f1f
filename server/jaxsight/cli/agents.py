"""`jaxsight mcp`: the commands that coding agents need, as tools of the Model Context Protocol.

Each tool runs a command of jaxsight's, and returns at most so many characters. An agent names any
file, so code runs only in folders that the user trusts, or has named on the command line: the
commands are told so (`trusted_paths.AGENT`), and decide for each file they read.
This is the only module that imports the protocol's SDK.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from jaxsight import __version__
from jaxsight.cli.errors import FOUND, NOTHING_EXAMINED
from jaxsight.cli.sources.arguments import file_and_function
from jaxsight.cli.trusted_paths import AGENT
from jaxsight.features.asking.parts import AgentAnswer, AnswerPart, AnswerRow
from jaxsight.files import reading
from jaxsight.text.inert import one_line, visible, words
from jaxsight.text.layout import cut
from jaxsight.trust import Trust
from jaxsight.trust.decisions import SSH
from jaxsight.workers import child
from jaxsight.workers.own_python import with_packages

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

_MORE = "and {:,} more lines"


class ToolFailure(ToolError):  # type: ignore[misc] # its package may be missing
    """A tool has no answer; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools, for a user's folders."""

    trust: Trust
    named: Sequence[str]
    """The folders that the user named, which `trust` has."""
    folder: Path
    """What paths of agents are relative to."""

    def serve(self) -> None:
        """Serve an agent on stdin and stdout until it closes them."""
        server = MCPServer("jaxsight", instructions=INSTRUCTIONS, version=__version__)
        for tool in (self.ask, self.check, self.sweep, self.reduce, self.explain):
            server.add_tool(tool)
        server.run("stdio")

    async def ask(
        self,
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
        self.allowed(where)
        if ":" in against:
            self.allowed(against)
        options = ["--question", question, "--budget", str(budget)]
        options += _target(target)
        options += ["--against", _argument(against)] if against else []
        if not text:
            return await self._run("ask", where, *options)
        return await self._run("ask", "-", "--stdin-filename", where, *options, text=text)

    async def check(
        self,
        paths: Annotated[list[str], Field(description="Files or folders.")],
        target: Target = "",
        budget: Budget = _BUDGET,
    ) -> str:
        """Check all JAX functions of files: errors and performance problems, with help."""
        for path in paths:
            self.allowed(path)
        options = _target(target)
        printed = await self._run("check", *paths, "--output-format", "json", *options)
        objects = json.loads(printed)
        examined = [each for each in objects if each["code"] == "examined"]
        found = [each for each in objects if each["severity"] != "information"]
        found.sort(key=lambda each: each["severity"] != "error")
        functions = [function for each in examined for function in each["functions"]]
        seen = sum(bool(function["examined"]) for function in functions)
        rows = []
        for each in found:
            file = Path(each["filename"])
            name = file.relative_to(self.folder) if file.is_relative_to(self.folder) else file
            place = f"{name}:{each['location']['row']}: {each['severity']}[{each['code']}]"
            helps = [f"   help: {each['help']}"] if each["help"] else []
            lines = map(one_line, [f"{place} {each['message']}", *helps])
            rows.append(AnswerRow("\n".join(lines), each))
        unseen = tuple(
            AnswerRow(one_line(f"{function['function']}: {function['reason']}"), function)
            for function in functions
            if not function["examined"]
        )
        parts = [AnswerPart("findings", tuple(rows))]
        parts += [AnswerPart("not examined", unseen)] if unseen else []
        head = f"examined {seen} of {len(functions)} functions"
        return AgentAnswer(head, {}, tuple(parts)).text(budget)

    async def sweep(
        self,
        where: Where,
        sizes: Annotated[list[str], Field(description="E.g. B=1..4096 or L=128,256.")],
        target: Target = "",
        budget: Budget = _BUDGET,
    ) -> str:
        """Compile with other sizes: memory, kernels, time, and the largest size that fits."""
        self.allowed(where)
        named = map(_argument, sizes)
        return _within(await self._run("sweep", where, *named, *_target(target)), budget)

    async def reduce(self, where: Where, budget: Budget = _BUDGET) -> str:
        """Make the smallest file that fails as a function or script does. Runs it for minutes."""
        path, function = self.allowed(where)
        with tempfile.TemporaryDirectory(prefix="jaxsight-") as folder:
            repro, least = Path(folder, "repro.py"), Path(folder, "least.py")
            named = [f"{path}:{function}"] if function else ["run", str(path)]
            await self._run("repro", *named, "-o", str(repro), "--json")
            options = ["-o", str(least), "--json"]
            printed = await self._run("repro", "reduce", str(repro), *options, own=folder)
            reduced = json.loads(printed)
            text = await asyncio.to_thread(reading.text, least)
            has_arrays = reading.is_file(least.with_suffix(".npz"))
        failure = reduced["failure"]
        what = one_line(f"{failure['name']}: {words(failure['message'])}")
        size = f"{reduced['before']} → {reduced['after']} {reduced['unit']}"
        lines = [cut(what, budget // 4), size]
        if has_arrays:
            lines.append("its arrays are not here: `jaxsight repro` and `repro reduce` write them")
        return _within("\n".join([*lines, "", text]), budget)

    async def explain(
        self,
        rule: Annotated[str, Field(description="JX201, or an operation: dot_general.")],
        budget: Budget = _BUDGET,
    ) -> str:
        """Explain a rule (why it matters, an example, how to fix it), or an operation."""
        explained = json.loads(await self._run("explain", _argument(rule), "--json"))
        if isinstance(explained, list):
            lines = [
                f"{row['name']} ({row['language']}): {row['explanation']}" for row in explained
            ]
            return _within("\n".join(lines), budget)
        return _within(explained["page"], budget)

    def allowed(self, where: str) -> tuple[Path, str]:
        """Return the path of a file or folder, and the function that is named after it.

        Raises:
            ToolFailure: it does not exist, or its code may not run.
        """
        file, function = file_and_function(str(self.folder / _argument(where)))
        path, real = Path(file), Path(os.path.realpath(file))
        if not path.exists():
            raise ToolFailure(f"no such file: {cut(one_line(where), 200)}")
        for folder in [path, real] if path.is_dir() else [path.parent, real.parent]:
            if not self.trust.may_run(str(folder)):
                raise ToolFailure(
                    f"code of {one_line(str(folder))} does not run, as the user does not trust it "
                    f"yet; {self.trust.remedy(str(folder))}"
                )
        return path, function

    async def _run(self, *arguments: str, text: str = "", own: str = "") -> str:
        """Return what a command prints; `own` is a folder of ours that it works in.

        Raises:
            ToolFailure: it failed; the message is the command's.
        """
        command = with_packages(sys.executable, "-m", "jaxsight", *arguments)
        trusted = json.dumps([*self.named, *([own] if own else [])])
        variables = {"COLUMNS": "120", "PYTHONUTF8": "1", AGENT: trusted}
        here = replace(
            command, environment=command.environment | variables, folder=str(self.folder)
        )
        status, printed, errors = await child.answered(here, text.encode())
        if status not in (0, FOUND, NOTHING_EXAMINED) or not printed.strip():
            said = (errors or printed).decode("utf-8", "replace").strip()
            raise ToolFailure(visible(said[-1000:]) or "the command printed nothing")
        return printed.decode("utf-8", "replace").rstrip("\n")


def _argument(text: str) -> str:
    """Return an argument of an agent, which must not be an option.

    Raises:
        ToolFailure: it is one.
    """
    if text.startswith("-"):
        raise ToolFailure(f"invalid argument {cut(one_line(text), 200)}")
    return text


def _target(name: str) -> list[str]:
    """Return the option for a target of an agent.

    A host that is named on a command line is one that the user allows; an agent is not the user.

    Raises:
        ToolFailure: it is on another machine.
    """
    if name.startswith(SSH):
        raise ToolFailure("the user chooses other machines: in the setting `target` of the project")
    return ["--target", _argument(name)] if name else []


def _within(text: str, budget: int) -> str:
    """Return the first lines of a text, and how many more there are."""
    lines, shown, left = visible(text).split("\n"), list[str](), budget - len(_MORE)
    for line in lines:
        if (left := left - len(line) - 1) < 0:
            shown.append(_MORE.format(len(lines) - len(shown)))
            break
        shown.append(line)
    return "\n".join(shown)
