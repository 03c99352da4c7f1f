"""Templates of composites, barriers and sinks, around functions of many forms."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, normalised, prepare, reduced
from jaxsight.dataset.generating.vocabulary import DATA
from jaxsight.dataset.generating.writer import Writer, argument


@template("composites", "custom rules", 3)
def composites(w: Writer) -> None:
    """Write calls of functions that stay one operation in StableHLO."""
    dtype, shape = w.wide(), w.shape(1, 3, 12)
    x = w.array(DATA, dtype, shape)
    w.blocked(x)
    w.imported("from functools import partial")
    name = w.name("squash activation block scaled_tanh gate_values")
    version = w.pick(("", ", version=1", ", version=2"))
    domain = w.pick(("example", "model", "my_library"))
    source = w.let("source", calm(w, prepare(w, x, 1)))
    decorator = f'@partial(lax.composite, name="{domain}.{name}"{version})'
    is_binary = w.chance(0.4)
    head = f"{name}(v, weights)" if is_binary else f"{name}(v)"
    with w.helper(head, decorator):
        inner = argument("v", dtype, shape, "normal").within(source.low, source.high)
        body = chain(w, inner, w.between(1, 3))
        if is_binary:
            weights = argument("weights", dtype, shape, "unit")
            body = binary(w, w.short(calm(w, body), "inner"), weights)
        body = w.let("result", calm(w, body))
        w.line(f"return {body}")
    text = f"{name}({source})"
    if is_binary:
        other = w.array("gains scale factors", dtype, shape, "unit")
        text = f"{name}({source}, {other})"
    y = w.let("composed", w.make(text, source, low=body.low, high=body.high))
    w.words += ["composite", name, w.pick(("of_values", "of_inputs", "of_features"))]
    w.title = f"Call {name.replace('_', ' ')} as one operation"
    leave(w, w.let("total", w.make(f"{y} + 0.1 * {x}", y, x)), [x], 4)


@template("barriers and sinks", "custom rules", 3)
def barriers(w: Writer) -> None:
    """Write values that the compiler neither merges nor removes."""
    dtype, shape = w.floating(), w.shape(1, 3, 16)
    x = w.array(DATA, dtype, shape)
    source = w.let("source", calm(w, prepare(w, x, 1)))
    kind = w.pick(("sink", "sink", "sink", "barrier", "pair", "stages"))
    w.words += [kind, w.pick(("around", "between", "after")), w.pick(("values", "stages", "parts"))]
    w.title = f"Compute values with a {kind} that the compiler keeps"
    if kind == "sink":
        diagnostic, _ = reduced(w, source, w.pick((None, x.rank - 1)))
        if w.chance(0.4):
            diagnostic, _ = normalised(w, source)
        w.line(f"lax.dce_sink({w.let('diagnostic', diagnostic)})")
        y = chain(w, source, w.between(1, 3))
    elif kind == "barrier":
        first = w.let("first", calm(w, chain(w, source, w.between(1, 2))))
        kept = w.let("kept", w.make(f"lax.optimization_barrier({first})", first))
        y = chain(w, kept, w.between(1, 2))
    elif kind == "pair":
        one = w.let("one", calm(w, chain(w, source, 1)))
        other = w.let("other", calm(w, chain(w, x, w.between(1, 2))))
        w.line(f"left, right = lax.optimization_barrier(({one}, {other}))")
        y = binary(w, w.make("left", one), w.make("right", other))
    else:
        y = source
        for _ in range(w.between(2, 3)):
            y = w.let("stage", calm(w, chain(w, y, 1)))
            y = w.let("held", w.make(f"lax.optimization_barrier({y})", y))
        y = w.make(f"{y} - 0.5 * {x}", y, x)
    y = w.let("result", calm(w, y))
    leave(w, w.let("total", w.make(f"{y} + 0.1 * {x}", y, x)), [x], 3)
