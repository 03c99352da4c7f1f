"""Templates of conditionals and of loops."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("branch", "conditionals", 3)
def NAME(x: F[S], bias: F[S], mode: INDEX[below(COUNT)], flag: BOOL[()]):
    """TITLE."""
    S, COUNT = shape(0, 3, 24), between(2, 4)
    KIND = choose("cond", "switch", "cond", "nested")
    NAME, TITLE = {
        "cond": choose(
            ("update_if_needed", "Update values if a condition holds"),
            ("forward", "Apply one of two branches"),
            ("damp_if_large", "Apply one of two updates"),
        ),
        "switch": choose(
            ("apply_mode", "Apply the function of a mode"),
            ("activation_of_mode", "Apply one of several activations"),
            ("step_of_kind", "Make a step of one of several kinds"),
        ),
        "nested": choose(
            ("two_decisions", "Decide twice what is computed"),
            ("update_both_ends", "Combine two conditional updates"),
        ),
    }[KIND]
    FIRST, SECOND, THIRD, FOURTH = sample(
        ["grow", "shrink", "relax", "blend", "keep", "reflect", "saturate", "restore"], 4
    )

    def FIRST(v: F[S], u: F[S]):
        return choose(mixed(v, u), v + u, v - 0.1 * u, 0.9 * v + 0.1 * u)

    def SECOND(v: F[S], u: F[S]):
        return choose(mixed(v, u), v * u, 0.5 * (v + u), jnp.maximum(v, u))

    def THIRD(v: F[S], u: F[S]):
        return choose(v - u, mixed(v, u), jnp.minimum(v, u), v * jax.nn.sigmoid(u))

    def FOURTH(v: F[S], u: F[S]):
        return choose(jnp.hypot(v, u), u - v, mixed(v, u), jnp.where(v > 0.0, v + u, u))

    if KIND == "cond" and chance(0.5):
        condition = flag
    elif S:
        condition = choose(
            jnp.mean(x) > 0.0,
            jnp.max(jnp.abs(x)) > 2.0,
            jnp.sum(x) > jnp.sum(bias),
            jnp.linalg.norm(x) > 1.0,
            jnp.any(x > 1.0),
            jnp.all(jnp.abs(x) < 2.0),
        )
    else:
        condition = choose(x > 0.0, x > bias, jnp.abs(x) < 1.0)
    if KIND == "switch":
        BRANCHES = ", ".join([FIRST, SECOND, THIRD, FOURTH][:COUNT])
        ALL = "[" + BRANCHES + "]"
        y: F[S] = lax.switch(mode, ALL, x, bias)
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
        *(("where", "leaky_response", "Use another slope for negative values"),),
        *(("select", "dose_response", "Evaluate a response of three regimes"),),
        *(("nested", "soil_moisture", "Evaluate a curve of three regimes"),),
        *(("pieces", "piecewise_profile", "Evaluate a profile that is defined in pieces"),),
        *(("select_n", "regime_response", "Evaluate the response of each value's regime"),),
        *(("clip", "saturating", "Limit a response to a range"),),
        *(("lax_select", "hinged", "Join two curves at a point"),),
        *(("steps", "quantizer", "Count the thresholds that values exceed"),),
        *(("window", "window_of_values", "Evaluate a window of bounded support"),),
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
    elif KIND == "nested":
        upper = jnp.where(x < HIGH, middle_part, high_part)
        z: F[S] = jnp.where(x < LOW, low_part, upper)
    elif KIND == "select":
        z: F[S] = jnp.select([x < LOW, x < HIGH], [low_part, middle_part], default=high_part)
    elif KIND == "pieces":
        z: F[S] = jnp.piecewise(x, [x < LOW], [rising, falling])
    elif KIND == "select_n":
        regime = (x > LOW).astype(jnp.int32) + (x > HIGH).astype(jnp.int32)
        z: F[S] = lax.select_n(regime, low_part, middle_part, high_part)
    elif KIND == "lax_select":
        z: F[S] = lax.select(x > LOW, middle_part, low_part)
    elif KIND == "steps":
        level = (x > LOW).astype(x.dtype) + (x > 0.0).astype(x.dtype) + (x > HIGH).astype(x.dtype)
        z: F[S] = choose(x - level, level * x, level + 0.1 * x, y * level)
    elif KIND == "window":
        inside = jnp.abs(x) < choose(1.0, 1.5, 2.0)
        shape_of: F[S] = choose(1.0 - x**2 / 4.0, jnp.cos(0.5 * x), (1.0 - jnp.abs(x) / 2.0) ** 2)
        z: F[S] = choose(jnp.where(inside, shape_of, 0.0), y * jnp.where(inside, shape_of, 0.0))
    else:
        z: F[S] = choose(
            jnp.clip(middle_part, LOW, HIGH),
            jnp.clip(middle_part, LOW, HIGH) - 0.1 * x,
            y * jnp.clip(middle_part, 0.0, HIGH),
            jnp.minimum(jnp.maximum(middle_part, LOW), y),
        )
    return more(z, most=2, style="quantity")


@template("masking", "conditionals")
def NAME(x: F[S], limits: F[S], keep: BOOL[S[-1]]):
    """TITLE."""
    S = (*shape(0, 3, 8), size(8, 16))
    KIND, NAME, TITLE = choose(
        *(("fill", "fill_missing", "Replace values that are masked"),),
        *(("mean", "masked_mean", "Compute means of values that are kept"),),
        *(("sum", "masked_sum", "Add up values that are kept"),),
        *(("extreme", "masked_max", "Find the largest of values that are kept"),),
        *(("softmax", "masked_softmax", "Compute softmax over values that are kept"),),
        *(("count", "masked_counts", "Count values that are kept"),),
        *(("limit", "limit_outliers", "Replace outliers by limits"),),
    )
    valid = choose(compared(x), keep, jnp.isfinite(x) & keep)
    near = compared(x, limits)
    mask = choose(valid, valid & near, valid | near, ~keep & near, jnp.logical_xor(valid, near))
    FILL = choose("0.0", "limits", "-1.0", "0.5 * limits", "jnp.mean(x)")
    values: F[S] = choose(x, prepared(x))
    if KIND in ("mean", "sum"):
        kept = jnp.where(mask, values, 0.0)
        total: F[S[1:]] = jnp.sum(kept, axis=-1)
        if KIND == "sum":
            return more(total, most=1)
        count = choose(jnp.sum(mask, axis=-1), jnp.count_nonzero(mask & (x < 9.0), axis=-1))
        z: F[S[1:]] = total / jnp.maximum(count, 1).astype(x.dtype)
        return more(z, most=1)
    if KIND == "extreme":
        z: F[S[1:]] = choose(
            jnp.max(jnp.where(mask, values, -10.0), axis=-1),
            jnp.max(values, axis=-1, where=mask, initial=-10.0),
            jnp.min(jnp.where(mask, values, 10.0), axis=-1),
        )
        return more(z, most=1)
    if KIND == "softmax":
        z: F[S] = choose(
            jax.nn.softmax(jnp.where(mask, values, -1e4), axis=-1),
            jax.nn.softmax(values, axis=-1, where=mask | (x > -9.0)),
            jnp.where(mask, jax.nn.softmax(values, axis=-1), 0.0),
        )
        return z
    if KIND == "count":
        counts: I64[S[1:]] = jnp.sum(mask, axis=choose(-1, 0))
        if chance(0.5):
            share: F[S[1:]] = jnp.mean(mask, axis=-1).astype(x.dtype)
            return share
        return more(counts, most=1)
    y: F[S] = jnp.where(mask, values, FILL)
    return more(y, most=2)


@template("integer cases", "conditionals")
def NAME(codes: INT[S, below(6)], x: F[S], y: F[S]):
    """TITLE."""
    S = shape(1, 3, 24)
    KIND, NAME, TITLE = choose(
        *(("choices", "pick_by_code", "Pick one of several values by INT codes"),),
        *(("table", "scale_by_class", "Scale values by a table of factors"),),
        *(("chain", "apply_code", "Apply the operation of each INT code"),),
        *(("clamp", "weigh_by_level", "Weigh values by levels"),),
        *(("select", "activation_by_code", "Apply an activation by INT codes"),),
        *(("parity", "alternate", "Treat even and odd codes differently"),),
    )
    first: F[S] = choose(activated(x), mapped(x))
    second: F[S] = choose(y, mapped(y), binary(x, y))
    if KIND == "choices":
        case = (codes % 3).astype(jnp.int32)
        z: F[S] = jnp.choose(case, [x, first, second], mode="clip")
    elif KIND == "table":
        factors = jnp.array([0.5, -1.0, 2.0, 0.1, 1.5, -0.5], x.dtype)
        z: F[S] = choose(x * factors[codes], x * factors[codes] + y, y + factors[codes] * (x - y))
    elif KIND == "chain":
        z: F[S] = jnp.where(
            codes == 0, x, jnp.where(codes % 2 == 0, first, choose(-x, second, 2.0 * x))
        )
    elif KIND == "select":
        z: F[S] = jnp.select(
            [codes == 0, codes == 1, codes > 3], [x, first, second], default=choose(0.0, 1.0)
        )
    elif KIND == "parity":
        sign = choose(1 - 2 * (codes % 2), jnp.where(codes % 2 == 0, 1, -1)).astype(x.dtype)
        z: F[S] = choose(y + sign * x, x + sign * y, first * sign + y)
    else:
        levels = lax.clamp(jnp.ones_like(codes), codes, jnp.full_like(codes, 4)).astype(x.dtype)
        z: F[S] = choose(x * levels, x / levels, x**2 * levels, first + levels * y)
    return more(z, most=2)


@template("while loop", "loops", 3)
def NAME(x: F[S], count: INDEX[below(30)], target: F[S]):
    """TITLE."""
    S = shape(0, 2, 16)
    NAME, TITLE = choose(
        *(("iterate_until", "Iterate a map until a counter reaches a limit"),),
        *(("halve_until_small", "Halve values while they are large"),),
        *(("relax_until_close", "Relax values until they hardly change"),),
        *(("descend", "Descend until a counter reaches a limit"),),
        *(("newton_sqrt", "Compute square roots by Newton's method"),),
    )
    RATE, TOLERANCE = choose(0.1, 0.2, 0.5), choose(0.1, 0.05)
    limit = count + choose(1, 2)

    def keep_going(state):
        done, latest = state
        if NAME == "halve_until_small":
            return (jnp.max(jnp.abs(latest)) > choose(0.05, 0.1)) & (done < choose(10, 20))
        if NAME == "relax_until_close":
            return (jnp.max(jnp.abs(latest - target)) > TOLERANCE) & (done < choose(10, 20))
        return done < limit

    def body(state):
        done, current = state
        value: F[S] = current
        if NAME == "halve_until_small":
            new = choose(0.5 * value, 0.5 * value + 0.1 * target, value / 1.5)
        elif NAME == "relax_until_close":
            new = choose(value + RATE * (target - value), 0.5 * (value + target))
        elif NAME == "descend":
            slope = choose(
                value - target,
                jnp.tanh(value - target),
                jnp.sin(value) * jnp.cos(value) - 0.1 * target,
                value**3 / (1.0 + value**2) - target,
            )
            new = value - RATE * slope
        elif NAME == "newton_sqrt":
            square = jnp.abs(target) + 1.0
            new = 0.5 * (jnp.abs(value) + 0.5 + square / (jnp.abs(value) + 0.5))
        else:
            force: F[S] = choose(smooth(value, target), smooth(value))
            new = choose(jnp.tanh(force), 0.9 * value + 0.1 * jnp.tanh(force), jnp.sin(force))
        return done + 1, new

    done, final = lax.while_loop(
        keep_going,
        body,
        (0 if NAME in ("halve_until_small", "relax_until_close") else jnp.zeros_like(count), x),
    )
    if NAME == "halve_until_small" or NAME == "relax_until_close":
        return choose(final, final - x, jnp.square(final - target), jnp.mean(final))
    if NAME == "newton_sqrt" or chance(0.4):
        return final, done
    y: F[S] = choose(final, final - x, jnp.square(final - target))
    return more(y, most=1)


@template("solver", "loops", 3)
def KIND_in_N_steps(
    x: W[S], level: W[S, "positive"], matrix: W[M, M, "definite"], start: W[M, "positive"]
):
    """Run N steps of TITLE."""
    S, M, N, RATE = shape(0, 2, 16), size(2, 12), between(3, 24), choose(0.01, 0.05, 0.1)
    KIND, TITLE = choose(
        *(("newton", "Newton's method"), ("power_iteration", "power iteration")),
        *(("descent", "gradient descent"), ("euler", "Euler's method"), ("heun", "Heun's method")),
        *(("runge_kutta", "the classical Runge-Kutta method"), ("jacobi", "Jacobi's method")),
        *(("midpoint", "the midpoint method"),),
    )
    if KIND in ("power_iteration", "jacobi"):

        def iterate(_, v):
            if KIND == "jacobi":
                residual = start - matrix @ v
                return choose(
                    v + residual / jnp.trace(matrix), v + 0.5 * residual / jnp.diagonal(matrix)
                )
            product = matrix @ v
            return product / choose(
                jnp.linalg.norm(product), jnp.max(jnp.abs(product)), jnp.sum(jnp.abs(product))
            )

        final = lax.fori_loop(0, N, iterate, start)
        if KIND == "power_iteration" and chance(0.6):
            return final @ matrix @ final
        return choose(final, jnp.linalg.norm(matrix @ final - start), matrix @ final)

    def field(v: W[S]):
        force: W[S] = choose(smooth(v), smooth(v, level))
        return choose(force, force - v / level, -level * v + force)

    def iterate(_, v):
        if KIND == "newton":
            value, change = jax.jvp(field, (v,), (jnp.ones_like(v),))
            return v - choose(
                value * change / (change**2 + 0.1), RATE * value / (1.0 + jnp.abs(change))
            )
        if KIND == "descent":
            return v - RATE * jax.grad(lambda u: choose(0.5, 0.1) * jnp.mean(field(u) ** 2))(v)
        first = field(v)
        if KIND == "heun":
            return v + RATE / 2 * (first + field(v + RATE * first))
        if KIND == "midpoint":
            return v + RATE * field(v + RATE / 2 * first)
        if KIND == "runge_kutta":
            second = field(v + RATE / 2 * first)
            third = field(v + RATE / 2 * second)
            fourth = field(v + RATE * third)
            return v + RATE / 6 * (first + 2.0 * second + 2.0 * third + fourth)
        return v + RATE * first

    if chance(0.3):
        final, _ = lax.scan(lambda v, _: (iterate(0, v), None), x, None, length=N)
    else:
        final = lax.fori_loop(0, N, iterate, x)
    y: W[S] = choose(final, final, final - x)
    return more(y, most=1)


@template("map and accumulate", "loops")
def KIND_of_NAME(xs: F[N, S]):
    """Process N NAME, one after another."""
    N, S, NAME = size(3, 16), shape(0, 2, 12), choose("rows", "items", "series")
    KIND = choose("map", "associative_scan", "accumulation", "accumulation")
    if KIND == "map":

        def process(row: F[S]):
            value: F[S] = choose(mapped(row, 3), normalised(row) if S else smooth(row))
            return choose(value, value, value - row, jnp.mean(value))

        if chance(0.4):
            y: F[N, S] = lax.map(process, xs, batch_size=between(2, N))
        else:
            y: F[N, S] = lax.map(process, xs)
        return choose(y, y, y[::-1], jnp.cumsum(y, axis=0), jnp.mean(y, axis=0))
    if KIND == "associative_scan":
        COMBINE = choose(
            "jnp.maximum", "jnp.add", "jnp.minimum", "jnp.logaddexp", "affine", "affine"
        )

        def combine(left, right):
            if COMBINE == "affine":
                (a, b), (c, d) = left, right
                return a * c, c * b + d
            return COMBINE(left, right)

        if COMBINE == "affine":
            decays: F[N, S] = choose(
                jax.nn.sigmoid(xs), jnp.full_like(xs, 0.9), jnp.exp(-jnp.abs(xs))
            )
            _, states = lax.associative_scan(combine, (decays, choose(xs, (1.0 - decays) * xs)))
            y: F[N, S] = choose(states, states - xs)
            return more(y, most=1)

        scaled: F[N, S] = choose(xs, prepared(xs))
        if chance(0.4):
            y: F[N, S] = lax.associative_scan(combine, scaled, reverse=True)
        else:
            y: F[N, S] = lax.associative_scan(combine, scaled)
        return more(y, xs, most=1)
    state: F[S] = choose(jnp.zeros_like(xs[0]), xs[0])
    for index in range(xs.shape[0]):
        row: F[S] = xs[index]
        change: F[S] = mixed(row, state)
        state = choose(
            0.9 * state + 0.1 * row,
            jnp.tanh(change),
            jnp.maximum(state, row),
            0.5 * state + jnp.tanh(row),
            state + 0.1 * jnp.tanh(change),
            jnp.hypot(state, row),
        )
    if chance(0.3):
        return state
    y: F[S] = choose(state / N, state - xs[0], jnp.square(state))
    return more(y, most=1)


@template("filled buffers", "loops", 2)
def fill_NAME(inputs: W[N, S], state: W[S]):
    """Fill a buffer with the states of a recurrence."""
    N, S, NAME = size(2, 8), shape(0, 1, 8), choose("buffer", "history", "trace")
    FUNCTION = choose("record", "write", "advance")
    empty = lax.empty(inputs.shape, inputs.dtype)

    def FUNCTION(step, carry):
        history, latest = carry
        value: W[S] = latest
        row: W[S] = inputs[step]
        total: W[S] = choose(row + 0.5 * value, 0.9 * value + 0.1 * row, row - 0.5 * value)
        new: W[S] = choose(activated(total), total, smooth(total), smooth(row, value))
        following = choose(new, jnp.tanh(new), 0.5 * (new + value))
        return history.at[step].set(following), following

    filled, last = lax.fori_loop(0, N, FUNCTION, (empty, state))
    if chance(0.4):
        return filled, last
    y: W[N, S] = choose(filled, filled - last, filled[::-1])
    return more(y, most=2)
