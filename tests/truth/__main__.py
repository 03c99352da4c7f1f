"""`python -m tests.truth`: how many answers about the cases are the truth.

`python -m tests.truth pairs`, `edits` and `libraries` measure files after others, texts after
random edits, and installed packages.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.truth import (
    calls,
    check,
    edits,
    libraries,
    long_session,
    measure,
    pairs,
    programs,
    projects,
)
from tests.truth import cases as corpus
from tests.truth.long_session import LongSession
from tests.truth.measure import Judged, Verdict

WHAT = ("cases", "pairs", "edits", "session", "libraries", "calls")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("what", nargs="?", default="cases", choices=WHAT)
    parser.add_argument("--family", default="", help="measure only this family or library")
    parser.add_argument("--case", default="", help="measure only the case of this name")
    parser.add_argument("--jobs", type=int, default=2, help="sessions and oracles at a time")
    parser.add_argument("--alone", action="store_true", help="open a session for each case")
    parser.add_argument("--python", default=sys.executable, help="interpreter that is measured")
    parser.add_argument("--json", type=Path, help="write all answers to this file")
    parser.add_argument("--short", action="store_true", help="print one line for each answer")
    parser.add_argument(
        "--check", action="store_true", help="check that each case depends on its marked effect"
    )
    parser.add_argument("--count", type=int, default=300, help="pairs, edits or functions to draw")
    parser.add_argument("--seed", type=int, default=0, help="what pairs and edits are drawn by")
    parser.add_argument("--every", type=int, default=25, help="edits between comparisons")
    parser.add_argument("--projects", action="store_true", help="edit several files of a project")
    parser.add_argument("--files", nargs="*", type=Path, default=[], help="files for `calls`")
    parser.add_argument("--found", type=Path, help="keep the functions of libraries in this file")
    options = parser.parse_args()
    begin = time.perf_counter()
    if options.what == "pairs":
        drawn = pairs.drawn(options.count, options.seed)
        judged = asyncio.run(pairs.measured(drawn, options.python, options.jobs))
        return report(judged, options, f"{options.count} pairs", begin)
    if options.what == "calls":
        if not options.files:
            with tempfile.TemporaryDirectory(prefix="jaxsight-programs-") as folder:
                options.files = programs.written(Path(folder), options.count // programs.FUNCTIONS)
                return report_calls(calls.measured(options.files, options.python))
        return report_calls(calls.measured(options.files, options.python))
    if options.what == "session":
        return report_session(
            asyncio.run(
                long_session.measured(options.count, options.seed, options.python, options.every)
            ),
            begin,
        )
    if options.what == "edits" and options.projects:
        judged = asyncio.run(
            projects.measured(options.count, options.seed, options.python, options.jobs)
        )
        return report(judged, options, f"{len(judged)} answers in projects", begin)
    if options.what == "edits":
        sequences = edits.drawn(options.count, options.seed)
        judged = asyncio.run(edits.measured(sequences, options.python, options.jobs))
        return report(judged, options, f"{options.count} edits", begin)
    if options.what == "libraries":
        if options.found is not None and options.found.exists():
            functions = libraries.load(options.found)[: options.count]
        else:
            functions = libraries.found(
                options.count, options.seed, options.python, options.jobs, options.family
            )
        if options.found is not None and not options.found.exists():
            libraries.save(functions, options.found)
        judged = asyncio.run(libraries.measured(functions, options.python, options.jobs))
        return report(judged, options, f"{len(judged)} functions", begin)
    chosen = corpus.cases(options.family, options.case)
    if not chosen:
        print("no such case", file=sys.stderr)
        return 2
    if options.check:
        return check.report(chosen, options.python, options.jobs)
    judged = asyncio.run(
        measure.measured(chosen, options.python, options.jobs, alone=options.alone)
    )
    return report(judged, options, f"{len(chosen)} cases", begin)


def report_calls(compared: list[calls.Compared]) -> int:
    """Print the functions whose inputs from calls are not those of a recorded run."""
    wrong = [each for each in compared if not each.is_same]
    for each in wrong:
        print(f"{each.file} {each.function}: {dict(each.dry)}, recorded", *each.recorded[:3])
    functions = {(each.file, each.function) for each in compared}
    print(f"{len(functions)} functions, {len(compared)} calls, {len(wrong)} not as recorded")
    return bool(wrong)


def report(
    judged: Sequence[Judged], options: argparse.Namespace, measured: str, begin: float
) -> int:
    """Print what is not right and the table; 1 when an answer is silently wrong."""
    if options.json is not None:
        options.json.write_text(json.dumps([dataclasses.asdict(each) for each in judged], indent=1))
    for each in judged:
        if each.verdict is not Verdict.RIGHT:
            print(line(each) if options.short else described(each))
    print(table(judged))
    print(f"{measured}, {time.perf_counter() - begin:.0f} s")
    return 1 if any(each.verdict is Verdict.WRONG for each in judged) else 0


def report_session(found: LongSession, begin: float) -> int:
    """Print the differences and the figures of a long session; 1 if anything differs."""
    for wrong in found.wrong:
        print(wrong)
    for figures in found.figures:
        print(
            f"{figures.edits} edits: {figures.own / 2**20:.1f} MiB, its processes "
            f"{figures.children / 2**20:.1f} MiB, {figures.descriptors} descriptors"
        )
    seconds = time.perf_counter() - begin
    print(f"{found.compared} compared, {len(found.wrong)} files wrong, {seconds:.0f} s")
    return 1 if found.wrong else 0


def table(judged: Sequence[Judged]) -> str:
    """The verdicts by family."""
    rows = [["family", "answers", *(str(v) for v in Verdict)]]
    families = list(dict.fromkeys(each.family for each in judged))
    for family in [*families, ""]:
        counts = Counter(each.verdict for each in judged if family in ("", each.family))
        total = sum(counts.values())
        rows.append([family or "all", str(total), *(str(counts[v]) for v in Verdict)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    right = sum(each.verdict is Verdict.RIGHT for each in judged)
    untrue = sum(bool(each.untrue) for each in judged)
    return "\n".join([*lines, f"right: {right / len(judged):.1%}, untrue caveats: {untrue}"])


def line(judged: Judged) -> str:
    """One answer on one line."""
    stage = f" after edit {judged.stage}" if judged.stage else ""
    said = judged.given.error or "a jaxpr"
    true = judged.truth.error or "a jaxpr"
    notes = "; ".join([judged.given.message, *judged.given.caveats]).strip("; ")
    return (
        f"{judged.verdict}: {judged.family}/{judged.case}:{judged.function}{stage}"
        f" [{said}, truth {true}] {notes[:150]}"
    )


def described(judged: Judged) -> str:
    """One answer with both jaxprs."""
    parts = [line(judged)]
    if judged.text:
        parts += ["  text:", *(f"    {each}" for each in judged.text.splitlines())]
    for name, jaxpr, program in (
        ("shown", judged.given.jaxpr, judged.given.program),
        ("truth", judged.truth.jaxpr, judged.truth.program),
    ):
        text = jaxpr or "(an error)"
        shown = [f"    program {program}"] if program else []
        parts += [f"  {name}:", *(f"    {each}" for each in text.splitlines()), *shown]
    if judged.truth.error:
        parts.append(f"  truth raises {judged.truth.error}: {judged.truth.message}")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
