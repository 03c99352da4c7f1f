"""Templates of conditionals and of loops."""

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
    """Evaluate a function of NAME with several regimes."""
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
    """Choose between values by INT codes."""
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


@template("scan", "loops", 4)
def scan_NAME(xs: F[N, S], initial: F[S], weights: F[S[-1:], S[-1:]]):
    """Scan a recurrence over N steps."""
    N, S, NAME = size(3, 32), shape(0, 2, 12), choose("recurrence", "filter", "states", "series")
    STEP, TWO, MIXING = choose("advance", "update", "transition"), chance(0.3), chance(0.4)
    DECAY = choose(0.5, 0.8, 0.9, 0.95)

    def STEP(carry: F[S], x: F[S]):
        if TWO:
            state, trace = carry
        else:
            state = carry
        now: F[S] = jnp.tanh(state)
        drive: F[S] = mixed(now, x)
        if MIXING and S:
            drive: F[S] = drive + 0.1 * (now @ weights)
        new: F[S] = choose(
            jnp.tanh(drive),
            DECAY * now + 0.2 * jnp.sin(drive),
            now + choose(0.1, 0.05) * jax.nn.sigmoid(drive),
            jnp.sin(drive) * jax.nn.sigmoid(x),
        )
        output = choose(mapped(new, 2), jnp.mean(new), new * x)
        if TWO:
            return (new, 0.9 * trace + 0.1 * new), output
        return new, output

    start = (initial, jnp.zeros_like(initial)) if TWO else initial
    if chance(0.3):
        last, outputs = lax.scan(STEP, start, xs, reverse=True)
    elif chance(0.3):
        last, outputs = lax.scan(STEP, start, xs, unroll=choose(2, 4))
    else:
        last, outputs = lax.scan(STEP, start, xs)
    final: F[S] = last[0] + last[1] if TWO else last
    if chance(0.3):
        return final, outputs
    y: F[S] = choose(
        final - 0.5 * jnp.mean(outputs), final * jnp.cos(outputs[0]), outputs[-1] + final
    )
    return more(y, initial, most=3)


@template("fori loop", "loops", 3)
def iterate_NAME(x: F[S], drive: F[S]):
    """Iterate a map N times."""
    S, N, NAME = shape(0, 3, 16), between(2, 40), choose("map", "relaxation", "dynamics")
    STEP, DECAY = choose("body", "relax", "evolve"), choose(0.5, 0.8, 0.9)

    def STEP(i, value):
        now: F[S] = jnp.tanh(value)
        force: F[S] = choose(mixed(now), mixed(now, drive))
        if chance(0.4):
            force: F[S] = force + jnp.asarray(0.1 * i, jnp.F)
        if S and chance(0.4):
            force: F[S] = force - 0.5 * jnp.roll(now, 1, axis=0)
        return choose(
            jnp.sin(force),
            DECAY * value + 0.2 * jnp.tanh(force),
            now + 0.1 * jax.nn.sigmoid(force),
            jnp.tanh(force) * DECAY,
        )

    final: F[S] = lax.fori_loop(0, N, STEP, x)
    y: F[S] = choose(final - x, final * jnp.cos(x), 0.5 * (final + x), final - 0.5 * x)
    return more(y, x, most=3)


@template("while loop", "loops", 3)
def NAME_until_a_limit(x: F[S], count: INDEX[below(30)]):
    """Iterate a map until a counter reaches a limit."""
    S, NAME = shape(0, 2, 16), choose("iterate", "relax", "advance")
    DECAY = choose(0.5, 0.8, 0.9)
    limit = count + 2

    def keep_going(state):
        done, _ = state
        return done < limit

    def body(state):
        done, value = state
        now: F[S] = jnp.tanh(value)
        force: F[S] = mixed(now)
        new = choose(jnp.sin(force), DECAY * value + 0.2 * jnp.tanh(force), jnp.tanh(force))
        return done + 1, new

    done, final = lax.while_loop(keep_going, body, (jnp.zeros_like(count), x))
    y: F[S] = choose(final - x, final * jnp.cos(x), 0.5 * (final + x)) + 0.1 * done.astype(jnp.F)
    return more(y, x, most=3)


@template("solver", "loops", 3)
def KIND_in_N_steps(
    x: W[S], level: W[S, "positive"], matrix: W[M, M, "definite"], start: W[M, "positive"]
):
    """Run N steps of KIND."""
    S, M, N, RATE = shape(0, 2, 16), size(2, 12), between(3, 24), choose(0.01, 0.05, 0.1)
    KIND = choose(*"newton power descent euler heun runge_kutta jacobi bisection".split())
    if KIND == "power":

        def iterate(_, v):
            product = matrix @ v
            return product / choose(
                jnp.linalg.norm(product), jnp.max(jnp.abs(product)), jnp.sum(jnp.abs(product))
            )

        final = lax.fori_loop(0, N, iterate, start)
        z: W[()] = final @ (matrix @ final) - 0.1 * jnp.sum(start)
        return more(z)
    if KIND == "jacobi":

        def iterate(_, v):
            residual = start - matrix @ v
            return choose(
                v + 0.5 * residual / jnp.trace(matrix),
                v + 0.1 * residual / jnp.max(jnp.sum(jnp.abs(matrix), axis=1)),
            )

        z: W[M] = lax.fori_loop(0, N, iterate, start)
        return more(z, start)

    def field(v: W[S]):
        force: W[S] = choose(smooth(v), smooth(v, level))
        return jnp.tanh(force) - choose(0.1, 0.5, 1.0) * v / level

    def iterate(_, v):
        if KIND == "newton":
            value, change = jax.jvp(field, (v,), (jnp.ones_like(v),))
            return v - 0.1 * jnp.tanh(value / (1.0 + jnp.abs(change)))
        if KIND == "descent":
            slope = jax.grad(lambda u: jnp.sum(field(u) ** 2))(v)
            return v - RATE * jnp.tanh(slope)
        if KIND == "heun":
            first = field(v)
            second = field(v + RATE * first)
            return v + RATE / 2 * (first + second)
        if KIND == "runge_kutta":
            k1 = field(v)
            k2 = field(v + RATE / 2 * k1)
            k3 = field(v + RATE / 2 * k2)
            k4 = field(v + RATE * k3)
            return v + RATE * (k1 + 2.0 * k2 + 2.0 * k3 + k4) / 6.0
        if KIND == "bisection":
            return 0.5 * v + 0.5 * jnp.clip(field(v), -level, level)
        return v + RATE * field(v)

    if chance(0.3):
        final, _ = lax.scan(lambda v, _: (iterate(0, v), None), x, None, length=N)
    else:
        final = lax.fori_loop(0, N, iterate, x)
    y: W[S] = choose(final - x, final * jnp.cos(x), 0.5 * (final + x))
    return more(y, x)


@template("map and accumulate", "loops")
def KIND_of_NAME(xs: F[N, S]):
    """Process N NAME, one after another."""
    N, S, NAME = size(3, 16), shape(0, 2, 12), choose("rows", "items", "series")
    KIND = choose("map", "associative_scan", "unrolled", "unrolled")
    if KIND == "map":

        def process(row: F[S]):
            value: F[S] = mapped(row, 3)
            return choose(value, value, jnp.mean(value) + row)

        if chance(0.4):
            y: F[N, S] = lax.map(process, xs, batch_size=between(2, N))
        else:
            y: F[N, S] = lax.map(process, xs)
        return more(y, most=3)
    if KIND == "associative_scan":
        COMBINE = choose("jnp.maximum", "jnp.add", "jnp.minimum", "jnp.logaddexp")

        def combine(left, right):
            return COMBINE(left, right)

        scaled: F[N, S] = choose(0.2 * xs, jnp.tanh(xs), jnp.sin(xs))
        if chance(0.4):
            y: F[N, S] = lax.associative_scan(combine, scaled, reverse=True)
        else:
            y: F[N, S] = lax.associative_scan(combine, scaled)
        return more(y, xs)
    state: F[S] = jnp.zeros_like(xs[0])
    for index in range(xs.shape[0]):
        row: F[S] = xs[index]
        force: F[S] = mixed(row, state)
        state = choose(
            0.5 * state + 0.2 * jnp.tanh(force), jnp.sin(force) + 0.1 * row, jnp.tanh(force)
        )
    y: F[S] = choose(0.5 * state, state - xs[0], state * jnp.cos(xs[-1]))
    return more(y)


@template("filled buffers", "loops", 2)
def fill_NAME(inputs: W[N, S], state: W[S]):
    """Fill a buffer with the states of a recurrence."""
    N, S, NAME = size(2, 8), shape(0, 1, 8), choose("buffer", "history", "trace")
    FUNCTION = choose("record", "write", "advance")
    empty = lax.empty(inputs.shape, inputs.dtype)

    def FUNCTION(step, carry):
        history, value = carry
        row = inputs[step]
        total: W[S] = row + 0.5 * value
        value = jnp.tanh(mapped(total, 2) - 0.1 * total)
        return history.at[step].set(value), value

    filled, last = lax.fori_loop(0, N, FUNCTION, (empty, state))
    y: W[N, S] = choose(filled + last, filled * jnp.cos(last), filled)
    return more(y, inputs)
