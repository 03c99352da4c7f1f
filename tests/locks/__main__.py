"""How `jaxsight.lock` judges commits: `python -m tests.locks [noops] [regressions]`.

50 commits that change no program in 5 libraries must differ in nothing; 50 planted regressions must
be found, with their cause at the planted line.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from jaxsight.features.findings.locked import LockableFunction, finding_of_differences, lockable
from jaxsight.locks.differences import differences
from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.source.module import Module
from jaxsight.trust import Policy, Trust
from tests.locks.planted import LIBRARIES, NOOPS, REGRESSIONS, Library, planted
from tests.quiet import QUIET


class LibraryLock:
    """A library's module in a session, and the functions of its unchanged text."""

    def __init__(self, session: Session, file: str, names: tuple[str, ...]) -> None:
        self._session, self._file, self.names = session, file, names
        self.locked: dict[str, LockableFunction] = {}

    async def functions(self, text: str) -> dict[str, LockableFunction]:
        """Return the functions with inputs of a text, by name."""
        self._session.change(self._file, text)
        found = await lockable(self._session.engine, self._file)
        return {each.name: each for each in found if each.name in self.names}

    async def differing(self, text: str) -> dict[str, tuple[str, int]]:
        """Return the functions that differ, each with the finding's message and line (from 1)."""
        found, functions = dict[str, tuple[str, int]](), await self.functions(text)
        for name, function in functions.items():
            before = self.locked[name].facts
            if before is None or function.facts is None:
                found[name] = function.problem, 0
            elif different := differences(before, function.facts):
                finding = finding_of_differences(function, different, Module.parse(text), "")
                found[name] = finding.message, finding.range.start.line + 1
        missing = self.locked.keys() - functions.keys()
        return found | dict.fromkeys(missing, ("gone", 0))


@asynccontextmanager
async def locked(library: Library) -> AsyncIterator[LibraryLock]:
    """Open a library's module, and compile its functions."""
    with TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))  # noqa: ASYNC240 - nothing else runs
        file = folder / f"{library.name}.py"
        (folder / "pyproject.toml").write_text(library.settings, encoding="utf-8")
        file.write_text(library.text, encoding="utf-8")
        session = Session(Projects(Trust(Policy.ALWAYS), spares=0))
        session.configure([name], {**QUIET, "python": sys.executable, "target": "cpu"})
        try:
            session.open(str(file), library.text, in_background=False)
            lock = LibraryLock(session, str(file), library.names)
            lock.locked = await lock.functions(library.text)
            problems = {each.name: each.problem for each in lock.locked.values() if each.problem}
            assert not problems, problems
            assert set(lock.locked) == set(library.names)
            yield lock
        finally:
            await session.aclose()


async def alarms(library: Library, lock: LibraryLock) -> dict[str, dict[str, tuple[str, int]]]:
    """Return what differs after each commit that changes no program."""
    return {
        kind: found
        for kind, rewritten in NOOPS.items()
        if (found := await lock.differing(rewritten(library.text, library.names)))
    }


async def causes(
    library: Library, lock: LibraryLock
) -> dict[tuple[str, str], tuple[str, int, int]]:
    """Return the message, the line and the planted line of each regression; 0 if not found."""
    found = {}
    for (name, _), lines in zip(library.functions, REGRESSIONS, strict=True):
        for kind, line in lines.items():
            text, at = planted(library.text, name, line)
            message, where = (await lock.differing(text)).get(name, ("nothing", 0))
            found[name, kind] = message, where, at
    return found


async def main(wanted: set[str]) -> None:
    """Print what differs, and the totals."""
    totals = Counter[str]()
    for library in LIBRARIES:
        async with locked(library) as lock:
            if "noops" in wanted:
                found = await alarms(library, lock)
                totals["no-op commits"] += len(NOOPS)
                totals["alarms"] += len(found)
                for kind, functions in found.items():
                    print(f"ALARM {library.module}: {kind}: {functions}", flush=True)
            if "regressions" in wanted:
                for (name, kind), (message, line, at) in (await causes(library, lock)).items():
                    is_found = message != "nothing" and not message.startswith("it cannot")
                    totals["regressions"] += 1
                    totals["found"] += is_found
                    totals["at the line"] += is_found and line == at
                    mark = "" if line == at else f" INSTEAD OF {at}"
                    print(f"{library.module}:{name}: {kind}: line {line}{mark}: {message}")
        print(dict(totals), flush=True)


if __name__ == "__main__":
    asyncio.run(main(set(sys.argv[1:]) or {"noops", "regressions"}))
