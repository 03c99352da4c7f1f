"""A long session: somebody edits four files for hours, and all that is shown is what a server shows
that was started a moment ago.

Texts are unfinished at times; definitions are renamed, moved, deleted, written again and repeated;
files are saved, closed, and changed on disk.
"""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass, field

import psutil

from jaxsight.session import Session
from tests.features.everything_shown import differences, shown, untrue
from tests.truth import projects
from tests.truth.measure import scratch, session, write

COMPARED_EVERY = 25
FILES = 4


@dataclass(slots=True)
class Figures:
    """What a session took: bytes of this process and of all its children, and descriptors."""

    edits: int
    own: int
    children: int
    descriptors: int


@dataclass(slots=True)
class LongSession:
    """What was found: the differences with the texts that they are about, and figures."""

    compared: int = 0
    wrong: list[str] = field(default_factory=list)
    figures: list[Figures] = field(default_factory=list)


async def measured(count: int, seed: int, python: str, every: int = COMPARED_EVERY) -> LongSession:
    """Edit a project `count` times, and compare after each `every` edits."""
    choose = random.Random(seed)
    found = LongSession()
    with scratch() as folder:
        project = projects.drawn(choose, FILES - 2)
        write(folder, project.disk)
        async with session(folder, python) as lasting:
            typist = projects.Typist(project, folder, lasting, choose, redefines=True)
            for name in sorted(project.disk.keys() - {projects.DATA}):
                typist.show(name)
            for edit in range(1, count + 1):
                await typist.act()
                if edit % every == 0:
                    await typist.settle()
                    await _compare(typist, lasting, python, found)
                    found.figures.append(_figures(edit))
    return found


async def _compare(
    typist: projects.Typist, lasting: Session, python: str, found: LongSession
) -> None:
    """Compare the files that are open with what a fresh session shows of the same texts.

    Both are compared at rest; what the lasting one says before may be less, or stale.
    """
    texts, folder = typist.project.editor, typist.folder
    paths = {name: str(folder / name) for name in texts}
    at_once = {name: await shown(lasting, paths[name], text) for name, text in texts.items()}
    async with session(folder, python) as fresh:
        for name, text in texts.items():
            fresh.open(paths[name], text)
        for name, text in texts.items():
            await shown(fresh, paths[name], text)  # of two functions of a name, one supersedes
        await _at_rest()
        for name, text in texts.items():
            expected = await shown(fresh, paths[name], text)
            actual = await shown(lasting, paths[name], text)
            found.compared += len(expected)
            different = differences(actual, expected)
            if too_early := untrue(at_once[name], expected):
                different["at once"] = too_early
            if different:
                history = "; ".join(typist.history[-COMPARED_EVERY:])
                all_texts = "\n".join(f"# {n}\n{t}" for n, t in typist.project.texts.items())
                found.wrong.append(f"{name} after {history}: {different}\n{all_texts}")


async def _at_rest() -> None:
    """Wait until no session looks at documents in the background: programs run there."""
    while looking := {t for t in asyncio.all_tasks() if t.get_name().startswith("trace ")}:
        await asyncio.wait(looking)


def _figures(edits: int) -> Figures:
    here = psutil.Process(os.getpid())
    children = sum(child.memory_info().rss for child in here.children(recursive=True))
    return Figures(edits, here.memory_info().rss, children, here.num_fds())
