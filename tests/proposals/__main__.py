"""Propose example inputs for functions of installed libraries, and print how many can be traced."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import jax

from jaxsight.queries.proposals.trying import Tried
from jaxsight.session import Session
from tests.proposals.choosing import LISTS, Chosen, chosen
from tests.quiet import QUIET
from tests.truth.measure import scratch

FOLDER = Path(__file__).parents[1] / "corpora" / "proposals"
PACKAGES = Path(jax.__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of one function."""

    chosen: Chosen
    outcome: Tried | None
    seconds: float

    @property
    def shown(self) -> bool:
        return self.outcome is not None and self.outcome.is_proved

    @property
    def content(self) -> bool:
        return self.outcome is not None and self.outcome.computes

    @property
    def trivial(self) -> bool:
        return self.outcome is not None and self.outcome.trivial


def load(name: str) -> list[Chosen]:
    """Return the functions of a list."""
    text = (Path(name) if name.endswith(".txt") else FOLDER / f"{name}.txt").read_text(
        encoding="utf-8"
    )
    return [Chosen.read(line) for line in text.splitlines()]


async def measure(
    functions: list[Chosen], packages: Path = PACKAGES, python: str = sys.executable
) -> list[Measured]:
    """Propose example inputs for functions in the files of installed packages."""
    measured: list[Measured] = []
    with scratch() as folder:
        session = Session()
        session.configure([str(folder)], {**QUIET, "python": python}, trusted=True)
        try:
            for function in functions:
                result = await _measured(session, packages / function.file, function)
                measured.append(result)
        finally:
            await session.aclose()
    return measured


async def _measured(session: Session, file: Path, function: Chosen) -> Measured:
    path = str(file)
    text = await asyncio.to_thread(file.read_text, encoding="utf-8")
    session.engine.documents.open(path, text)
    document = await session.engine.documents.read(path)
    assert document is not None
    chunk, definition = next(
        (c, f) for c, f in document.module.functions if f.qualname == function.function
    )
    began = time.monotonic()
    outcome = await session.engine.proposals.outcome(document, chunk, definition)
    session.engine.close(path)
    return Measured(function, outcome, time.monotonic() - began)


def main() -> None:
    """Measure the lists that are named, by default all."""
    parser = argparse.ArgumentParser(prog="python -m tests.proposals", description=__doc__)
    parser.add_argument("lists", nargs="*", default=[*LISTS])
    parser.add_argument("--only", default="", help="functions whose line has this text")
    parser.add_argument("--choose", action="store_true", help="write the lists again")
    parser.add_argument(
        "--environment", type=Path, help="the Python environment with the packages of other lists"
    )
    parser.add_argument("--quiet", action="store_true", help="print the tables alone")
    options = parser.parse_args()
    os.environ.setdefault("JAXSIGHT_TRUST", "always")
    if options.choose:
        for name, functions in chosen(PACKAGES).items():
            text = "".join(f"{function}\n" for function in functions)
            (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
    for name in options.lists:
        functions = [f for f in load(name) if options.only in str(f)]
        packages, python = PACKAGES, sys.executable
        if options.environment is not None:
            packages = next(options.environment.glob("lib/python3*/site-packages"))
            python = str(options.environment / "bin/python")
        _show(name, asyncio.run(measure(functions, packages, python)), quiet=options.quiet)


def _show(name: str, measured: list[Measured], *, quiet: bool) -> None:
    for result in measured if not quiet else ():
        outcome = result.outcome
        if outcome is None:
            print(f"-- {result.chosen}: unreadable")
            continue
        mark = "OK" if result.content else "triv" if result.trivial else "FAIL"
        mark += "!" if result.shown else ""
        print(f"{mark:5} {result.chosen} ({result.seconds:.1f} s)")
        print(f"        {'; '.join(outcome.guess.lines)}")
        if outcome.reason:
            print(f"        {outcome.reason}")
    print(f"\n{name}: {len(measured)} functions")
    print("| library | functions | shown | traced | trivial | not traced |")
    print("|---|---|---|---|---|---|")
    libraries = dict.fromkeys(m.chosen.library for m in measured)
    for library in [*libraries, "all"]:
        those = [m for m in measured if library in (m.chosen.library, "all")]
        counts = Counter(
            shown=sum(m.shown for m in those),
            content=sum(m.content for m in those),
            trivial=sum(m.trivial for m in those),
        )
        failed = len(those) - counts["content"] - counts["trivial"]
        print(
            f"| {library} | {len(those)} | {counts['shown']} | {counts['content']} |"
            f" {counts['trivial']} | {failed} |"
        )


if __name__ == "__main__":
    main()
