"""Which functions of a file were examined, with which inputs, and why others were not.

A function is examined if it was traced, or if the trace of another function has reached it. An
error that is reported counts, too: then the function was examined, and this is the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxsight.examples.jax_use import JaxUse
from jaxsight.examples.sets import Examples
from jaxsight.features import inputs
from jaxsight.features.findings import failures
from jaxsight.features.inputs import ReachedPlaces
from jaxsight.features.setup.unshown import NOT_CALLED, WITHOUT, untraced
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked, refusal
from jaxsight.source.module import PlacedFunction
from jaxsight.source.text import Range
from jaxsight.text.inert import clause

REACHED = "reached"
"""The origin of the inputs of a function that the traces of its callers have reached."""
_PROGRAM = "tests, plots and `main` are not traced by themselves"
_LONGEST = 160
"""Characters of a reason, a choice: two lines of a terminal; some quote a message of JAX."""

Kind = Literal["no-inputs", "untried", "fails", "unsupported", "program"]
"""Why a function was not examined: it has no inputs, or none that were tried; its trace fails, and
that is not the user's error; it cannot be traced by itself; or it is a test, a plot, `main`, or a
part of a program, of which only a dry run is known.
"""


@dataclass(frozen=True, slots=True)
class Examination:
    """A function that uses JAX or has example inputs."""

    function: str
    range: Range
    """Its name."""
    origin: str = ""
    """Where its inputs are from: `docstring`, `module`, `assumed`…; empty if not examined."""
    inputs: str = ""
    """These inputs in a clause, such as `as recorded`."""
    kind: Kind | None = None
    reason: str = ""
    """Why it was not examined, in a clause; empty if it was."""


async def examined(engine: Engine, path: str, only: str = "") -> list[Examination]:
    """Return the functions of a file that use JAX or have example inputs, in text order.

    Args:
        engine: the engine.
        path: an open document.
        only: a function that is returned alone, whether it uses JAX or not, and examined only if
            it was traced itself.
    """
    if (document := await engine.documents.read(path)) is None:
        return []
    subjects = {subject.id: subject for subject in engine.documents.subjects(document)}
    views = await engine.traces.views(document, None)
    by_id = {view.subject.id: view for view in views}
    reached = ReachedPlaces(views)
    jax_use = JaxUse.of(document.module)
    found: list[Examination] = []
    for placed, id in zip(document.module.functions, document.module.ids, strict=True):
        chunk, function = placed
        name, at = function.qualname, placed.name_range
        if only and name != only:
            continue
        if not only and id not in subjects and not jax_use.mentioned(chunk, function):
            continue
        view = by_id.get(id)
        # An error that is reported is a result, too.
        if view is not None and (view.is_traced or any(failures.reported(view))):
            found.append(Examination(name, at, inputs.origin(view), inputs.described(view)))
        elif (caller := reached.by(placed)) not in ("", name) and not only:
            found.append(Examination(name, at, REACHED, f"in the trace of `{caller}`"))
        elif id not in subjects and not only and not jax_use.by(chunk, function):
            found.append(Examination(name, at, kind="program", reason=_PROGRAM))
        else:
            kind, reason = await _why_not(engine, document, placed, subjects.get(id), view)
            found.append(Examination(name, at, kind=kind, reason=clause(reason, _LONGEST)))
    return found


async def _why_not(
    engine: Engine,
    document: Document,
    placed: PlacedFunction,
    subject: Subject | None,
    view: View | None,
) -> tuple[Kind, str]:
    """Return why a function was not examined."""
    if view is not None and view.is_run:
        return "program", f"it is part of a program, {inputs.described(view)}"
    if view is not None:
        error = next(failures.findings(view), None)
        why = error.message if error is not None else "it fails"
        return "fails", f"tracing fails with inputs {inputs.described(view)}: {why}"
    if placed.function.refused:
        name = placed.function.qualname
        return "unsupported", refusal(subject or Subject(*placed, Examples(), name))
    if subject is not None:
        question = await engine.traces.question(document, subject)
        return "fails", question.reason if isinstance(question, Unasked) else "it was not traced"
    if (outcome := await engine.proposals.cached(document, *placed)) is None:
        return "untried", untraced(engine, document, *placed) or WITHOUT
    if outcome.computes:
        return "no-inputs", f"{NOT_CALLED} {outcome.guess.title}"
    if outcome.is_traced:
        return "no-inputs", "no example inputs, and proposed ones compute nothing from arrays"
    return "no-inputs", f"no example inputs, and proposed ones fail: {outcome.reason}"
