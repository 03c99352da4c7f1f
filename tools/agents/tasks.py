"""The tasks, and their transcripts: calls of the tools with their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxsight.cli.agents import Tools
from jaxsight.trust import Trust

PROGRAMS = Path(__file__).with_name("programs")
PAGE = Path(__file__).parents[2] / "docs" / "agents-transcripts.md"
MOST_CALLS, MOST_CHARACTERS = 3, 6000
BUDGET = 2000


@dataclass(frozen=True)
class Task:
    """A task: the calls of an agent, the second and later ones with the text that it has edited."""

    title: str
    file: str
    calls: tuple[dict[str, Any], ...]
    edits: tuple[tuple[str, str], ...] = ()
    """What the agent replaces after its first call, because the answer says so."""


@dataclass(frozen=True)
class Transcript:
    task: Task
    text: str
    calls: int
    characters: int


def asked(
    file: str, function: str, *, target: str = "", compared: bool = True, **first: str
) -> tuple:
    """The calls of a task that is seen, changed and compared."""
    where = {"where": f"{file}.py:{function}", **({"target": target} if target else {})}
    calls = [{"tool": "ask", **where, **first}]
    if compared:
        calls.append({"tool": "ask", **where, "question": "compare", "text": "…"})
    return tuple(calls)


H100 = "cuda:h100"
TASKS: Sequence[Task] = (
    Task(
        "Remove a fusion boundary",
        "fusion",
        asked("fusion", "phases", target=H100),
        (
            (
                "jnp.sum(grid * x, axis=1, keepdims=True)",
                "(grid[:, 0] * x[:, 0] + grid[:, 1] * x[:, 1])[:, None]",
            ),
        ),
    ),
    Task(
        "Fit into memory",
        "memory",
        (
            {"tool": "ask", "where": "memory.py:scores", "target": H100, "question": "memory"},
            {"tool": "sweep", "where": "memory.py:scores", "sizes": ["B=1..16"], "target": H100},
        ),
    ),
    Task(
        "Delete an all-gather",
        "gather",
        asked("gather", "layer", target="cpu:8", question="why"),
        (("w: f32[512, 512@data]", "w: f32[512, 512]"),),
    ),
    Task("Stop a recompilation", "recompiles", asked("recompiles", "train", compared=False)),
    Task("Find a NaN", "nan", asked("nan", "safe_norm", compared=False, question="fix")),
    Task(
        "Shrink a crash",
        "crash",
        (
            {"tool": "ask", "where": "crash.py:model"},
            {"tool": "reduce", "where": "crash.py:model"},
        ),
    ),
    Task(
        "Speed up a linear system",
        "solve",
        asked("solve", "weights", target=H100),
        (("jnp.linalg.inv(a) @ b", "jnp.linalg.solve(a, b)"),),
    ),
    Task(
        "Speed up the largest values",
        "largest",
        asked("largest", "best", target=H100),
        (
            ("import jax.numpy as jnp", "import jax"),
            ("jnp.sort(scores, axis=-1)[:, -4:]", "jax.lax.top_k(scores, 4)[0][:, ::-1]"),
        ),
    ),
    Task(
        "Speed up a lookup",
        "lookup",
        asked("lookup", "embed", target=H100),
        (("jax.nn.one_hot(tokens, 4096) @ table", "table[tokens]"),),
    ),
    Task("Upgrade JAX", "upgrade", asked("upgrade", "clipped", compared=False, question="fix")),
    Task("Add inputs", "inputs", asked("inputs", "attention", compared=False)),
    Task(
        "Explain a shape",
        "shapes",
        ({"tool": "ask", "where": "shapes.py:13", "question": "shapes"},),
    ),
)


async def transcript(task: Task, root: Path) -> Transcript:
    """The transcript of a task, on the programs in a folder."""
    program = (root / f"{task.file}.py").read_text(encoding="utf-8")
    edited = program
    for old, new in task.edits:
        assert old in edited, old
        edited = edited.replace(old, new)
    tools = Tools(Trust(trusted=[str(root)], terminal=True), [str(root)], root)
    parts, characters = [], 0
    for call in task.calls:
        answer = await _answer(tools, call, edited)
        characters += len(answer)
        shown = {name: value for name, value in call.items() if name != "tool"}
        arguments = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        parts.append(f"```text\n>>> {call['tool']}({arguments})\n{answer}\n```")
    return Transcript(task, "\n\n".join(parts), len(task.calls), characters)


async def _answer(tools: Tools, call: dict[str, Any], edited: str) -> str:
    match call:
        case {"tool": "ask", "where": where}:
            question, target = call.get("question", "overview"), call.get("target", "")
            text = edited if "text" in call else ""
            return await tools.ask(where, question, "", target, text, BUDGET)
        case {"tool": "sweep", "where": where, "sizes": sizes}:
            return await tools.sweep(where, sizes, call.get("target", ""), BUDGET)
        case {"tool": "reduce", "where": where}:
            return await tools.reduce(where, BUDGET)
    raise AssertionError(call)


def page(found: Sequence[Transcript]) -> str:
    """The page of the documentation."""
    parts = [HEAD]
    for each in found:
        program = (PROGRAMS / f"{each.task.file}.py").read_text(encoding="utf-8")
        calls = "1 call" if each.calls == 1 else f"{each.calls} calls"
        parts.append(
            f'## {each.task.title}\n\n```python title="{each.task.file}.py"\n{program}```\n\n'
            f"{each.text}\n\n{calls}, {each.characters:,} characters."
        )
    return "\n\n".join(parts) + "\n"


HEAD = """\
# Tasks of agents

Twelve tasks, answered by the tools of [`jaxsight mcp`](agents.md) alone, each in at most three calls
and 6,000 characters. `text="…"` is the text that the agent has edited as the first answer says.
`python -m tools.agents --write` makes this page.

"""
