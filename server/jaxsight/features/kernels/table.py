"""The kernels of a function as a Markdown table, for a tooltip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from jaxsight.features import caveats
from jaxsight.features.findings import failures
from jaxsight.features.measuring.timing import LastTimes, seconds_words
from jaxsight.figures import host_transfers, program_notes
from jaxsight.figures import record as figures
from jaxsight.figures.program_notes import iterations, memory_lines, undecided
from jaxsight.figures.rows import COLUMNS, FEW, filled, rows
from jaxsight.figures.summary import devices
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.source.text import Range
from jaxsight.targets.target import Target
from jaxsight.text import units
from jaxsight.text.inert import clause, visible
from jaxsight.text.markdown import escaped, markdown_table, prose
from jaxsight.text.terminal import instruction
from jaxsight.text.units import count, some
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.compilation.environments import MEGABYTES

_LOOPS = 4
"""Loops of known length that are listed, a choice: a sentence each."""
_TRANSFERS = 12
"""Transfers between host and device that a table has, a choice: one for each kind of array."""


def table(kernels: LocatedFigures, times: LastTimes | None = None) -> str:
    """Return a table of the first kernels, one of transfers, and the facts below them.

    Args:
        kernels: of the function.
        times: what the function took, if the user had it measured.
    """
    matched = times.matched if times is not None else None
    graph = kernels.graph
    columns, shown = [*COLUMNS], [[*each.cells()] for each in rows(kernels, FEW)]
    if matched is not None:
        columns += ["measured", "share"]
        for index, cells in enumerate(shown):
            row = matched.by_kernel.get(index)
            took = seconds_words(row.seconds, row.estimate_seconds) if row is not None else "–"
            cells += [took, units.percent(row.share) if row is not None else "–"]
    titles, _, cells_of = filled(columns, " " * len(columns), shown)
    parts = [markdown_table(titles, *cells_of)]
    if (more := graph.kernel_count - len(shown)) > 0:
        parts.append(f"and {more} more")
    if transfers := host_transfers.rows(kernels):
        parts.append(markdown_table(host_transfers.COLUMNS, *transfers[:_TRANSFERS]))
        if (more := len(transfers) - _TRANSFERS) > 0:
            parts.append(f"and {more} more")
    measured = [times.headline, *times.facts] if times is not None else []
    facts = [*map(prose, measured), escaped(kernels.origin)]
    known = (*memory_lines(kernels), *program_notes.notable_lines(kernels))
    facts += map(prose, (*kernels.target.facts, *known))
    left_out = caveats.markdown(kernels.view.caveats)
    loops = islice(iterations(kernels), _LOOPS)
    remarks = (*loops, *undecided(kernels), *kernels.compiled.notes)
    notes = [*map(prose, remarks), *([left_out] if left_out else [])]
    return "\n\n".join([*parts, *facts, *notes])


# How an expression was compiled, in words.


_NAMED = 5
"""Equations or kernels that a line names, a choice: it must not wrap; further ones are counted."""
_LONGEST = 40
"""Length of an expression, in characters, up to which it is named: a sentence names several."""


def _numbers(numbers: Sequence[int]) -> str:
    """Return `1`, `1, 2` or `1–4`; a long list is written by its ends."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    if len(numbers) > 4:  # the ends of more are as long
        return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    return ", ".join(map(str, numbers))


def expression_words(kernels: LocatedFigures, place: Range) -> str:
    """Return how an expression was compiled; empty if unknown.

    The text is `fused into kernel 2 of 2 with …` or `in kernels 1, 2 of 3; recomputed in kernel 4`.
    """
    indices = kernels.holding(place)
    total = kernels.graph.kernel_count
    if not indices:
        return ""
    here = devices(kernels.compiled, kernels.target)
    if len(indices) > 1:
        again = {
            index
            for index in indices
            for path in kernels.graph.kernels[index].recomputes
            if (at := kernels.place(path)) is not None and place.holds(at)
        }
        first = [index + 1 for index in indices if index not in again]
        words = f"in kernel{'s' if len(first) > 1 else ''} {_numbers(first)} of {total}"
        if again:
            words += f"; recomputed in kernel {_numbers([i + 1 for i in sorted(again)])}"
        return f"{words} · {here}"
    (index,) = indices
    kernel = kernels.graph.kernels[index]
    others = (
        " ".join(kernels.source(path).split())
        for path in kernel.equations
        if (at := kernels.place(path)) is not None and not place.holds(at)
    )
    named = dict.fromkeys(f"`{text}`" for text in others if len(text) <= _LONGEST)
    partners = some(list(named), _NAMED)
    alone = f"kernel {index + 1} of {total}, {kernel.title}"
    words = f"fused into kernel {index + 1} of {total} with {partners}" if partners else alone
    if kernel.launches > 1:
        words += f", launched {kernel.launches} times"
    end = kernels.ending(kernel)
    if end is not None and place.holds(end) and kernel.ends_because != "output":
        words += f"; fusion boundary: {kernels.reason(kernel)}"
    return f"{words} · {here}"


# What a function has of the kernels of the programs that it is a part of.


def shares_of(
    programs: Iterable[LocatedFigures], function: Range, quote: str = "`"
) -> Iterator[str]:
    """Yield ``in `train_step`: 133 of 412 kernels`` for programs that begin elsewhere.

    Kernels count that compute something in a function, which is given by its place. A kernel may be
    of several functions, so the shares of all need not add up.
    """
    for kernels in programs:
        own, subject = kernels.view.subject_range, kernels.view.subject
        held = 0 if own.holds(function) or function.holds(own) else len(kernels.holding(function))
        if held:
            at = f" at line {own.start.line + 1}" if subject.is_program else ""
            of = count(kernels.graph.kernel_count, "kernel")
            yield f"in {quote}{subject.title}{quote}{at}: {held} of {of}"


# All figures of a function's kernels as JSON, with what is known of its trace.


def record(kernels: LocatedFigures, function: str) -> dict[str, object]:
    """Return all figures as JSON; see `figures.record`.

    Raises:
        Incomplete: the compile ended before memory was known.
    """
    reply = kernels.view.answer.reply
    return {
        **figures.record(kernels, function),
        "assumed_inputs": list(kernels.view.assumed),
        "updates": list(reply.updates) if isinstance(reply, Traced) else [],
        **caveats.record(kernels.view.caveats),
    }


# Functions that have example inputs and were not compiled, each with its reason in a clause.


_REASON = 200
"""Maximum length of a reason in characters: some of XLA's quote HLO."""
_LABEL = 70
"""The same for a hint, a choice: beside a line of code it is still in view."""


def label(trouble: Trouble, target: Target) -> str:
    """Return why nothing is compiled for a target, in a few words for a hint."""
    if trouble.kind == "missing":
        return "compiler not installed"
    reason = trouble.message.strip().split("\n")[0]
    for name in (target.short, target.name):
        reason = reason.replace(f" for {name} ", " ", 1)
    return clause(reason, _LABEL).rstrip(".")


def explanation(trouble: Trouble, target: Target) -> str:
    """Return why nothing is compiled for a target, for an editor, and what to do."""
    if trouble.kind != "missing":
        return trouble.message
    action = "use the command `jaxsight.installTarget` (*Install Compiler* in VS Code)"
    command = instruction(f"targets install {target.platform}", "")
    return (
        f"The compiler for {target.name} is not installed (about "
        f"{MEGABYTES[target.platform]} MB to download). To install it, {action}"
        + (f", or {command} in a terminal." if command else ".")
    )


@dataclass(frozen=True, slots=True)
class Uncompiled:
    """A function that was not compiled; `range` is its name."""

    function: str
    range: Range
    target: str
    """The short name of the target: `h100`."""
    reason: str
    lasts: bool = True
    """Whether it is so again: no compiler was missing, and none failed for another reason."""

    @property
    def message(self) -> str:
        """A sentence such as ``f` is not compiled for h100: it spans 8 devices``."""
        name = visible(self.function)
        return f"`{name}` is not compiled for {self.target}: {self.reason}"


async def uncompiled(engine: Engine, path: str) -> list[Uncompiled]:
    """Return the functions of a file that were not compiled for the first target, and why.

    They are those of the last findings.
    """
    if (document := await engine.documents.read(path)) is None:
        return []
    found = []
    for view in await engine.traces.views(document, None):
        target, lasts, refusal = engine.choices.target(path), True, engine.programs.refusal(view)
        if not isinstance(view.answer.reply, Traced):
            if (finding := next(failures.reported(view), None)) is None:
                continue  # a doctest that was not written as example inputs
            reason = f"tracing fails ({finding.code}, line {finding.range.start.line + 1})"
        elif refusal is not None:
            target, reason = refusal.target, refusal.trouble.message
            lasts = refusal.trouble.last
        else:
            continue
        reason = clause(reason.strip().split("\n\n")[0], _REASON).rstrip(".")
        found.append(Uncompiled(view.subject.name, view.name_range, target.short, reason, lasts))
    return found
