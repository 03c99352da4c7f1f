"""Contracts: what `Expect` lines say, held against what was compiled."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.compiler.protocol import Compiled
from jaxsight.compiler.targets import CPU, Target, UnknownTarget, names, parse
from jaxsight.engine import kernels as words
from jaxsight.engine.answers import Finding, Severity
from jaxsight.engine.compiling import Result
from jaxsight.engine.examples.expect import METRICS, Expect
from jaxsight.engine.views import View
from jaxsight.findings import jx501_contract
from jaxsight.findings.catalogue import CODES
from jaxsight.tracer.protocol import Traced


def target_of(expect: Expect) -> Target:
    """The target that a contract names, in short (`h100`) or whole (`cuda:h100`).

    Raises:
        UnknownTarget: there is none; the message has the nearest names.
    """
    name = expect.target.strip()
    for each in names():
        if name.lower() == parse(each).short and each != CPU:
            return parse(each)
    return parse(name)


def contracts(view: View) -> tuple[Expect, ...]:
    """What is expected of a function with the example inputs that it was traced with."""
    if not isinstance(view.answer.reply, Traced) or view.stale:
        return ()
    return view.answer.question.set.expects


def wrong_target(view: View, expect: Expect, error: UnknownTarget) -> Finding:
    """A contract for a target that there is not."""
    return _finding(view, expect, "JX908", f"{error}")


def findings(view: View, expect: Expect, result: Result) -> Iterator[Finding]:
    """What of a contract does not hold, or why nobody can tell."""
    if not isinstance(result.outcome, Compiled):
        yield _finding(
            view,
            expect,
            jx501_contract.CODE,
            f"the contract cannot be checked: {result.outcome.message}",
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
    for condition, message in jx501_contract.broken(expect, figures, _worded):
        range = condition.range.shifted(view.subject.chunk.first_line)
        if view.subject.examples.source == "project":
            range = view.name_range
        yield Finding(
            jx501_contract.CODE,
            Severity.ERROR,
            range,
            message,
            CODES[jx501_contract.CODE].url,
        )


def _worded(metric: str, value: int) -> str:
    return words.short_size(value) if METRICS[metric] == "bytes" else str(value)


def _finding(
    view: View, expect: Expect, code: str, message: str, severity: Severity = Severity.ERROR
) -> Finding:
    range = expect.range.shifted(view.subject.chunk.first_line)
    if view.subject.examples.source == "project":
        range = view.name_range
    return Finding(code, severity, range, message, CODES[code].url)
