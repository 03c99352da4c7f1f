"""Why functions that use JAX show nothing: no example inputs, missing modules, errors.

Missing modules are named also where all functions are shown: placeholders stand in for them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from jaxsight.events import FileStatus, TargetProblem
from jaxsight.examples.jax_use import JaxUse
from jaxsight.features.findings import failures
from jaxsight.features.inputs import ReachedPlaces
from jaxsight.queries.choices import environment_of
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question
from jaxsight.source.definitions import Function
from jaxsight.source.module import ModuleChunk
from jaxsight.targets.target import Target
from jaxsight.text.inert import clause
from jaxsight.text.units import count, some
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.results import Died

_LONGEST = 80
"""Characters of a clause, a choice: status bars share a line with other extensions."""
NOT_CALLED = "not called: try"
"""Why a function shows nothing whose text does not prove the inputs that follow."""
WITHOUT = "no example inputs"
"""Why a function shows nothing of which nothing else is known."""
PROPOSES = "*Add example inputs* proposes some"
"""What follows such a reason, for people."""
_NAMED = 3
"""Functions or modules that a sentence names, a choice: it is a tooltip; others are counted."""


Unshown = tuple[str, str, int, int]
"""Why not all functions of a file show something, in a clause, which is empty if all do and no
module is missing, and in sentences; how many functions use JAX, and how many of these show
something."""


async def unshown(engine: Engine, document: Document, is_settled: bool) -> Unshown | None:
    """Return why functions of a file show nothing; `None` while some are still being traced.

    That they have no example inputs is known only of a file that is settled: one for whose
    functions inputs have been looked for.
    """
    module = document.module
    jax_use = JaxUse.of(module)
    subjects = engine.documents.subjects(document)
    having = {subject.name for subject in subjects if subject.examples.sets}
    using = [
        placed
        for placed in module.functions
        if placed.function.qualname in having or jax_use.by(*placed)
    ]
    if not using or engine.projects.of(document.path).held_back:
        return "", "", len(using), 0
    for subject in subjects:
        question = await engine.traces.question(document, subject)
        if isinstance(question, Question) and engine.traces.cache.cached(question) is None:
            return None
    views = await engine.traces.cached_views(document)
    reached, traced = ReachedPlaces(views), {v.subject.name for v in views if v.is_traced}
    hidden = [
        placed.function.qualname
        for placed in using
        if placed.function.qualname not in traced and not reached.by(placed)
    ]
    shown = len(using) - len(hidden)
    missing = await tracer_requests.missing_modules(
        engine.projects.of(document.path), document.path, module
    )
    failed = {view.subject.name: view for view in views if not view.is_traced and not view.is_run}
    broken = [failed[name] for name in hidden if name in failed]
    without = [name for name in hidden if name not in failed]
    died = engine.dry_runs.killers(document.path) if without else []
    reasons = list(_reasons(missing, died, without if is_settled else (), broken, len(using)))
    if not reasons:
        return "", "", len(using), shown
    detail = " ".join(sentence for _, sentence in reasons)
    return clause(reasons[0][0], _LONGEST), detail, len(using), shown


def untraced(engine: Engine, document: Document, chunk: ModuleChunk, function: Function) -> str:
    """Return why a function that nothing has traced shows nothing; empty if it uses no JAX."""
    if not JaxUse.of(document.module).shows(chunk, function):
        return ""
    return why_untraced(engine, document, function.qualname, engine.dry_runs.unreached(document))


def is_without_inputs(reason: str) -> bool:
    """Return whether a function shows nothing because nothing tells example inputs."""
    return reason.startswith(("no ", "not called"))


def why_untraced(engine: Engine, document: Document, name: str, unreached: AbstractSet[str]) -> str:
    """Return why a function of a name, which nothing has traced, shows nothing.

    `unreached` are the names that the file's own program does not reach.
    """
    if name in unreached:
        return "an error ends the program before it is called"
    if partial := engine.dry_runs.unknown_calls(document.path, name):
        unknown = some([f"`{each}`" for each in partial[0].unknown], _NAMED, " and ")
        return f"called only with unknown {unknown}: data were not loaded"
    around = name.rpartition(".<locals>.")[0]
    if around in engine.dry_runs.ran(document.path):
        return f"`{around}` was run here, but nothing called it"
    if around in {subject.name for subject in engine.documents.subjects(document)}:
        return f"`{around}` does not call it with its inputs"
    if around:
        return f"nested in `{around}`: {why_untraced(engine, document, around, unreached)}"
    if inputs := document.suggested.get(name):
        return f"{NOT_CALLED} {inputs}"
    return engine.dry_runs.uncalled(document.path, name) or WITHOUT


def _reasons(
    missing: Sequence[str],
    died: Sequence[Died],
    without: Sequence[str],
    broken: Sequence[View],
    using: int,
) -> Iterator[tuple[str, str]]:
    """Yield each reason as a clause and as a sentence, the most important first.

    Args:
        missing: modules that are not found.
        died: deaths of tracers in which programs were run for calls.
        without: functions that have no example inputs.
        broken: functions that cannot be traced.
        using: the number of functions that use JAX.
    """
    if missing:
        one = len(missing) == 1
        found = f"{'module' if one else 'modules'} {_listed(missing)} not found"
        them = "it" if one else "them"
        sentence = f"{found[0].upper()}{found[1:]}: install {them}, or add {them} to the project."
        yield found, sentence
    for each in died[:1]:
        yield each.message, f"{each.message}: {each.help or 'it is not run again'}."
    if without:
        of = "" if len(without) == using else f"{len(without)} of "
        sentence = (
            f"No example inputs for {_listed(without)}: write them into docstrings, record a run, "
            "or take proposed ones."
        )
        yield f"no example inputs for {of}{count(using, 'function')}", sentence
    if broken:
        errors = {
            view.subject.name: next((f.message for f in failures.findings(view)), "it fails")
            for view in broken
        }
        name, error = next(iter(errors.items()))
        what = f"`{name}`" if len(errors) == 1 else count(len(errors), "function")
        sentence = f"{_listed(list(errors))} cannot be traced: {error}."
        yield f"{what} cannot be traced: {error}", sentence


def _listed(names: Sequence[str]) -> str:
    """Return the first names: `` `a`, `b` and 3 more ``."""
    return some([f"`{name}`" for name in names], _NAMED, " and ")


# What an open file is compiled for, and how many of its functions have example inputs.


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
        reasons = await unshown(engine, document, is_settled) or self._unshown.get(path)
        if reasons is not None:
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
            *(reasons or ("", "", 0, 0)),
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
            for view in await engine.traces.cached_views(document):
                if (refusal := engine.programs.refusal(view)) is not None:
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
