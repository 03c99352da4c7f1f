"""JX101: a large array is captured by closure, and becomes part of the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.tracer.program import CONSTANT, Step, Value
from jaxsight.units import MIB, size

RULE = Rule(
    "JX101",
    "captured-constant",
    "A large array is captured by closure.",
    severity="warning",
    once_a_line=True,
)
LARGE = MIB


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Find captured arrays of a mebibyte or more, where each is first used."""
    for value, users in captured(reading):
        made = f"; `{value.said}` would make it" if value.said and reading.exact else ""
        yield Noticed(
            f"{reading.quoted(users[0].path)} captures a constant of {size(value.bytes)} ({value.text}): it is traced into the "
            f"program, and XLA compiles it into the executable, which takes time and device memory{made}. Make it an argument"
            ", or build it with `jnp` inside the function.",
            users[0].path,
            related=tuple((user.path, "used here too") for user in users[1:4]),
        )


def captured(reading: Reading) -> Iterator[tuple[Value, Sequence[Step]]]:
    """Return the large captured arrays that are used, with the equations that read them."""
    flow = reading.flow
    for number, value in enumerate(flow.values):
        if value.origin != CONSTANT or value.bytes < LARGE or flow.of(number) != number:
            continue
        if users := flow.used_by(number):
            yield value, users
