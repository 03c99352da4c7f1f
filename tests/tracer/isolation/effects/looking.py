"""Looks at forms of effects in each way, and says what changed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.features.named_function import view_of
from tests.terminal import jaxsight, kept_sessions
from tests.tracer.isolation.effects.forms import Form, modules
from tests.truth.measure import session
from tests.workers.outside import Outside, marked, soon

_MARK = "JAXSIGHT_TEST_OF_EFFECTS"

_RUN = """
import sys
sys.path.insert(0, ".")
if __name__ == "__main__":
    for file in sys.argv[1:]:
        with open(file) as text:
            exec(compile(text.read(), file, "exec"), {"__name__": "__main__", "__file__": file})
"""
"""Runs files as programs; `multiprocessing` imports this one, not theirs."""


@dataclass(slots=True)
class Looked:
    """What became of a form."""

    changes: list[str] = field(default_factory=list)
    """What changed as it was looked at, and how that was."""
    runs: int = 0
    """How often the statement began."""
    shown: str = ""
    """What `show` prints about the function."""
    is_real: bool = False
    """Whether it changes something without jaxsight."""


def looked_at(forms: Sequence[Form]) -> dict[Form, Looked]:
    """Look at forms in an editor's session, by `check` and by `show`; run them last."""
    with tempfile.TemporaryDirectory(prefix="effects-") as folder, ExitStack() as things:
        root = Path(folder).resolve()
        made = {
            form: things.enter_context(Outside(root / str(number)))
            for number, form in enumerate(forms)
        }
        return _looked_at(root / "project", made)


def _looked_at(project: Path, made: Mapping[Form, Outside]) -> dict[Form, Looked]:
    texts = [
        modules({form: made[form].names for form in made if form.place == place})
        for place in dict.fromkeys(form.place for form in made)
    ]
    project.mkdir()
    for files in texts:
        for name, text in files.items():
            (project / name).write_text(text)
    found = {form: Looked() for form in made}

    def note(how: str) -> None:
        for form, outside in made.items():
            found[form].changes += [f"{how}: {change}" for change in outside.changes()]

    mark, before = os.urandom(8).hex(), _listed(project)
    os.environ[_MARK] = mark
    asyncio.run(_edited(project, texts))
    note("session")
    with kept_sessions():
        jaxsight("check", ".", cwd=project)
        note("check")
        for form in made:
            shown = jaxsight("show", f"{form.module}.py:f", cwd=project)
            found[form].shown = shown.stdout or shown.stderr
    del os.environ[_MARK]
    soon(lambda: not any(marked(mark)))
    note("show")
    more = [f"left {process}" for process in marked(mark)]
    more += [f"project: {each}" for each in {*before.items()} ^ {*_listed(project).items()}]
    for form, outside in made.items():
        found[form].changes += more
        found[form].runs = outside.runs
    (project / "run.py").write_text(_RUN)
    subprocess.run(
        [sys.executable, "run.py", *([*files][-1] for files in texts)],
        cwd=project,
        env={**os.environ, _MARK: mark},
        stderr=subprocess.DEVNULL,
        check=True,
    )
    for form, outside in made.items():
        found[form].is_real = outside.is_changed_soon()
    for process in marked(mark):
        process.kill()
    return found


async def _edited(project: Path, texts: Sequence[Mapping[str, str]]) -> None:
    async with session(project, sys.executable) as running:
        for files in texts:
            for name, text in files.items():
                running.open(str(project / name), text)
            path = str(project / next(iter(files)))
            await running.background.settle(path)
            for function in running.engine.documents.functions(path):
                await view_of(running.engine, path, function)


def _listed(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_ctime_ns for path in [folder, *folder.rglob("*")]}
