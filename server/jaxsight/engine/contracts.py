"""Contracts: what `Expect` lines say, held against what was compiled."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.compiler.protocol import Compiled
from jaxsight.compiler.targets import CPU, Target, UnknownTarget, names, parse
from jaxsight.engine import kernels as words
from jaxsight.engine.answers import Finding, Severity
from jaxsight.engine.compiling import Result
from jaxsight.engine.examples.expect import METRICS, Expect
from jaxsight.engine.text import Range
from jaxsight.engine.views import View
from jaxsight.findings import jx501_contract
from jaxsight.findings.catalogue import CODES

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
    return _finding(view, expect, jx501_contract.CODE, message, Severity.WARNING)


def findings(view: View, expect: Expect, result: Result) -> Iterator[Finding]:
    """Report the conditions of a contract that do not hold, or why it cannot be checked."""
    if not isinstance(result.outcome, Compiled) or result.is_unfolded:
        why = "" if isinstance(result.outcome, Compiled) else result.outcome.message
        yield _finding(
            view,
            expect,
            jx501_contract.CODE,
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
    for condition, message in jx501_contract.broken(expect, figures, on, _worded, upper):
        yield Finding(
            jx501_contract.CODE,
            Severity.ERROR,
            _place(view, condition.range),
            message,
            CODES[jx501_contract.CODE].url,
        )


def _worded(metric: str, value: int) -> str:
    return words.short_size(value) if METRICS[metric] == "bytes" else str(value)


def _finding(
    view: View, expect: Expect, code: str, message: str, severity: Severity = Severity.ERROR
) -> Finding:
    return Finding(code, severity, _place(view, expect.range), message, CODES[code].url)


def _place(view: View, range: Range) -> Range:
    """Return where something in the docstring stands; the function's name for examples of the project's settings."""
    if view.subject.examples.source == "project":
        return view.name_range
    return range.shifted(view.subject.chunk.first_line)
