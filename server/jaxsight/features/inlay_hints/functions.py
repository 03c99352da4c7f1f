"""Hints after the signature of a function: its totals, or why there are none."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.examples.jax_use import JaxUse
from jaxsight.features import caveats, inputs
from jaxsight.features.findings import failures
from jaxsight.features.inlay_hints.kind import (
    HintDocument,
    LabelPart,
    fitted,
    head,
    head_of,
    line_end,
)
from jaxsight.features.inputs import WITH_SIZES, ReachedPlaces
from jaxsight.features.kernels.table import explanation, label, shares_of, table
from jaxsight.features.measuring.timing import LastTimes, last_times
from jaxsight.features.model import Hint
from jaxsight.features.setup.unshown import PROPOSES, is_without_inputs, why_untraced
from jaxsight.figures.program_notes import SAME, change
from jaxsight.figures.summary import (
    UNKNOWN,
    communication,
    devices,
    host_transfer_figure,
    kernel_count,
    launches,
    long_compile,
    shorter_temporary_memory,
    temporary_memory,
)
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.queries.traces.located_answer import View
from jaxsight.text.inert import clause, one_line, visible
from jaxsight.text.markdown import prose
from jaxsight.text.pytree_display import ELLIPSIS
from jaxsight.text.units import count
from jaxsight.trust.decisions import path_text
from jaxsight.wire.messages.replies import Traced

SIGN = "▣"

_UPDATED = 3
"""Names of updated state that a line lists, a choice: most modules have one or two."""


def totals(shown: HintDocument) -> Iterator[Hint]:
    """Yield the totals of each function, with what changed since its file was saved."""
    for traced in shown.views:
        if (kernels := shown.kernels(traced)) is None:
            continue
        view = kernels.view  # of an older text than the trace, until the new one is compiled
        if view.failed is not None and not view.supports_any():
            continue
        before, reply = shown.engine.programs.before(view), view.answer.reply
        difference = change(before, kernels.compiled) if before is not None else SAME
        updates = reply.updates if isinstance(reply, Traced) else ()
        times = last_times(shown.engine, view, kernels.target, kernels)
        parts = list(_figures(kernels, difference, times))
        if view.subject.is_program:
            parts.insert(0, LabelPart(view.subject.title, 0))
        if updates:
            more = [ELLIPSIS] if len(updates) > _UPDATED else []
            first = f"updates: {', '.join([*updates[:_UPDATED], *more])}"
            parts.append(LabelPart(first, 6, (f"updates: {updates[0]}",)))
        mark = f"{SIGN} {caveats.mark(view)}"
        facts = [f"since the file was saved: {difference}"] if difference != SAME else []
        facts += [f"updates: {', '.join(updates)}"] if updates else []
        facts += filter(None, [inputs.call_of(view)])
        facts += [f"figures {WITH_SIZES}"] if view.assumed else []
        yield Hint(
            head(view),
            f"{mark}{fitted(parts, shown.wanted.width - len(mark))}",
            "\n\n".join(
                filter(None, (caveats.notice(view), table(kernels, times), *map(prose, facts)))
            ),
            view.stale,
        )


def _figures(
    kernels: LocatedFigures, difference: str, times: LastTimes | None
) -> Iterator[LabelPart]:
    """Yield kernels, launches if there are more or fewer, memory, collectives and the target.

    Args:
        difference: what changed since the file was saved, which is shown after the target.
        times: what the function took, after the kernels, if the user had it measured.
    """
    compiled, graph = kernels.compiled, kernels.graph
    reply, kernels_of_it = kernels.view.answer.reply, kernel_count(graph)
    if kernels.view.would_be_compiled and isinstance(reply, Traced):
        operations = count(reply.equations, "operation")
        whole = f"eager: {operations}, {kernels_of_it} if jitted"
        yield LabelPart(whole, 0, (f"{kernels_of_it} if jitted",))
    else:
        yield LabelPart(kernels_of_it, 0)
    if times is not None:
        yield LabelPart(times.headline, 1, (f"{times.figure} measured",))
    counts = graph.launches_at_least, graph.launch_count
    if not graph.trips_known or any(count != graph.kernel_count for count in counts):
        yield LabelPart(launches(graph))
    elif graph.libraries:
        yield LabelPart(launches(graph), 6)
    if graph.callback_count:
        yield LabelPart(count(graph.callback_count, "host callback"), 2)
    for transfers in host_transfer_figure(graph):
        yield LabelPart(transfers, 3, (transfers.partition(",")[0],))
    per_device = " per device" if compiled.devices > 1 else ""
    temporaries = temporary_memory(compiled)
    if temporaries != UNKNOWN and not kernels.view.assumed:
        shorter = f"temp {shorter_temporary_memory(compiled)}{per_device}"
        yield LabelPart(f"temp {temporaries}{per_device}", 4, (shorter,))
    for moved in communication(graph):
        yield LabelPart(f"{moved}{per_device}", 5, (moved.partition(",")[0],))
    name = devices(compiled, kernels.target)
    if difference == SAME:
        yield LabelPart(name, 0)
    else:  # all differences, the first one, or none: `cpu (kernels 7 → 5)`
        first, *more = difference.split(" · ")
        shorter_names = (*[f"{name} ({first})"] * bool(more), name)
        yield LabelPart(f"{name} ({difference})", 0, shorter_names)
    if long := long_compile(compiled):
        yield LabelPart(long, 3)
    if kernels.view.assumed:
        yield LabelPart(WITH_SIZES, 0)
    if left_out := kernels.view.caveats:
        yield LabelPart(f"{caveats.MARK} {len(left_out)}", 0)


# Why a function has no kernels, after its signature.


INSTALL = "jaxsight.installTarget"


_NOTE = "A kernel counts for each function that it computes something of."


def _shares(shown: HintDocument) -> Iterator[Hint]:
    """Yield the share of each function that is not compiled by itself, in the first program."""
    programs = [*filter(None, map(shown.kernels, shown.programs))]
    for view in shown.views:
        if view.compiled_as != "inside" or view.stale or shown.kernels(view) is not None:
            continue
        if shares := list(shares_of(programs, view.subject_range)):
            first = next(shares_of(programs, view.subject_range, ""))
            yield Hint(head(view), f"{SIGN} {first}", prose("\n\n".join((*shares, _NOTE))))


def without_kernels(shown: HintDocument) -> Iterator[Hint]:
    """Yield why nothing was compiled, or once that takes a moment, that it is being compiled."""
    yield from _shares(shown)
    programs, first = shown.engine.programs, shown.engine.choices.target(shown.document.path)
    for view in shown.views:
        if view.stale or not view.is_traced:
            continue
        if (refusal := programs.refusal(view)) is not None:
            trouble, target = refusal.trouble, refusal.target
            if trouble.kind == "approval":
                continue  # the hint about consent says it
            is_missing = trouble.kind == "missing"
            yield Hint(
                head(view),
                f"{SIGN} {visible(target.name)}: {label(trouble, target)}",
                prose(explanation(trouble, target)),
                command=INSTALL if is_missing else "",
                arguments=(target.platform, shown.document.path) if is_missing else (),
            )
        elif shown.kernels(view) is None and programs.compiles_long(view):
            yield Hint(
                head(view),
                f"{SIGN} {visible(first.name)}: compiling…",
                "Kernels, launches and memory follow when XLA is done.",
            )


# A mark after the signature of a function whose newest answer has caveats.


def marks(shown: HintDocument) -> Iterator[Hint]:
    """Yield the mark of each function whose kernels are not shown after its signature."""
    programs, has_kernels = shown.engine.programs, shown.wanted.kernels
    newest: dict[str, View] = {}
    functions = [view for view in shown.views if not view.subject.is_program]
    for view in inputs.without_repeats(functions):
        newest.setdefault(view.subject.id, view)
    counted = {
        view.subject.id
        for view in shown.views
        if has_kernels and view.is_traced and programs.refusal(view) is None
    }
    for name, view in newest.items():
        if view.caveats and name not in counted:
            (label,) = caveats.marks(view.caveats)
            parts = caveats.notice(view), caveats.markdown(view.caveats)
            tooltip = "\n\n".join(filter(None, parts))
            yield Hint(head(view), f"{caveats.mark(view)}{label}", tooltip, view.stale)


# A mark after the signature of a function that waits for the user's consent to run or compile.


def consent(shown: HintDocument) -> Iterator[Hint]:
    """Yield a mark for each function that is neither run nor sent to a host until then."""
    engine, document = shown.engine, shown.document
    project = engine.projects.of(document.path)
    label, why = "not trusted", project.held_back
    if not why and shown.wanted.kernels:
        target = engine.choices.target(document.path)
        if target.host:
            label = f"{path_text(target.short)} waits for approval"
            why = project.not_sent(target.host)
    if not why:
        return
    for subject in engine.documents.subjects(document):
        if subject.examples.sets:
            at = head_of(document.module, subject.name_range, subject.range)
            yield Hint(at, label, why)


# Where a trace ends whose inputs the user did not write, and why a function shows nothing at all.


LABEL = "⊘ not traced further"
_LONGEST = 60
"""Characters of a reason, a choice: it follows a signature."""


def untraced(shown: HintDocument) -> Iterator[Hint]:
    """Yield the hints of functions that are traced in part, and of those that are not at all."""
    yield from _ends(shown)
    if shown.engine.dry_runs.is_current(shown.document):
        yield from _reasons(shown)


def _ends(shown: HintDocument) -> Iterator[Hint]:
    """Yield a mark with the error, where it was raised or after the signature."""
    for view in inputs.without_repeats(shown.views):
        if view.stale or not failures.is_quiet(view) or view.subject.is_proposed:
            continue
        if (finding := next(failures.findings(view), None)) is None:
            continue
        is_inside = finding.range != view.name_range
        place = line_end(view.module, finding.range.end.line) if is_inside else head(view)
        why = failures.explanation(view)
        given = one_line(view.set_name) or "inputs that were not written for it"
        yield Hint(place, LABEL, f"{why}\n\n{prose(f'traced {given}')}")


def _reasons(shown: HintDocument) -> Iterator[Hint]:
    """Yield the reason of each function without inputs that no trace has reached."""
    engine, document = shown.engine, shown.document
    # Of stale views only those count of which hints are left.
    kept = inputs.without_repeats(shown.views)
    views = [v for v in shown.views if not v.stale or (v in kept and v.supports_any())]
    having = {
        subject.name for subject in engine.documents.subjects(document) if subject.examples.sets
    }
    jax_use, unreached = JaxUse.of(document.module), engine.dry_runs.unreached(document)
    reached = ReachedPlaces(views)  # a failed trace shows shapes up to the error
    for placed in document.module.functions:
        function = placed.function
        if function.qualname in having or reached.by(placed):
            continue
        if not jax_use.shows(*placed) or function.qualname in document.hidden:
            continue
        reason = why_untraced(engine, document, function.qualname, unreached)
        tooltip = prose(f"not shown: {reason}")
        # Where none are proposed, the action says what to try.
        more = f"\n\n{PROPOSES}." if is_without_inputs(reason) else ""
        place = head_of(document.module, placed.name_range, placed.range)
        yield Hint(place, f"not shown: {clause(reason, _LONGEST)}", f"{tooltip}{more}")
