"""JX412: a result is computed that nobody uses."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading

CODE = "JX412"


def find(reading: Reading) -> Iterator[Noticed]:
    """Each expression of the function itself that neither it nor its caller reads anything of; of a chain of them the last.

    What a library's function makes for nothing in a call that gives something is its own business.
    """
    flow = reading.flow
    wanted = set(flow.outputs)
    if any(step.backward for step in flow.steps.values()):
        return  # a derivative drops what it does not need
    useful = {
        step.span
        for step in flow.steps.values()
        if any(
            number in wanted or any(user.span != step.span for user in flow.used_by(number))
            for number in step.results
        )
    }
    for path, step in flow.steps.items():
        if step.span in useful or "/" in path or not step.results or step.bodies:
            continue
        if any(number in wanted or flow.used_by(number) for number in step.results):
            continue
        text = reading.quote(path)
        if text:
            yield Noticed(
                CODE,
                f"{reading.quoted(path)} is computed ({flow.value(step.results[0]).text}) and not used: XLA drops it, but it is "
                "traced each time.",
                path,
            )
