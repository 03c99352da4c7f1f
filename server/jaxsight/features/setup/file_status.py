"""What an open file is compiled for, and how many of its functions have example inputs."""

from __future__ import annotations

import asyncio
import re

from jaxsight.events import FileStatus, TargetProblem
from jaxsight.features.setup.unshown import Unshown, unshown
from jaxsight.queries.choices import environment_of
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.targets.target import Target
from jaxsight.workers.compilation.compilers import Trouble

_JAX = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+"
    r"(?:jax|flax|haiku|equinox|optax|numpyro|diffrax|distrax|chex|jaxtyping)\b",
    re.MULTILINE,
)
"""An import of JAX, or of a library on top of it."""


class FileStatuses:
    """The statuses of open files; the session's owner is told when one changes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last: dict[str, FileStatus] = {}
        self._unshown: dict[str, Unshown] = {}

    def forget(self, path: str) -> None:
        """Forget a file that was closed."""
        self._last.pop(path, None)
        self._unshown.pop(path, None)

    async def update(self, document: Document, *, is_settled: bool) -> None:
        """Tell what is known of a file now, if that is new.

        Args:
            document: the file.
            is_settled: whether inputs that nobody wrote have been looked for.
        """
        engine, path = self._engine, document.path
        target, module = engine.choices.target(path), document.module
        subjects = engine.documents.subjects(document)
        problem, detail = await self._problem(document, target)
        reasons = await unshown(engine, document, is_settled) or self._unshown.get(path, Unshown())
        self._unshown[path] = reasons
        status = FileStatus(
            path,
            target.name,
            "; ".join((target.title, *target.facts)),
            problem,
            detail,
            len(module.functions),
            sum(bool(subject.examples.sets) for subject in subjects),
            _JAX.search(module.text) is not None,
            reasons.why,
            reasons.detail,
            reasons.using_jax,
            reasons.shown,
            sum(subject.is_proposed for subject in subjects),
        )
        if self._engine.documents.get(path) is document and self._last.get(path) != status:
            self._last[path] = status
            self._engine.events.put_nowait(status)

    async def _problem(self, document: Document, target: Target) -> tuple[TargetProblem, str]:
        """Return why nothing is compiled for a target, in a word and a sentence."""
        engine, path = self._engine, document.path
        project = engine.projects.of(path)
        if target.host:
            for view in await engine.traces.known_views(document):
                refusal = engine.programs.refusal(view)
                if refusal is not None:
                    trouble = refusal.trouble
                    if trouble.kind == "approval":
                        return "waiting", trouble.message
                    if trouble.kind == "death":
                        return "unreachable", trouble.message
        elif not target.is_own and project.jax:
            environment = await asyncio.to_thread(environment_of, target, "", project.jax)
            if isinstance(environment, Trouble):
                return "missing", environment.message
        return "", ""
