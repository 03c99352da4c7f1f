"""Contracts: what `Expect` lines say, held against what was compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping

from jaxsight import units
from jaxsight.compiler.protocol import Compiled
from jaxsight.compiler.targets import CPU, Target, UnknownTarget, names, parse
from jaxsight.engine import kernels as words
from jaxsight.engine.answers import Finding, Severity, finding_of
from jaxsight.engine.compiling import Result
from jaxsight.engine.examples.expect import METRICS, Condition, Expect
from jaxsight.engine.text import Range
from jaxsight.engine.views import View
from jaxsight.rules.jx501_broken_contract.rule import RULE

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}

_UNFOLDED = "folding constants takes too long to compile it as it is"


def target_of(expect: Expect, default: Target) -> Target:
    """Return the target of a contract, named in short (`h100`) or whole (`cuda:h100`).

    Args:
        default: the target of a contract that names none.

    Raises:
        UnknownTarget: there is none; the message has the nearest names.
    """
    name = expect.target.strip()
    if not name:
        return default
    for known in names():
        if name.lower() == parse(known).short and known != CPU:
            return parse(known)
    return parse(name)


def wrong_target(view: View, expect: Expect, error: UnknownTarget) -> Finding:
    """Report a contract for a target that does not exist."""
    return _finding(view, expect, "JX908", f"{error}")


def untraced(view: View, expect: Expect) -> Finding:
    """Report a contract of an example set that the function cannot be traced with."""
    message = f"cannot check the contract: `{view.subject.name}` fails with these example inputs"
    return _finding(view, expect, RULE.code, message, Severity.WARNING)


def findings(view: View, expect: Expect, result: Result) -> Iterator[Finding]:
    """Report the conditions of a contract that do not hold, or why it cannot be checked."""
    if not isinstance(result.outcome, Compiled) or result.is_unfolded:
        why = "" if isinstance(result.outcome, Compiled) else result.outcome.message
        yield _finding(
            view,
            expect,
            RULE.code,
            f"cannot check the contract: {why or _UNFOLDED}",
            Severity.WARNING,
        )
        return
    compiled = result.outcome
    figures = {
        "kernels": compiled.graph.kernel_count,
        "launches": compiled.graph.launch_count if compiled.graph.launches_known else -1,
        "temp": compiled.memory.temporaries,
        "folded": words.folded(compiled),
    }
    on = result.target.short
    graph = compiled.graph
    upper = ("launches",) if graph.launches_at_least < graph.launch_count else ()
    for condition, message in _broken(expect, figures, on, _worded, upper):
        yield finding_of(RULE.code, _place(view, condition.range), message)


def _worded(metric: str, value: int) -> str:
    return units.size(value) if METRICS[metric] == "bytes" else str(value)


def _finding(
    view: View, expect: Expect, code: str, message: str, severity: Severity = Severity.ERROR
) -> Finding:
    return finding_of(code, _place(view, expect.range), message, severity=severity)


def _place(view: View, range: Range) -> Range:
    """Return where something in the docstring stands; the function's name for examples of the project's settings."""
    if view.subject.examples.source == "project":
        return view.name_range
    return range.shifted(view.subject.chunk.first_line)


def _broken(
    expect: Expect,
    figures: Mapping[str, int],
    target: str,
    worded: Callable[[str, int], str],
    upper: Collection[str] = (),
) -> Iterator[tuple[Condition, str]]:
    """Yield the conditions that do not hold, each with its message.

    Args:
        figures: by metric (`kernels`, `launches`, and `temp` and `folded` in bytes); -1 for unknown ones.
        target: the short name of the target that they are of.
        worded: a figure of a metric for people.
        upper: the metrics whose figure is the upper end of a range.
    """
    for condition in expect.conditions:
        figure = figures[condition.metric]
        limit = (
            f"{condition.metric} {condition.comparison} {worded(condition.metric, condition.value)}"
        )
        if figure < 0:
            yield condition, f"expected {limit} on {target}, but {condition.metric} is not known"
        elif not _COMPARISONS[condition.comparison](figure, condition.value):
            got = worded(condition.metric, figure)
            up_to = "up to " if condition.metric in upper else ""
            yield condition, f"expected {limit} on {target}, got {up_to}{got}"
