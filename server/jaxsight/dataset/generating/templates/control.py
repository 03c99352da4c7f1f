"""Templates of conditionals."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("branch", "conditionals", 3)
def FIRST_or_SECOND(x: F[S], bias: F[S], mode: INDEX[below(COUNT)], flag: BOOL[()]):
    """Choose between FIRST and SECOND with KIND."""
    S, COUNT = shape(0, 3, 24), between(2, 4)
    FIRST, SECOND, THIRD, FOURTH = sample(
        ["grow", "shrink", "damp", "mix", "fold", "relax", "warp"], 4
    )
    KIND = choose("cond", "switch", "cond", "nested")

    def FIRST(v: F[S], u: F[S]):
        return choose(mixed(v, u), mixed(v))

    def SECOND(v: F[S], u: F[S]):
        return choose(mapped(v, 2), mixed(v, u))

    def THIRD(v: F[S], u: F[S]):
        return mapped(u)

    def FOURTH(v: F[S], u: F[S]):
        return jnp.tanh(v) * choose(u, v)

    condition = flag if KIND == "cond" and chance(0.6) else x.ravel()[0] > 0.0 if S else x > 0.0
    if KIND == "switch":
        BRANCHES = ", ".join([FIRST, SECOND, THIRD, FOURTH][:COUNT])
        ALL = "[" + BRANCHES + "]"
        y: F[S] = lax.switch(mode, ALL, x, bias)
    else:
        y: F[S] = lax.cond(condition, FIRST, SECOND, x, bias)
    if KIND == "nested":
        last = x.ravel()[-1] if S else x
        other = lax.cond(last > 0.0, THIRD, FOURTH, bias, x)
        y: F[S] = y + other
    z: F[S] = choose(y - 0.5 * x, jnp.tanh(y) * x, y + bias, y)
    return more(z, x, most=3)


@template("piecewise", "conditionals", 3)
def KIND_curve_of_NAME(x: F[S]):
    """Evaluate a function with several regimes (KIND)."""
    S, NAME = shape(0, 4, 24), choose("distance", "time", "level")
    KIND = choose("where", "select", "nested", "pieces", "select_n", "clip", "lax_select")
    LOW, HIGH = choose(-0.5, -0.9, -1.3), choose(0.4, 0.9, 1.2)
    low_part: F[S] = mapped(x, 2)
    middle_part: F[S] = mapped(x, 2)
    high_part: F[S] = mapped(x, 2)

    def rising(v: F[S]):
        return mapped(v, 2)

    def falling(v: F[S]):
        return -mapped(v)

    if KIND == "where":
        mask = compared(x)
        y: F[S] = jnp.where(mask, low_part, middle_part)
    elif KIND == "nested":
        upper = jnp.where(x < HIGH, middle_part, high_part)
        y: F[S] = jnp.where(x < LOW, low_part, upper)
    elif KIND == "select":
        y: F[S] = jnp.select([x < LOW, x < HIGH], [low_part, middle_part], default=high_part)
    elif KIND == "pieces":
        y: F[S] = jnp.tanh(jnp.piecewise(x, [x < LOW], [rising, falling]))
    elif KIND == "select_n":
        regime = (x > LOW).astype(jnp.int32) + (x > HIGH).astype(jnp.int32)
        y: F[S] = lax.select_n(regime, low_part, middle_part, high_part)
    elif KIND == "lax_select":
        y: F[S] = lax.select(x > LOW, low_part, middle_part)
    else:
        y: F[S] = jnp.clip(low_part, LOW, HIGH) + middle_part
    return more(y, x, most=3)


@template("masking", "conditionals")
def masked_NAME(x: F[S], limits: F[S], keep: BOOL[S[-1]]):
    """Mask values by comparisons and combine the rest."""
    S, NAME = shape(1, 4, 16), choose("values", "scores", "averages")
    is_valid = choose(compared(x), compared(limits))
    is_near = compared(x, limits)
    mask = choose(is_valid, is_valid & keep, is_valid ^ is_near, jnp.logical_or(is_valid, is_near))
    if chance(0.4):
        mask = choose(mask | ~keep, jnp.logical_not(mask), jnp.logical_xor(mask, keep))
    filled: F[S] = mapped(x, 2)
    y: F[S] = jnp.where(mask, filled, choose(limits, 0.0, -1.0, 0.5 * limits))
    if chance(0.4):
        total: F[S[1:]] = reduced(y, axis=-1)
        z: F[S[1:]] = total / (jnp.sum(mask, axis=-1).astype(jnp.F) + 1.0)
        return more(z)
    return more(y, x, most=3)


@template("integer cases", "conditionals")
def cases_of_KIND(codes: INT[S, below(6)], x: F[S]):
    """Choose values by INT codes (KIND)."""
    S, KIND = shape(1, 3, 24), choose("choices", "table", "chain", "clamp")
    first: F[S] = mapped(x)
    second: F[S] = mapped(x)
    if KIND == "choices":
        case = (codes % 3).astype(jnp.int32)
        y: F[S] = jnp.choose(case, [x, first, second], mode="clip")
    elif KIND == "table":
        factors = jnp.array([0.5, -1.0, 2.0, 0.1, 1.5, -0.5], x.dtype)
        y: F[S] = first * factors[codes]
    elif KIND == "chain":
        is_even = codes % 2 == 0
        is_last = codes == 5
        y: F[S] = jnp.where(is_even, first, jnp.where(is_last, -x, x * 2.0))
    else:
        within = lax.clamp(jnp.ones_like(codes), codes, jnp.full_like(codes, 4))
        y: F[S] = x * within.astype(x.dtype)
    return more(y, x)
