"""JX401: a traced value is used as a Python bool, int, float, index, shape or NumPy array."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.rules.exceptions import aval, culprits, is_a, jax_page, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Failure

RULE = Rule(
    "JX401",
    "traced-value",
    "A traced value is used where Python or NumPy needs to know it.",
)


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognize JAX's conversion errors and the two `TypeError`s that mean the same.

    Args:
        failure: the exception.
        expression: the user's source at the innermost frame.
        line: the line that it begins on.
    """
    advice = _advice(failure, " ".join(expression.split()), line.strip())
    if advice is None:
        return None
    names = culprits(failure) if advice.may_be_static else ""
    static = f", or make {names} static (`static_argnames`)" if names else ""
    kind = f" (`{aval(failure)}`)" if aval(failure) else ""
    return Noticed(
        f"{quoted(expression)} {advice.problem}{kind}\nhelp: {advice.help}{static}",
        url=jax_page(failure),
    )


@dataclass(frozen=True, slots=True)
class _Advice:
    problem: str
    help: str
    may_be_static: bool = False
    """Whether a value of this kind can be a static argument: an integer or a flag, no array."""


_KNOWN = "needs a value that is only known when the function runs"


def _advice(failure: Failure, text: str, line: str) -> _Advice | None:
    message = failure.message
    if is_a(failure, "TracerBoolConversionError"):
        return _of_bool(text, line, _is_scalar(failure))
    if is_a(failure, "NonConcreteBooleanIndexError"):
        return _Advice(
            "selects by a traced mask: the size of the result is not known while tracing",
            "keep the size with `jnp.where(mask, x, fill)`, or give `jnp.nonzero` a `size=`",
        )
    if is_a(failure, "TracerIntegerConversionError"):
        return _Advice(
            _KNOWN,
            "loop with `jax.lax.fori_loop` or `jax.lax.scan`, index a `jnp` array",
            may_be_static=True,
        )
    if is_a(failure, "TracerArrayConversionError"):
        return _Advice(_KNOWN, "use the function of the same name in `jax.numpy`")
    if is_a(failure, "ConcretizationTypeError"):
        return _of_concrete(text, message)
    if message.startswith("Shapes must be 1D sequences of concrete values"):
        return _Advice(
            "makes a shape of a traced value: shapes must be known while tracing",
            "take the size from another array's `.shape`",
            may_be_static=True,
        )
    if is_a(failure, "IndexError") and "slice(" in message and "Tracer" in message:
        return _Advice(
            "slices with a traced bound: the size of the result must be known while tracing",
            "use `jax.lax.dynamic_slice_in_dim(x, start, size)` with a static size, or mask with "
            "`jnp.where`",
        )
    if is_a(failure, "TypeError") and "__format__" in message and "Tracer" in message:
        return _Advice(
            "formats a value that is only known when the function runs",
            'print it with `jax.debug.print("{x:.3f}", x=x)`',
        )
    if "unhashable type" in message and "Tracer" in message:
        return _Advice(
            "looks a traced value up in a Python `dict` or `set`",
            "index a `jnp` array, or choose with `jax.lax.switch`",
        )
    return None


_STATEMENTS = {
    "assert": "check it when the function runs: `checkify.check(ok, message)`, or `eqx.error_if`",
    "while": "loop with `jax.lax.while_loop`",
    "match": "choose with `jax.lax.switch(index, branches, x)`",
    "case": "choose with `jax.lax.switch(index, branches, x)`",
}
"""By the statement that tests."""

_OF_BOOL = (
    (re.compile(r"(?<![\w.])max\("), "use `jnp.maximum(a, b)`, or `jnp.max(x)` of an array"),
    (re.compile(r"(?<![\w.])min\("), "use `jnp.minimum(a, b)`, or `jnp.min(x)` of an array"),
    (re.compile(r"(?<![\w.])sorted\("), "use `jnp.sort(x)`"),
    (re.compile(r"(?<![\w.])any\("), "use `jnp.any(x)`"),
    (re.compile(r"(?<![\w.])all\("), "use `jnp.all(x)`"),
    (re.compile(r"(?<![\w.])bool\("), "keep the array: combine with `&`, `|`, `~`"),
)
"""By what is written: how JAX does it."""


def _of_bool(text: str, line: str, scalar: bool) -> _Advice:
    """Return how to test, compare or sort without Python's `bool`."""
    keyword = re.match(r"\w*", line)
    if keyword is not None and keyword[0] in _STATEMENTS:
        return _Advice(_KNOWN, _STATEMENTS[keyword[0]])
    for pattern, help in _OF_BOOL:
        if pattern.search(text):
            return _Advice(_KNOWN, help)
    cond = "`jnp.where` or `jax.lax.cond`" if scalar else "`jnp.where`, or reduce with `jnp.any`"
    return _Advice(
        _KNOWN, f"choose with {cond}, combine with `&`, `|`, `~`", may_be_static=_flag(text)
    )


def _flag(text: str) -> bool:
    """Whether what is tested is a flag or a mode: a name alone, or one that equals an integer."""
    return re.fullmatch(r"(?:not )?\w+|\w+ [!=]= \d+", text) is not None


_SIZED = (
    (re.compile(r"\brepeat\("), "give `jnp.repeat` a `total_repeat_length=`"),
    (
        re.compile(
            r"\b(?:nonzero|flatnonzero|argwhere|unique\w*|where|setdiff1d|union1d|intersect1d)\("
        ),
        "give a `size=` that is known while tracing, and a `fill_value=`",
    ),
    (re.compile(r"\bbincount\("), "give `jnp.bincount` a `length=`"),
)


def _of_concrete(text: str, message: str) -> _Advice:
    """Return how to do without the number itself."""
    if re.search(r"\.item\(|\.tolist\(|(?<![\w.])(?:float|int|complex)\(", text):
        return _Advice(
            "converts a traced value to a Python number",
            "leave it an array: convert with `.astype(…)`, print with `jax.debug.print`",
        )
    for pattern, help in _SIZED:
        if pattern.search(text):
            return _Advice("has a size that depends on traced values", help)
    if "problem arose with the" in message:
        return _Advice(
            "converts a traced value to a Python number",
            "leave it an array: convert with `.astype(…)` or `jnp.asarray`",
        )
    return _Advice(
        "needs a size, an axis or a count that is only known when the function runs",
        "take the size from another array's `.shape`",
        may_be_static=True,
    )


def _is_scalar(failure: Failure) -> bool:
    kind = aval(failure)
    return not kind or kind.endswith("[]")
