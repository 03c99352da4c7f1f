"""JX412: a result is computed that nobody uses."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading

CODE = "JX412"


def find(reading: Reading) -> Iterator[Noticed]:
    """Each equation of the function itself whose results neither it nor its caller reads; of a chain of them the last."""
    flow = reading.flow
    wanted = set(flow.outputs)
    if any(step.backward for step in flow.steps.values()):
        return  # a derivative drops what it does not need
    for path, step in flow.steps.items():
        if "/" in path or not step.results or step.bodies:
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
