"""Files after others: what a hostile or stateful file did must not show in the answers about the
next one.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from jaxsight.session import Session
from tests.truth import cases as corpus
from tests.truth.cases import Case
from tests.truth.measure import Given, Judged, given, scratch, session, truths, verdict, write

SANE = "everyday"
PER_SESSION = 50
"""Pairs that one session sees."""


def drawn(count: int, seed: int) -> list[tuple[Case, Case]]:
    """Random pairs of a case of any other family and an everyday one."""
    choose = random.Random(seed)
    every = [case for case in corpus.cases() if not case.alone]
    first = [case for case in every if case.family != SANE]
    second = [case for case in every if case.family == SANE]
    return [(choose.choice(first), choose.choice(second)) for _ in range(count)]


async def measured(pairs: list[tuple[Case, Case]], python: str, jobs: int) -> list[Judged]:
    """Judge the second file of each pair, asked about after the first in the same session.

    The case of a verdict is named `first -> second`.
    """
    sane = list({case.name: case for _, case in pairs}.values())
    known = await asyncio.to_thread(truths, sane, python, jobs)
    judged: list[Judged] = []
    numbered = list(enumerate(pairs))
    shares = [numbered[at : at + PER_SESSION] for at in range(0, len(pairs), PER_SESSION)]
    with scratch() as folder:

        async def work() -> None:
            while shares:
                share = shares.pop()
                root = folder / f"from{share[0][0]}"
                root.mkdir()
                async with session(root, python) as opened:
                    for number, (first, second) in share:
                        name = f"{first.name} -> {second.name}"
                        await _answers(opened, root / f"{number}_first", first)
                        answers = await _answers(opened, root / f"{number}_second", second)
                        for function, truth in known[second.family, second.name, 0].items():
                            answer = answers[function]
                            judge = verdict(answer, truth)
                            judged.append(
                                Judged(first.family, name, 0, function, judge, answer, truth)
                            )

        await asyncio.gather(*(work() for _ in range(jobs)))
    return judged


async def _answers(session: Session, folder: Path, case: Case) -> dict[str, Given]:
    """The answers about a case's functions."""
    write(folder, dict(case.files))
    path = folder / case.main
    session.open(str(path), case.text)
    names = session.engine.documents.functions(str(path))
    answers = {name: await given(session, path, name, True) for name in names}
    session.close(str(path))
    return answers
