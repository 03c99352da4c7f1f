"""Templates of conditionals and of loops."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("branch", "conditionals", 3)
def NAME(x: F[S], bias: F[S], mode: INDEX[below(COUNT)], flag: BOOL[()]):
    """TITLE."""
    S, COUNT = shape(0, 3, 24), between(2, 4)
    KIND, NAME, TITLE = choose(
        ("cond", "update_if_needed", "Update values if a condition holds"),
        ("cond", "forward", "Apply one of two branches"),
        ("switch", "apply_mode", "Apply the function of a mode"),
        ("switch", "step_of_kind", "Make a step of one of several kinds"),
        ("nested", "two_decisions", "Decide twice what is computed"),
    )
    NAMES = sample(["grow", "shrink", "relax", "blend", "keep", "reflect", "saturate"], 4)
    for BRANCH in NAMES:

        def BRANCH(v: F[S], u: F[S]):
            return choose(mixed(v, u), mixed(v, u), 0.9 * v + 0.1 * u, jnp.maximum(v, u))

    FIRST, SECOND, THIRD, FOURTH = NAMES
    if chance(0.4):
        condition = flag
    elif S:
        condition = choose(jnp.mean(x) > 0.0, jnp.any(x > 1.0), jnp.all(jnp.abs(x) < 2.0))
    else:
        condition = choose(x > 0.0, x > bias, jnp.abs(x) < 1.0)
    if KIND == "switch":
        BRANCHES = "[" + ", ".join(NAMES[:COUNT]) + "]"
        y: F[S] = lax.switch(mode, BRANCHES, x, bias)
    else:
        y: F[S] = lax.cond(condition, FIRST, SECOND, x, bias)
    if KIND == "nested":
        other = lax.cond(flag, THIRD, FOURTH, y, bias)
        y: F[S] = choose(other, y + other, x + other)
    z: F[S] = choose(y, y, x + y)
    return more(z, most=1)


@template("piecewise", "conditionals", 3)
def NAME(x: F[S], y: F[S]):
    """TITLE."""
    S = shape(1, 4, 24)
    KIND, NAME, TITLE = choose(
        ("where", "leaky_response", "Use another slope for negative values"),
        ("select", "dose_response", "Evaluate a response of three regimes"),
        ("pieces", "piecewise_profile", "Evaluate a profile that is defined in pieces"),
        ("clip", "saturating", "Limit a response to a range"),
    )
    LOW, HIGH = choose(-0.5, -1.0, -1.5), choose(0.5, 1.0, 1.5)
    low_part: F[S] = choose(mapped(x, 2), jnp.full_like(x, LOW), choose(0.1, 0.01) * x)
    middle_part: F[S] = choose(mapped(x, 2), x, smooth(x))
    high_part: F[S] = choose(mapped(x, 2), jnp.full_like(x, HIGH), HIGH + 0.1 * (x - HIGH))

    def rising(v: F[S]):
        return mapped(v, 2)

    def falling(v: F[S]):
        return choose(-v, 1.0 - v, jnp.exp(-jnp.square(v)))

    if KIND == "where":
        mask = compared(x)
        z: F[S] = jnp.where(mask, middle_part, low_part)
    elif KIND == "select":
        z: F[S] = jnp.select([x < LOW, x < HIGH], [low_part, middle_part], default=high_part)
    elif KIND == "pieces":
        z: F[S] = jnp.piecewise(x, [x < LOW], [rising, falling])
    else:
        z: F[S] = choose(
            jnp.clip(middle_part, LOW, HIGH) - 0.1 * x, y * jnp.clip(middle_part, 0.0, HIGH)
        )
    return more(z, most=2, style="quantity")


@template("masking", "conditionals")
def NAME(x: F[S], limits: F[S], keep: BOOL[S[-1]]):
    """TITLE."""
    S = (*shape(0, 3, 8), size(8, 16))
    KIND, NAME, TITLE = choose(
        ("fill", "fill_missing", "Replace values that are masked"),
        ("mean", "masked_mean", "Compute means of values that are kept"),
        ("softmax", "masked_softmax", "Compute softmax over values that are kept"),
        ("count", "masked_counts", "Count values that are kept"),
    )
    valid = choose(compared(x), keep, jnp.isfinite(x) & keep)
    near = compared(x, limits)
    mask = choose(valid, valid & near, valid | near, ~keep & near, jnp.logical_xor(valid, near))
    values: F[S] = choose(x, prepared(x))
    if KIND == "mean":
        total: F[S[1:]] = jnp.sum(jnp.where(mask, values, 0.0), axis=-1)
        z: F[S[1:]] = total / jnp.maximum(jnp.sum(mask, axis=-1), 1).astype(x.dtype)
        return more(z, most=1)
    if KIND == "softmax":
        return choose(
            jax.nn.softmax(jnp.where(mask, values, -1e4), axis=-1),
            jnp.where(mask, jax.nn.softmax(values, axis=-1), 0.0),
        )
    if KIND == "count":
        counts: I64[S[1:]] = jnp.sum(mask, axis=choose(-1, 0))
        return more(counts, most=1)
    y: F[S] = jnp.where(mask, values, choose(0.0, limits, 0.5 * limits, jnp.mean(x)))
    return more(y, most=2)


@template("while loop", "loops", 3)
def NAME(x: F[S], count: INDEX[below(30)], target: F[S]):
    """TITLE."""
    S, RATE = shape(0, 2, 16), choose(0.1, 0.2, 0.5)
    NAME, TITLE = choose(
        ("iterate_until", "Iterate a map until a counter reaches a limit"),
        ("descend", "Descend until a counter reaches a limit"),
        ("newton_sqrt", "Compute square roots by Newton's method"),
    )
    limit = count + choose(1, 2)

    def keep_going(state):
        return state[0] < limit

    def body(state):
        done, current = state
        value: F[S] = current
        if NAME == "descend":
            slope = choose(jnp.tanh(value - target), value**3 / (1.0 + value**2) - target)
            new = value - RATE * slope
        elif NAME == "newton_sqrt":
            guess = jnp.abs(value) + 0.5
            new = 0.5 * (guess + (jnp.abs(target) + 1.0) / guess)
        else:
            force: F[S] = choose(smooth(value, target), smooth(value))
            new = choose(jnp.tanh(force), 0.9 * value + 0.1 * jnp.tanh(force), jnp.sin(force))
        return done + 1, new

    done, final = lax.while_loop(keep_going, body, (jnp.zeros_like(count), x))
    if chance(0.4):
        return final, done
    y: F[S] = choose(final, final - x, jnp.square(final - target))
    return more(y, most=1)


@template("map and accumulate", "loops")
def KIND_of_NAME(xs: F[N, S]):
    """Process N NAME, one after another."""
    N, S, NAME = size(3, 16), shape(0, 2, 12), choose("rows", "items", "series")
    KIND = choose("map", "associative_scan", "affine_scan")
    if KIND == "map":

        def process(row: F[S]):
            value: F[S] = choose(mapped(row, 3), normalised(row) if S else smooth(row))
            return choose(value, value, value - row, jnp.mean(value))

        y: F[N, S] = choose(lax.map(process, xs), lax.map(process, xs, batch_size=between(2, N)))
        return choose(y, y, y[::-1], jnp.cumsum(y, axis=0), jnp.mean(y, axis=0))
    if KIND == "associative_scan":
        COMBINE = choose("jnp.maximum", "jnp.add", "jnp.minimum", "jnp.logaddexp")
        scaled: F[N, S] = choose(xs, prepared(xs))
        y: F[N, S] = choose(
            lax.associative_scan(COMBINE, scaled),
            lax.associative_scan(COMBINE, scaled, reverse=True),
        )
        return more(y, xs, most=1)

    def combine(left, right):
        (a, b), (c, d) = left, right
        return a * c, c * b + d

    decays: F[N, S] = choose(jax.nn.sigmoid(xs), jnp.full_like(xs, 0.9))
    _, states = lax.associative_scan(combine, (decays, choose(xs, (1.0 - decays) * xs)))
    z: F[N, S] = choose(states, states - xs)
    return more(z, most=1)
