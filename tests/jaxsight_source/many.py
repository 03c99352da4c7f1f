"""Functions of installed libraries, drawn by machine, through the sourcerizer.

`python -m tests.jaxsight_source.many --count 150 --seed 17 --style pretty` draws that many with at
least three equations, writes each in a process of its own, proves it with `harnesses.check`, and prints a
table: exact or refused with a reason, lines per equation, seconds.
"""

from __future__ import annotations

import argparse
import ast
import collections
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from jaxsight_source.api import write
from jaxsight_source.errors import NotTheSame, TooLong, Unsourceable
from jaxsight_source.options import SourceOptions, Style
from tests.jaxsight_source.drawn import Program, Subject, drawn
from tests.jaxsight_source.harnesses import check

LONGEST = 3.0
"""Lines of functions' bodies that a text may have for each equation."""
DRAWING = 15.0
"""Seconds to find arguments for a subject."""
SEVERAL = 20
"""Subjects that one process writes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`exact`, `refused` with a reason, `different` where a text was made and refused because it is
    another program, `wrong` where one was returned that is, `late`, `crashed`, or an error's name.
    """

    title: str
    kind: str
    why: str = ""
    equations: int = 0
    lines: int = 0
    seconds: float = 0.0


def body_lines(text: str) -> int:
    """Count the lines of functions without the main one's head, docstring and checks of
    arguments.
    """
    functions = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name != "_unpack"
    ]
    heads = len(functions) - 1
    statements = [statement for function in functions for statement in function.body]
    return heads + sum(
        statement.end_lineno - statement.lineno + 1
        for statement in statements
        if statement.end_lineno is not None and not _is_apart(statement)
    )


def _is_apart(statement: ast.stmt) -> bool:
    """Whether it is a docstring, or the check that an argument is what the text was written for."""
    match statement:
        case ast.Expr(ast.Constant(str())):
            return True
        case ast.If(body=[ast.Raise(exc=ast.Call(args=[why]))]):
            return "written for" in ast.unparse(why)
        case ast.For(body=body):
            return all(map(_is_apart, body))
    return False


def outcome(program: Program, options: SourceOptions) -> Outcome:
    """Write a program and prove the text."""
    title, began = program.title, time.perf_counter()
    try:
        written = write(program.function, program.args, {}, options)
    except NotTheSame as error:
        return Outcome(title, "different", str(error), program.equations)
    except (Unsourceable, TooLong) as error:
        return Outcome(title, "refused", str(error), program.equations)
    except Exception as error:  # noqa: BLE001 - what is counted
        return Outcome(title, type(error).__name__, str(error), program.equations)
    seconds = time.perf_counter() - began
    difference = check(written, program.function, program.args, {})
    kind = "exact" if difference is None else "wrong"
    why = written.ran.skipped if difference is None else str(difference)
    return Outcome(title, kind, why, program.equations, body_lines(written.text), seconds)


def measured(count: int, seed: int, options: SourceOptions, patience: float) -> Iterator[Outcome]:
    """Return what came of that many subjects, in order, that are programs of three equations.

    They are written in a process apart, which is replaced after some of them, after a crash, and
    where one takes more than `patience` seconds.
    """
    subjects = list(drawn(seed))
    while subjects and count:
        for outcome_ in _apart(subjects, options, patience):
            if outcome_ is not None:
                yield outcome_
                count -= 1
            if not count:
                return


def _apart(
    subjects: list[Subject], options: SourceOptions, patience: float
) -> Iterator[Outcome | None]:
    """Take subjects from the front of the list, and return what came of each."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    several = subjects[:SEVERAL]

    def work() -> None:
        receiver.close()
        for subject in several:
            program = subject.program()
            sender.send(program is not None)
            if program is not None:
                sender.send(outcome(program, options))

    process = context.Process(target=work, daemon=True)
    process.start()
    sender.close()
    try:
        for subject in several:
            subjects.pop(0)
            if not receiver.poll(DRAWING):
                return
            if not receiver.recv():
                yield None
            elif receiver.poll(patience):
                yield receiver.recv()
            else:
                yield Outcome(subject.name, "late", f"not written in {patience:.0f} s")
                return
    except EOFError:
        yield Outcome(subject.name, "crashed", "the process ended without an answer")
    finally:
        receiver.close()
        process.kill()
        process.join()


def main() -> int:
    """Print a line for each function, the ones that are not exact again, and the sums."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.jaxsight_source.many", description=__doc__
    )
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--style", choices=get_args(Style), default="pretty")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds for one function")
    parser.add_argument("--no-run", action="store_true", help="prove by the jaxpr alone")
    chosen = parser.parse_args()
    options = SourceOptions(chosen.style, "drawn", run=not chosen.no_run)
    warnings.simplefilter("ignore")
    kinds: collections.Counter[str] = collections.Counter()
    long, total = [], [0, 0]
    print("| function | outcome | equations | lines per equation | seconds | reason |")
    print("|---|---|--:|--:|--:|---|")
    for came in measured(chosen.count, chosen.seed, options, chosen.patience):
        kinds[came.kind] += 1
        each = came.lines / came.equations if came.lines else 0.0
        if each > LONGEST:
            long.append(f"{came.title} ({each:.1f})")
        if came.lines:
            total = [total[0] + came.lines, total[1] + came.equations]
        why = " ".join(came.why.split())[:300]
        figures = f"{came.equations} | {each:.2f} | {came.seconds:.1f}" if came.lines else " | | "
        print(f"| {came.title} | {came.kind} | {figures} | {why} |", flush=True)
    shares = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    print(f"\n{sum(kinds.values())} functions: {shares}")
    print(f"lines per equation: {total[0] / max(total[1], 1):.2f} over all")
    print(f"more than {LONGEST:.0f} lines per equation: {', '.join(long) or 'none'}")
    return int(kinds.total() != kinds["exact"] + kinds["refused"])


if __name__ == "__main__":
    raise SystemExit(main())
