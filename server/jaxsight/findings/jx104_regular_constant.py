"""JX104: a captured array has a rule, and could be made where it is used."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.jx101_captured_constant import LARGE
from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import KIB, Reading, size
from jaxsight.tracer.program import CONSTANT

CODE = "JX104"
LEAST = KIB


def find(reading: Reading) -> Iterator[Noticed]:
    """Each captured array that an arithmetic sequence or one repeated value makes, up to where JX101 begins."""
    flow = reading.flow
    for number, value in enumerate(flow.values):
        if value.origin != CONSTANT or not value.said or not LEAST <= value.bytes < LARGE:
            continue
        users = flow.used_by(number)
        if flow.of(number) == number and users:
            yield Noticed(
                CODE,
                f"{reading.quoted(users[0].path)} embeds a constant of {size(value.bytes)} ({value.text}) that `{value.said}` "
                "would make on the device, fused into what uses it.",
                users[0].path,
            )
