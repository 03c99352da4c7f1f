"""Templates of neural-network blocks: attention, normalisation, recurrent cells, mixtures."""

from __future__ import annotations

import math

from jaxsight.dataset.generating.elementwise import chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, linear, prepare
from jaxsight.dataset.generating.types import Value, power
from jaxsight.dataset.generating.writer import Writer


@template("attention", "blocks", 4)
def attention(w: Writer) -> None:
    """Write attention with optional heads, masks, scales and biases."""
    dtype = w.floating()
    batch = (w.between(1, 3),) if w.chance(0.6) else ()
    heads = w.pick((None, 2, 4))
    length, width = w.size(2, 12), w.pick((2, 4, 8))
    other = length if w.chance(0.6) else w.size(2, 12)
    inner = (heads, width) if heads else (width,)
    grouped = heads is not None and w.chance(0.2)
    kv_inner = (1, width) if grouped else inner
    names = w.pick(("query key_states value_states", "q k v", "queries memory_keys memory_values"))
    parts = [
        w.array(name, dtype, (*batch, size, *shape))
        for name, size, shape in zip(
            names.split(), (length, other, other), (inner, kv_inner, kv_inner), strict=True
        )
    ]
    q, k, v = [prepare(w, part, 1) for part in parts]
    words = []
    if w.chance(0.25):
        for value in (q, k):
            mean = f"jnp.mean({power(value.text, 2)}, axis=-1, keepdims=True)"
            value_name = w.let(
                "query_scaled key_scaled",
                w.make(f"{value.atom} * lax.rsqrt({mean} + 1e-3)", value, low=-3, high=3),
            )
            q, k = (value_name, k) if value is q else (q, value_name)
        words.append("normalized")
    if grouped:
        w.line(f"key_heads = jnp.repeat({k}, {heads}, axis=-2)")
        w.line(f"value_heads = jnp.repeat({v}, {heads}, axis=-2)")
        k, v = k.named("key_heads"), v.named("value_heads")
        words.append("grouped")
    b, h = "b" if batch else "", "h" if heads else ""
    scale = w.pick((f"{width}**-0.5", str(round(width**-0.5, 4)), "0.25"))
    products = f'jnp.einsum("{b}q{h}d,{b}k{h}d->{b}{h}qk", {q}, {k})'
    shape = (*batch, *((heads,) if heads else ()), length, other)
    products_value = w.make(products, q, k, shape=shape, low=-12, high=12)
    scores = w.let("products", products_value)
    scores = w.let("scores logits", w.make(f"{scores} * {scale}", scores))
    if w.chance(0.2):
        bias = w.array("position_bias bias", dtype, (length, other))
        scores = w.let("biased", w.make(f"{scores} + {bias}", scores, bias))
        words.append("biased")
    if w.chance(0.2):
        cap = w.pick((5.0, 10.0, 30.0))
        scores = w.let("capped", w.make(f"{cap} * jnp.tanh({scores} / {cap})", scores))
        words.append("capped")
    mask = w.pick(("none", "causal", "given", "window", "none"))
    if mask == "causal":
        w.line(f"causal = jnp.tril(jnp.ones(({length}, {other}), dtype=bool))")
        text = f"jnp.where(causal, {scores}, -1e4)"
        scores = w.let("masked", w.make(text, scores))
    elif mask == "given":
        m = w.array("mask visible", "bool", (length, other))
        scores = w.let("masked", w.make(f"jnp.where({m}, {scores}, -1e4)", scores))
    elif mask == "window":
        w.line(f"rows = jnp.arange({length})[:, None]")
        w.line(f"near = jnp.abs(rows - jnp.arange({other})) < {w.between(2, 4)}")
        scores = w.let("masked", w.make(f"jnp.where(near, {scores}, -1e4)", scores))
    words += [mask] if mask not in ("none", "given") else ["masked"] * (mask == "given")
    weight = w.pick(
        (
            "jax.nn.softmax({s}, axis=-1)",
            "jax.nn.softmax({s}, axis=-1)",
            "jax.nn.sigmoid({s})",
            "manual",
        )
    )
    if weight == "manual":
        w.line(f"exponents = jnp.exp({scores} - jnp.max({scores}, axis=-1, keepdims=True))")
        weight = "exponents / jnp.sum(exponents, axis=-1, keepdims=True)"
    weights = w.let("weights attention", w.make(weight.format(s=scores), scores, low=0, high=1))
    text = f'jnp.einsum("{b}{h}qk,{b}k{h}d->{b}q{h}d", {weights}, {v})'
    y = w.let(
        "context mixed", w.make(text, weights, v, shape=(*batch, length, *inner), low=-9, high=9)
    )
    if heads:
        total = heads * width
        lead = ", ".join(map(str, (*batch, length)))
        y = w.let(
            "merged", w.make(f"{y}.reshape({lead}, {total})", y, shape=(*batch, length, total))
        )
    if w.chance(0.4):
        out = w.array("output_weights projection", dtype, (y.shape[-1], w.size(2, 12)))
        y = linear(w, y, out, "projected")
    w.words += [*words, "multi_head" if heads else "", "attention"]
    described = ", ".join([*words, *(["multi-head"] if heads else [])])
    w.title = f"Compute {described + ' ' if described else ''}attention"
    leave(w, y, [], 2)


@template("normalisation layer", "blocks", 3)
def normalisation(w: Writer) -> None:
    """Write layer, batch, group, instance and root-mean-square normalisation."""
    dtype = w.floating()
    kind = w.pick(("layer", "rms", "batch", "group", "instance", "weight"))
    channels = w.pick((4, 8, 12))
    shape = (w.between(2, 4), *w.shape(1, 2, 8), channels)
    x = w.array("x hidden features", dtype, shape)
    y = prepare(w, x, 1)
    y = w.let("inputs", calm(w, y, 12))
    axes = _axes(kind, len(shape))
    if kind == "group":
        groups = w.pick((2, 4))
        lead = ", ".join(map(str, shape[:-1]))
        text = f"{y}.reshape({lead}, {groups}, {channels // groups})"
        y = w.let("grouped", w.make(text, y, shape=(*shape[:-1], groups, channels // groups)))
    epsilon = w.pick(("1e-3", "1e-2", "1e-1"))
    if kind == "rms":
        w.line(f"mean_square = jnp.mean({power(y.text, 2)}, {axes}, keepdims=True)")
        text = w.pick(
            (
                f"{y} * lax.rsqrt(mean_square + {epsilon})",
                f"{y} / jnp.sqrt(mean_square + {epsilon})",
            )
        )
    else:
        w.line(f"mean = jnp.mean({y}, {axes}, keepdims=True)")
        if w.chance(0.5):
            w.line(f"variance = jnp.var({y}, {axes}, keepdims=True)")
        else:
            w.line(f"variance = jnp.mean(({y} - mean) ** 2, {axes}, keepdims=True)")
        text = w.pick(
            (
                f"({y} - mean) * lax.rsqrt(variance + {epsilon})",
                f"({y} - mean) / jnp.sqrt(variance + {epsilon})",
            )
        )
    z = w.let("normalized", w.make(text, y, low=-6, high=6))
    if kind == "group":
        z = w.let(
            "normalized_all", w.make(f"{z}.reshape({', '.join(map(str, shape))})", z, shape=shape)
        )
    words = []
    if w.chance(0.8):
        scale = w.array("scale gamma", dtype, (channels,))
        z = w.let("scaled", w.make(f"{z} * {scale}", z, scale, low=-20, high=20))
        words.append("scale")
    if w.chance(0.6):
        bias = w.array("bias beta", dtype, (channels,))
        z = w.let("shifted", w.make(f"{z} + {bias}", z, bias, low=-25, high=25))
        words.append("bias")
    w.words += [kind, "norm", *words]
    w.title = f"Apply {kind.replace('rms', 'root-mean-square')} normalisation"
    z = w.let("cubed", w.make(f"jnp.tanh({z})", z, low=-1, high=1)) if not words else z
    leave(w, z, [x], 3)


def _axes(kind: str, rank: int) -> str:
    """Return the axes over which a kind of normalisation takes statistics, as an argument."""
    return {
        "layer": "axis=-1",
        "rms": "axis=-1",
        "batch": f"axis={tuple(range(rank - 1))}",
        "instance": f"axis={tuple(range(1, rank - 1))}".replace("(1,)", "1"),
        "group": "axis=-1",
        "weight": "axis=0",
    }[kind]


@template("dense layers", "blocks", 3)
def dense(w: Writer) -> None:
    """Write a stack of dense layers with activations, residuals and gates."""
    dtype = w.floating()
    width = w.size(2, 16)
    x = w.array("x inputs features", dtype, (*w.shape(1, 2, 6), width))
    y = prepare(w, x, 1)
    kinds = []
    for _ in range(w.between(1, 3)):
        kind = w.pick(("dense", "residual", "gated", "expand"))
        kinds.append(kind)
        if kind in ("residual", "gated"):
            one = w.array("w1 w2 w3", dtype, (y.shape[-1], y.shape[-1]))
            hidden = linear(w, y, one, "hidden")
            hidden = w.short(calm(w, chain(w, calm(w, hidden), w.between(1, 2))), "activated", 30)
            text = f"{y} + {hidden}" if kind == "residual" else f"{y} * jax.nn.sigmoid({hidden})"
            y = w.let("residual gated", w.make(text, y, hidden, low=y.low - 9, high=y.high + 9))
        else:
            one = w.array("weights kernel up", dtype, (y.shape[-1], w.size(2, 16)))
            y = linear(w, calm(w, y), one, "hidden")
            if w.chance(0.6):
                bias = w.array("bias offset", dtype, (y.shape[-1],))
                y = w.let("biased", w.make(f"{y} + {bias}", y, bias))
            y = w.let("activated", calm(w, chain(w, calm(w, y), w.between(1, 2))))
    w.words += [*dict.fromkeys(kinds), w.pick(("layers", "network", "mlp"))]
    w.title = f"Apply {len(kinds)} dense layer{'s' if len(kinds) > 1 else ''}: {', '.join(kinds)}"
    leave(w, y, [x], 2)


@template("recurrent cell", "blocks", 3)
def recurrent(w: Writer) -> None:
    """Write a recurrent network under `lax.scan`."""
    dtype = w.floating()
    length, inner, width = w.size(2, 12), w.size(2, 8), w.size(2, 8)
    kind = w.pick(("elman", "gru", "lstm", "minimal", "linear"))
    gates = {"gru": 3, "lstm": 4, "minimal": 2}.get(kind, 1)
    batch = (w.between(2, 4),) if w.chance(0.4) else ()
    xs = w.array("xs sequence inputs", dtype, (length, *batch, inner))
    wx = w.array("input_weights wx", dtype, (inner, gates * width))
    wh = w.array("state_weights wh", dtype, (width, gates * width))
    h = w.array("h0 initial", dtype, (*batch, width))
    bias = w.array("bias", dtype, (gates * width,)) if w.chance(0.5) else None
    activation = w.pick(("jnp.tanh", "jnp.sin", "jax.nn.sigmoid", "jax.nn.soft_sign"))
    with w.nested("cell(carry, x)"):
        state = "h" if kind == "lstm" else "carry"
        if kind == "lstm":
            w.line("h, c = carry")
        tail = f" + {bias}" if bias else ""
        w.line(f"inputs = x @ {wx} / {round(math.sqrt(inner), 3)}{tail}")
        w.line(f"recurrent = {state} @ {wh} / {round(math.sqrt(width), 3)}")
        _write_cell(w, kind, activation)
        output = w.short(
            chain(w, Value("new", dtype, h.shape, -1, 1, True), w.between(0, 2)), "output"
        )
        w.line(f"return {'(new, c)' if kind == 'lstm' else 'new'}, {output}")
    start = f"({h}, jnp.zeros_like({h}))" if kind == "lstm" else h.text
    sources = [xs, wx, wh, h, *([bias] if bias else [])]
    options = w.pick(("", "", ", reverse=True"))
    last = "(final, _)" if kind == "lstm" else "final"
    w.line(f"{last}, outputs = lax.scan(cell, {start}, {xs}{options})")
    w.names |= {"final", "outputs"}
    final = w.make("final", *sources, shape=h.shape, low=-5, high=5)
    outputs = w.make(
        "outputs", *sources, shape=(length, *output.shape), low=output.low, high=output.high
    )
    w.words += [kind, w.pick(("network", "recurrence", "encoder")), w.pick(("", "over_time"))]
    w.title = (
        f"Run a recurrent network of {kind.upper() if kind in ('gru', 'lstm') else kind} cells"
    )
    if w.chance(0.4):
        w.give(final, outputs)
        return
    if w.chance(0.5):
        value = w.let(
            "summary", w.make("jnp.mean(outputs, axis=0) + final", final, outputs, low=-9, high=9)
        )
        leave(w, value, [], 3)
        return
    leave(w, w.let("states", w.make("outputs + final", outputs, final, low=-9, high=9)), [], 3)


def _write_cell(w: Writer, kind: str, activation: str) -> None:
    """Write how a cell computes its new state from its inputs and its recurrent part."""
    if kind == "gru":
        w.line("reset_x, update_x, new_x = jnp.split(inputs, 3, axis=-1)")
        w.line("reset_h, update_h, new_h = jnp.split(recurrent, 3, axis=-1)")
        w.line("reset = jax.nn.sigmoid(reset_x + reset_h)")
        w.line("update = jax.nn.sigmoid(update_x + update_h)")
        w.line(f"candidate = {activation}(new_x + reset * new_h)")
        w.line("new = (1.0 - update) * candidate + update * carry")
    elif kind == "lstm":
        w.line("gates = inputs + recurrent")
        w.line("i, f, g, o = jnp.split(gates, 4, axis=-1)")
        w.line(f"c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * {activation}(g)")
        w.line("new = jax.nn.sigmoid(o) * jnp.tanh(c)")
    elif kind == "minimal":
        w.line("forget, candidate = jnp.split(inputs + recurrent, 2, axis=-1)")
        w.line("forget = jax.nn.sigmoid(forget)")
        w.line(f"new = forget * carry + (1.0 - forget) * {activation}(candidate)")
    elif kind == "linear":
        w.line("new = 0.9 * carry + 0.1 * jnp.tanh(inputs + recurrent)")
    else:
        w.line(f"new = {activation}(inputs + recurrent)")


@template("mixture of experts", "blocks", 4)
def mixture(w: Writer) -> None:
    """Write a mixture of experts, with soft or hard routing."""
    dtype = w.wide()
    tokens, width, experts, outer = w.size(2, 8), w.size(2, 8), w.between(2, 4), w.size(2, 8)
    x = w.array("x tokens hidden", dtype, (tokens, width))
    router = w.array("router gate_weights", dtype, (width, experts))
    kernels = w.array("experts expert_weights", dtype, (experts, width, outer))
    y = w.let("inputs", calm(w, prepare(w, x, 1), 12))
    kind = w.pick(("soft", "ragged", "ragged", "top_k", "capacity"))
    w.words += [kind, "mixture", w.pick(("of_experts", "layer"))]
    w.title = f"Apply a mixture of experts with {kind.replace('_', '-')} routing"
    root = round(math.sqrt(width), 3)
    if kind == "ragged":
        sizes = w.array(
            "group_counts", w.dtype("int32"), (experts,), f"integers:{max(2, tokens // experts)}"
        )
        w.line(f"scores = jax.nn.sigmoid({y} @ {router})")
        w.line(f"counts = {sizes}.at[-1].set({tokens} - jnp.sum({sizes}[:-1], dtype=jnp.int32))")
        text = f"lax.ragged_dot({y}, {kernels}, counts) / {root}"
        z = w.make(text, y, kernels, shape=(tokens, outer), low=-20, high=20)
        z = w.let("routed", z)
        z = w.make(f"{z} * jnp.mean(scores, axis=-1, keepdims=True)", z, router)
    else:
        w.line(f"logits = {y} @ {router} / {root}")
        if kind == "top_k":
            w.line("best = lax.top_k(logits, 2)[0]")
            w.line("kept = jnp.where(logits >= best[:, -1:], logits, -1e4)")
            w.line("probabilities = jax.nn.softmax(kept, axis=-1)")
        elif kind == "capacity":
            w.line("probabilities = jax.nn.softmax(logits, axis=0)")
        else:
            w.line("probabilities = jax.nn.softmax(logits, axis=-1)")
        w.line(f'outputs = jnp.einsum("ti,eio->teo", {y}, {kernels}) / {root}')
        activated = chain(
            w, Value("outputs", dtype, (tokens, experts, outer), -20, 20, True), w.between(0, 2)
        )
        activated = w.let("activated", calm(w, activated))
        text = f'jnp.einsum("teo,te->to", {activated}, probabilities)'
        z = w.make(text, y, kernels, router, shape=(tokens, outer), low=-20, high=20)
    leave(w, calm(w, w.let("mixed", z)), [], 3)


@template("embedding and positions", "blocks", 2)
def embedding(w: Writer) -> None:
    """Write embeddings of tokens with positions, and rotary rotations."""
    dtype = w.wide()
    length, width, count = w.size(2, 12), w.pick((4, 6, 8)), w.size(4, 24)
    batch = (w.between(1, 3),) if w.chance(0.5) else ()
    tokens = w.array("tokens ids", w.index(), (*batch, length), f"integers:{count}")
    table = w.array("embeddings table", dtype, (count, width))
    kind = w.pick(("learned", "sinusoid", "rotary", "relative"))
    shape = (*batch, length, width)
    w.line(f"hidden = {table}[{tokens}]")
    hidden = w.make("hidden", table, shape=shape)
    w.words += [kind, "embedding", w.pick(("tokens", "layer"))]
    w.title = f"Embed tokens with {kind} positions"
    w.names.add("hidden")
    if kind == "learned":
        positions = w.array("positions", dtype, (length, width))
        y = w.make(f"hidden + {positions}", hidden, positions, low=-9, high=9)
    elif kind == "relative":
        decay = w.array("decay slope", dtype, ())
        w.line(f"steps = jnp.arange({length}, dtype=jnp.{dtype})[:, None]")
        y = w.make(f"hidden * jnp.exp(-0.1 * jnp.abs({decay}) * steps)", hidden, decay)
    else:
        half = width // 2
        w.line(f"rates = 1.0 / 100.0 ** (jnp.arange({half}, dtype=jnp.{dtype}) / {half})")
        w.line(f"angles = jnp.arange({length}, dtype=jnp.{dtype})[:, None] * rates")
        if kind == "sinusoid":
            w.line("waves = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)")
            y = w.make("hidden + waves", hidden, low=-6, high=6)
        else:
            w.line(f"even, odd = hidden[..., :{half}], hidden[..., {half}:]")
            w.line("first = even * jnp.cos(angles) - odd * jnp.sin(angles)")
            w.line("second = even * jnp.sin(angles) + odd * jnp.cos(angles)")
            y = w.make("jnp.concatenate([first, second], axis=-1)", hidden, low=-7, high=7)
    leave(w, w.let("embedded", y), [], 4)
