"""Programs that some version of jaxlib compiles wrongly on CPUs, and neighbours of theirs that all
compile rightly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from jaxsight.rules.jx413_miscompiled import rule as jx413_miscompiled
from jaxsight.rules.program.view import ProgramView
from jaxsight.tracer.calls.state_updates import Outcome
from jaxsight.tracer.handlers.outline import outline
from jaxsight.tracer.job import Job
from jaxsight.tracer.kept_traces import KeptTrace, Traces
from jaxsight.wire.messages.replies import Runtime
from jaxsight.wire.messages.requests import Outline

BROKEN = Runtime("0.10.2", "cpu", "linux x86_64")
"""Where all of the known patterns fail."""


@dataclass(frozen=True)
class Pattern:
    """A function of arrays, as Python source, and the issue that its failure is known by (0 for
    neighbours).
    """

    name: str
    function: str
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    issue: int = 0


def _pattern(
    name: str, function: str, *shapes: tuple[int, ...], issue: int = 0, kind: str = "float32"
) -> Pattern:
    return Pattern(name, function, tuple((shape, kind) for shape in shapes), issue)


_VMAPPED = "lambda m, x: jax.vmap(lambda row: jnp.sum((m @ row) ** 2))(x)"
_TRANSPOSED = "lambda m, x: jnp.max(jnp.abs(m @ x.T) + 1, axis=0)"
_SUMMED = "lambda a, b: jnp.sum(a * b, axis={})"
_BROADCAST = "lambda a, b: jnp.sum(a[..., None, None, None, None] * b, axis={})"
_NEW = "[..., None, None, None, None]"
_FEW, _MANY = (10, 4, 6), (10, 4, 6, 9, 9, 9, 9)
_SINGLE = (3, 1, 2, 2, 8, 8, 8)

PATTERNS = (
    _pattern("vmap of a product", _VMAPPED, (3, 3), (40_000, 3), issue=39103),
    _pattern("the shortest one", _VMAPPED, (2, 3), (32_769, 3), issue=39103),
    _pattern("transposed", _TRANSPOSED, (3, 3), (40_000, 3), issue=39103),
    _pattern("f64", _VMAPPED, (5, 7), (17_000, 7), issue=39103, kind="float64"),
    _pattern("in bfloat16", _VMAPPED, (3, 3), (40_000, 3), issue=39103, kind="bfloat16"),
    _pattern("the longest one", _VMAPPED, (3, 3), (43_500, 3), issue=39103),
    _pattern("six rows", _VMAPPED, (6, 3), (20_000, 3), issue=39103, kind="float64"),
    *(
        _pattern(words, _VMAPPED.replace("(m @ row) ** 2", way), (3, 3), (40_000, 3), issue=39103)
        for words, way in (
            ("scaled", "2.0 * (m @ row)"),
            ("moved", "(m @ row - 1.0) ** 2"),
            ("by a scalar", "(m @ row) * m[0, 0]"),
            ("exponential", "jnp.exp(-((m @ row) ** 2))"),
            ("gelu", "jax.nn.gelu(m @ row)"),
            ("product written twice", "(m @ row) * jnp.abs(m @ row)"),
            ("rounded", "jnp.round(m @ row)"),
            ("rounded to decimals", "jnp.round(m @ row, 2)"),
            ("with the sign of a number", "jnp.copysign(m @ row, -2.0)"),
            ("a choice that is known", "jnp.where(jnp.cos(1.0) > 0, m @ row, -(m @ row))"),
        )
    ),
    _pattern(
        "with a derivative that is dropped",
        f"lambda m, x: jax.vjp(lambda n: ({_VMAPPED})(n, x), m)[0]",
        (3, 3),
        (40_000, 3),
        issue=39103,
    ),
    *(
        _pattern(words, _VMAPPED.replace("(m @ row) ** 2", way), (3, 3), (40_000, 3))
        for words, way in (
            ("rounded away from zero", "jax.lax.round(m @ row)"),
            ("truncated", "jnp.trunc(m @ row)"),
            ("with the signs of an array", "jnp.copysign(m @ row, m[:, 0])"),
            ("with the sign of an element", "jnp.copysign(m @ row, m[0, 0])"),
            ("a choice by an element", "jnp.where(m[0, 0] > 0, m @ row, -(m @ row))"),
            ("a choice of something else", "jnp.where(jnp.cos(1.0) > 0, 0.0, m @ row)"),
        )
    ),
    _pattern("more rows than columns", _VMAPPED, (5, 3), (23_800, 3), kind="float64"),
    _pattern(
        "clipped",
        _VMAPPED.replace("(m @ row) ** 2", "jnp.clip(m @ row, -1, 1)"),
        (3, 3),
        (40_000, 3),
    ),
    _pattern(
        "small matrix transposed",
        "lambda m, x: jnp.sum((m.T @ x.T) ** 2, axis=0)",
        (3, 3),
        (40_000, 3),
    ),
    _pattern(
        "product in two sums",
        "lambda m, x: (jnp.sum((m @ x.T) ** 2, 0), jnp.sum(jnp.abs(m @ x.T), 0))",
        (3, 3),
        (40_000, 3),
    ),
    _pattern(
        "product kept by a loop",
        "lambda m, x: jnp.add(*jax.lax.scan(lambda n, _: (n, (jnp.sum(y := n @ x.T, 0), y[0])), m, length=2)[1])",
        (3, 3),
        (40_000, 3),
    ),
    _pattern("too short", _VMAPPED, (3, 3), (32_768, 3)),
    _pattern("too long", _VMAPPED, (3, 3), (65_537, 3)),
    _pattern("four columns", _VMAPPED, (2, 4), (24_576, 4), kind="float64"),
    _pattern("rows last", "lambda m, x: jnp.sum((x @ m.T) ** 2, axis=1)", (3, 3), (40_000, 3)),
    _pattern("sine", _VMAPPED.replace("(m @ row) ** 2", "jnp.sin(m @ row)"), (3, 3), (40_000, 3)),
    _pattern(
        "product used twice",
        "lambda m, x: jnp.sum((p := m @ x.T), axis=0) + p[0]",
        (3, 3),
        (40_000, 3),
    ),
    _pattern("an axis of one", _SUMMED.format(3), _SINGLE, _SINGLE, issue=40412),
    _pattern("eight axes", _SUMMED.format(4), *[(2, 3, 1, 2, 2, 8, 8, 8)] * 2, issue=40412),
    *(
        _pattern(words, f"lambda a, b: jnp.sum({product}, axis=3)", _SINGLE, shape, issue=40412)
        for words, product, shape in (
            ("negated", "-(a * b)", _SINGLE),
            ("scaled and negated", "-(2 * a * b)", _SINGLE),
            ("one broadcast along the last axis", "a * b", (3, 1, 2, 2, 8, 8, 1)),
            ("one broadcast along the summed axis", "a * b", (3, 1, 2, 1, 8, 8, 8)),
            ("one broadcast along the first axis", "a * b", (1, 1, 2, 2, 8, 8, 8)),
            ("one with a new axis", "a * b[..., None]", _SINGLE[:-1]),
            ("both transposed", "a.mT * b.mT", _SINGLE),
            ("one reshaped", "a * b.reshape(a.shape)", (3, 1, 2, 2, 64, 8)),
        )
    ),
    _pattern("two axes of one", _SUMMED.format(4), *[(3, 1, 2, 1, 2, 8, 8, 8)] * 2, issue=40412),
    *(
        _pattern(f"shape {shape}", _SUMMED.format(axis), shape, shape)
        for shape, axis in (
            ((3, 1, 2, 2, 8, 8, 8, 2, 2), 3),
            ((2, 3, 1, 2, 2, 8, 8, 8, 2), 4),
            ((1, 1, 2, 2, 16, 16, 16), 3),
            ((6, 1, 1, 2, 8, 8, 8), 3),
            ((1, 6, 1, 2, 8, 8, 8), 3),
        )
    ),
    _pattern("both broadcast", _SUMMED.format(3), (3, 1, 2, 2, 8, 8, 1), (3, 1, 2, 2, 8, 1, 8)),
    _pattern(
        "reshaped in two ways",
        "lambda a, b: jnp.sum(jnp.exp(a.reshape(3, 1, 2, 2, 8, 8, 8)) * b[:, None], axis=3)",
        (3, 1, 2, 2, 64, 8),
        (3, 2, 2, 8, 8, 8),
        issue=40412,
    ),
    _pattern(
        "reshaped in one way",
        "lambda a, b: jnp.sum(jnp.exp(a[:, None]) * b[:, None], axis=3)",
        *[(3, 2, 2, 8, 8, 8)] * 2,
    ),
    _pattern("by one number", "lambda a: jnp.sum(a * jnp.full(a.shape, 2.5), axis=3)", _SINGLE),
    _pattern("less than zero", "lambda a, b: jnp.sum(0 - a * b, axis=3)", _SINGLE, _SINGLE),
    _pattern("no axis of one", _SUMMED.format(3), *[(3, 2, 2, 2, 8, 8, 8)] * 2),
    _pattern("six axes", _SUMMED.format(3), *[(3, 1, 2, 2, 8, 8)] * 2),
    _pattern("over a late axis", _SUMMED.format(5), _SINGLE, _SINGLE),
    _pattern("a square", "lambda a: jnp.sum(a * a, axis=3)", _SINGLE),
    _pattern("a sum of sums", "lambda a, b: jnp.sum(a + b, axis=3)", _SINGLE, _SINGLE),
    _pattern("a maximum", "lambda a, b: jnp.max(a * b, axis=3)", _SINGLE, _SINGLE),
    _pattern("broadcast", _BROADCAST.format(2), (10, 4, 6), (10, 4, 6, 9, 9, 9, 9), issue=39257),
    _pattern(
        "the issue's own",
        "lambda a, b: jnp.log(jnp.maximum(jnp.sum(a[..., None, None, None, None, None] * b, axis=2), 1e-16))",
        (10, 4, 6),
        (10, 4, 6, 9, 9, 9, 9, 9),
        issue=39257,
    ),
    *(
        _pattern(words, f"lambda a, b: jnp.sum({product}, axis={axis})", one, other, issue=39257)
        for words, product, axis, one, other in (
            ("broadcast, negated", f"-(a{_NEW} * b)", 2, _FEW, _MANY),
            ("reshaped", "a.reshape(10, 4, 6, 1, 1, 1, 1) * b", 2, _FEW, _MANY),
            ("broadcast to the shape", f"jnp.broadcast_to(a{_NEW}, b.shape) * b", 2, _FEW, _MANY),
            ("broadcast, then changed", f"jnp.exp(a{_NEW}) * b", 2, _FEW, _MANY),
            ("broadcast, then scaled", f"2 * a{_NEW} * b", 2, _FEW, _MANY),
            ("broadcast along the first axis too", f"a[None]{_NEW} * b", 3, _FEW, (2, *_MANY)),
        )
    ),
    *(
        _pattern(words, f"lambda a, b: jnp.sum({product}, axis=2)", one, other)
        for words, product, one, other in (
            ("nine axes", "a[..., *(None,) * 6] * b", (2, 2, 2), (2, 2, 2, *(9,) * 6)),
            ("an axis of one in both", f"a{_NEW} * b", (10, 1, 6), (10, 1, 6, 9, 9, 9, 9)),
            ("numbers by one number", f"a{_NEW} * jnp.ones(b.shape)", _FEW, _MANY),
            ("one number by numbers", f"jnp.ones(a.shape){_NEW} * b", _FEW, _MANY),
        )
    ),
    _pattern("small axes", _BROADCAST.format(2), (10, 4, 6), (10, 4, 6, 5, 5, 5, 5)),
    _pattern("over a broadcast axis", _BROADCAST.format(3), (10, 4, 6), (10, 4, 6, 9, 9, 9, 9)),
)


def findings(pattern: Pattern, runtime: Runtime | None = None) -> list[str]:
    """Return the messages of JX413 about a pattern; for this environment where no `runtime` is
    given.
    """
    x64 = any(kind == "float64" for _, kind in pattern.inputs)
    with jax.enable_x64(x64):
        structs = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in pattern.inputs]
        function = eval(pattern.function, {"jax": jax, "jnp": jnp, "math": math})
        traced = jax.jit(function).trace(*structs)
        traces = Traces()
        traces.keep(1, KeptTrace.of(traced, Outcome(), {}))
        outlined = outline(Job(Outline(2, 1), traces))
    outlined = replace(outlined, runtime=runtime or outlined.runtime)
    view = ProgramView(
        name="f",
        program=outlined.program,
        folds=outlined.folds,
        warnings=(),
        quote=lambda _: "",
        around=lambda _: (),
        runtime=outlined.runtime,
    )
    return [violation.message for violation in jx413_miscompiled.find(view)]
