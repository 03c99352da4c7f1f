"""JX301: a result has a weak type; given back as an argument it is another type, and the function is traced and compiled again."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading

CODE = "JX301"


def find(reading: Reading) -> Iterator[Noticed]:
    """Each weakly typed result."""
    flow = reading.flow
    given = {
        (flow.values[number].dtype, flow.values[number].shape)
        for number in flow.inputs
        if not flow.values[number].weak
    }
    for number in dict.fromkeys(flow.outputs):
        value = flow.values[number]
        if not value.weak or not value.dtype:
            continue
        maker = flow.made_by(number)
        again = " as the argument of the same type that it resembles" * (
            (value.dtype, value.shape) in given
        )
        yield Noticed(
            CODE,
            f"This result is a weakly typed {value.text}: its type comes from Python numbers alone. Fed back{again}, it has the "
            "function traced and compiled a second time. Say the dtype "
            f"(`jnp.asarray(…, dtype=jnp.{value.dtype})`, `jnp.full(…, dtype=…)`).",
            maker.path if maker is not None else "",
        )
