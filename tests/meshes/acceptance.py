"""Compare what jaxsight shows of the programs of `tests/corpora/meshes` with an independent count.

For `cpu:8`, `oracle.py` compiles the file in another process. For an absent target, the HLO of the
compile that jaxsight shows is counted; the program is the same.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxsight.features.kernels.table import record
from jaxsight.features.named_function import compiled_function
from jaxsight.projects.projects import Projects
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from tests.corpora.meshes.corpus import FOLDER, Program
from tests.meshes.independent import Moved, collectives

DEVICES = 8
EIGHT = {"tpu:v5e:4x4": "tpu:v5e:2x4"}
"""Targets of eight devices, for programs that ask for a mesh of all devices that is one of eight."""
ORACLE = Path(__file__).with_name("oracle.py")


@dataclass(frozen=True)
class Answer:
    """What jaxsight shows of a program, or why it shows nothing."""

    shown: Counter[Moved] = field(default_factory=Counter)
    hlo: str = ""
    devices: int = 0
    collectives: tuple[dict[str, Any], ...] = ()
    rematerialized: tuple[dict[str, Any], ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Compared:
    """A program, what is shown of it, and what was counted independently."""

    program: Program
    answer: Answer
    counted: Counter[Moved]
    error: str = ""
    """Why the independent compile failed."""

    @property
    def problem(self) -> str:
        """How both differ; empty if they agree."""
        if self.error or self.answer.error:
            return f"independent: {self.error}" if self.error else f"jaxsight: {self.answer.error}"
        if self.answer.shown == self.counted:
            return ""
        more, less = self.answer.shown - self.counted, self.counted - self.answer.shown
        return f"shown, but not counted: {_text(more)}; counted, but not shown: {_text(less)}"


def compare(programs: Sequence[Program], target: str) -> list[Compared]:
    """Ask jaxsight for each program, and count independently."""
    answers = asyncio.run(ask(programs, target))
    if target.startswith("cpu"):
        counts = independent(programs)
    else:
        counts = [(collectives(answer.hlo, answer.devices), "") for answer in answers]
    return [
        Compared(program, answer, counted, error)
        for program, answer, (counted, error) in zip(programs, answers, counts, strict=True)
    ]


async def ask(programs: Sequence[Program], target: str, folder: Path = FOLDER) -> list[Answer]:
    """Return what jaxsight shows on a target, with this Python as that of the project."""
    on = [EIGHT.get(target, target) if each.needs_eight else target for each in programs]
    answers: dict[Program, Answer] = {}
    for one in dict.fromkeys(on):
        chosen = [each for each, its in zip(programs, on, strict=True) if its == one]
        session = Session(Projects(Trust(Policy.ALWAYS)))
        try:
            session.configure([str(folder)], {"python": sys.executable, "target": one})
            for program in chosen:
                path = folder / program.file
                answers[program] = await _ask(session, program, path, path.read_text())
        finally:
            await session.aclose()
    return [answers[program] for program in programs]


async def _ask(session: Session, program: Program, path: Path, text: str) -> Answer:
    session.open(str(path), text)
    try:
        view, result = await compiled_function(
            session.engine, str(path), program.function, complete=True
        )
    except LookupError as error:
        return Answer(error=str(error))
    finally:
        session.close(str(path))
    if isinstance(result, Refused):
        return Answer(error=result.trouble.message or repr(view.answer.reply)[:300])
    return _answer(result, program)


def _answer(kernels: LocatedFigures, program: Program) -> Answer:
    figures: Any = record(kernels, program.function)
    shown: Counter[Moved] = Counter()
    for each in figures["collectives"]:
        groups = each["groups"]
        is_permute = each["kind"] == "collective-permute"
        size = len(groups) if is_permute else max(map(len, groups), default=1)
        shown[Moved(each["kind"], each["bytes"], size)] += each["runs"]
    compiled = kernels.compiled
    return Answer(
        shown,
        compiled.hlo,
        compiled.devices,
        tuple(figures["collectives"]),
        tuple(figures["rematerialized"]),
    )


def independent(programs: Sequence[Program]) -> list[tuple[Counter[Moved], str]]:
    """Compile each program in a process for its file, and count the collectives."""
    counted: dict[Program, tuple[Counter[Moved], str]] = {}
    for file in dict.fromkeys(program.file for program in programs):
        chosen = [program for program in programs if program.file == file]
        asked = json.dumps([(program.function, program.arguments) for program in chosen])
        done = subprocess.run(
            [sys.executable, str(ORACLE), str(FOLDER / file)],
            input=asked,
            capture_output=True,
            text=True,
            check=True,
        )
        for program, answer in zip(chosen, json.loads(done.stdout), strict=True):
            error = answer.get("error", "")
            counts = Counter[Moved]() if error else collectives(answer["hlo"], DEVICES)
            counted[program] = counts, error
    return [counted[program] for program in programs]


def table(results: Sequence[Compared]) -> str:
    """Return a line for each program, and how many kinds, counts and bytes are equal."""
    lines = []
    for result in results:
        lines.append(f"{result.program.name:55} {_text(result.counted) or '-'}")
        if result.problem:
            lines.append(f"    {result.problem}")
    equal = sum(not result.problem for result in results)
    total = sum(sum(result.counted.values()) for result in results)
    same = sum(sum((result.counted & result.answer.shown).values()) for result in results)
    lines.append(f"{equal} of {len(results)} programs equal")
    lines.append(f"{same} of {total} collectives with equal kind, count, bytes and group size")
    return "\n".join(lines)


def _text(moved: Counter[Moved]) -> str:
    return ", ".join(
        f"{count} × {each.kind} {each.bytes:,} B in {each.group_size}"
        for each, count in sorted(moved.items())
    )
