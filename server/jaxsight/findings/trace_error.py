"""From an exception that ended a trace to the code that names it and words that help.

The modules `jx4…` each recognise one kind; what none recognises is JX400 with the exception's own words. Pure
functions: the failure and the source text of the innermost expression go in, an `Explained` comes out.
"""

from __future__ import annotations

from jaxsight.findings import (
    jx302_unhashable_static,
    jx401_traced_value,
    jx402_leaked_tracer,
    jx403_key_reused,
    jx404_index_out_of_bounds,
    jx405_nan,
    jx406_reverse_through_while,
    jx411_sharding,
)
from jaxsight.findings.catalogue import CODES
from jaxsight.findings.explained import Explained, first_paragraph, jax_page
from jaxsight.tracer.protocol import Failure

_KINDS = (
    jx402_leaked_tracer.explain,
    jx403_key_reused.explain,
    jx404_index_out_of_bounds.explain,
    jx405_nan.explain,
    jx406_reverse_through_while.explain,
    jx302_unhashable_static.explain,
    jx411_sharding.explain,
)


def explain(failure: Failure, expression: str = "", line: str = "") -> Explained:
    """Word `failure` for the user.

    Args:
        failure: the exception; its `stage` says where it came from.
        expression: the user's source text at the innermost frame, empty when unknown.
        line: the line that it begins on, empty when unknown.
    """
    if failure.stage == "inputs":
        what = f"The example for `{failure.argument}`" if failure.argument else "The doctest's call"
        return Explained("JX905", f"{what} does not evaluate: {_said(failure)}", CODES["JX905"].url)
    if failure.stage in ("execute", "trace"):
        if (explained := jx401_traced_value.explain(failure, expression, line)) is not None:
            return explained
        for kind in _KINDS:
            if (explained := kind(failure, expression)) is not None:
                return explained
    return Explained("JX400", _said(failure), jax_page(failure) or CODES["JX400"].url)


def _said(failure: Failure) -> str:
    name = failure.type.removeprefix("builtins.").removeprefix("jax.errors.")
    message = first_paragraph(failure.message)
    return f"{name}: {message}" if message else name
