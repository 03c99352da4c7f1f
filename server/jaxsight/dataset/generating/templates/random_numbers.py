"""Templates that draw random numbers from a key."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import as_float, leave, reduced
from jaxsight.dataset.generating.types import WIDE, Value, jnp_dtype
from jaxsight.dataset.generating.writer import Writer


def spelled_shape(shape: tuple[int, ...]) -> str:
    """Return a shape as Python."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


CONTINUOUS = (
    ("normal", "jax.random.normal({k}, {s}, {d})", -4.5, 4.5),
    ("uniform", "jax.random.uniform({k}, {s}, {d})", 0, 1),
    ("range", "jax.random.uniform({k}, {s}, {d}, -2.0, 2.0)", -2, 2),
    ("truncated", "jax.random.truncated_normal({k}, -2.0, 2.0, {s}, {d})", -2, 2),
    ("exponential", "jax.random.exponential({k}, {s}, {d})", 0, 9),
    ("laplace", "jax.random.laplace({k}, {s}, {d})", -9, 9),
    ("logistic", "jax.random.logistic({k}, {s}, {d})", -9, 9),
    ("gumbel", "jax.random.gumbel({k}, {s}, {d})", -3, 9),
    ("rademacher", "jax.random.rademacher({k}, {s}, {d})", -1, 1),
    ("rayleigh", "jax.random.rayleigh({k}, 1.5, {s}, {d})", 0, 6),
    ("maxwell", "jax.random.maxwell({k}, {s}, {d})", 0, 6),
    ("gamma", "jax.random.gamma({k}, 2.0, {s}, {d})", 0, 15),
    ("beta", "jax.random.beta({k}, 2.0, 3.0, {s}, {d})", 0, 1),
    ("weibull", "jax.random.weibull_min({k}, 1.0, 2.0, {s}, {d})", 0, 4),
    ("triangular", "jax.random.triangular({k}, -1.0, 0.0, 2.0, {s}, {d})", -1, 2),
    ("chisquare", "jax.random.chisquare({k}, 3.0, {s}, {d})", 0, 25),
    ("student", "jnp.tanh(jax.random.t({k}, 4.0, {s}, {d}))", -1, 1),
    ("cauchy", "jnp.arctan(jax.random.cauchy({k}, {s}, {d}))", -1.6, 1.6),
    ("pareto", "jnp.log(jax.random.pareto({k}, 2.0, {s}, {d}))", 0, 6),
    ("wald", "jnp.log1p(jax.random.wald({k}, 1.0, {s}, {d}))", 0, 4),
    ("lognormal", "jnp.log1p(jax.random.lognormal({k}, 0.5, {s}, {d}))", 0, 4),
    ("double_sided", "jax.random.double_sided_maxwell({k}, 0.0, 1.0, {s}, {d})", -6, 6),
    ("generalized", "jax.random.generalized_normal({k}, 1.5, {s}, {d})", -6, 6),
)
DISCRETE = (
    ("bernoulli", "jax.random.bernoulli({k}, 0.4, {s})", "bool", 0, 1),
    ("randint", "jax.random.randint({k}, {s}, 0, 12, jnp.int32)", "int32", 0, 12),
    ("bits", "jax.random.bits({k}, {s}, jnp.uint32)", "uint32", 0, 2.0**32),
    ("poisson", "jax.random.poisson({k}, 3.0, {s})", "int64", 0, 14),
    ("categorical", "jax.random.categorical({k}, jnp.zeros(5), shape={s})", "int64", 0, 5),
    ("geometric", "jax.random.geometric({k}, 0.4, {s}, jnp.int32)", "int32", 0, 30),
    ("binomial", "jax.random.binomial({k}, 6.0, 0.4, {s})", "float64", 0, 6),
)


def draw(
    w: Writer, key: str, shape: tuple[int, ...], dtype: str, kinds: tuple[str, ...] = ()
) -> tuple[Value, str]:
    """Return random numbers and the name of their distribution."""
    options = [each for each in CONTINUOUS if not kinds or each[0] in kinds]
    if dtype not in WIDE:
        options = [
            each
            for each in options
            if each[0] in ("normal", "uniform", "range", "gumbel", "exponential", "laplace")
        ]
    name, text, low, high = w.pick(options)
    spelled = text.format(k=key, s=spelled_shape(shape), d=jnp_dtype(dtype))
    return Value(spelled, dtype, shape, low, high, False, False), name


@template("sampling", "random numbers", 4)
def sampling(w: Writer) -> None:
    """Write draws from several distributions, from keys that are split."""
    key, dtype = w.key(), w.floating()
    shape = w.shape(0, 3, 16)
    scale = w.array("scale loc temperature", dtype, w.pick(((), shape)))
    count = w.between(1, 3)
    keys = [key]
    if count > 1 or w.chance(0.3):
        names = ["first_key", "second_key", "third_key"][:count]
        form = w.pick(("split", "fold", "index"))
        if form == "split" and count > 1:
            w.line(f"{', '.join(names)} = jax.random.split({key}, {count})")
        elif form == "index":
            w.line(f"keys = jax.random.split({key}, {count})")
            names = [f"keys[{k}]" for k in range(count)]
        else:
            for k, name in enumerate(names):
                w.line(f"{name} = jax.random.fold_in({key}, {k})")
        keys = names
    y, words = None, []
    for name in keys:
        value, word = draw(w, name, shape, dtype)
        words.append(word)
        value = w.let("noise draws jitter samples", value)
        value = w.let("mapped", calm(w, chain(w, value, w.between(0, 2)), 9))
        y = value if y is None else w.let("mixed", binary(w, y, value))
    assert y is not None
    text = w.pick(("{s} * {y}", "{y} + {s}", "{y} * jnp.tanh({s})", "{y} - 0.5 * {s}"))
    bound = (abs(y.low) + abs(y.high)) * 4.5 + 5
    z = w.make(text.format(s=scale, y=y), scale, y, shape=shape, low=-bound, high=bound)
    w.words += ["sample", *dict.fromkeys(words)]
    w.title = f"Draw from {', '.join(dict.fromkeys(words))} distributions".replace("_", " ")
    if len(words) == 1:
        w.title = w.title.replace("distributions", "distribution")
    leave(w, calm(w, w.let("sampled", z)), [], 3)


@template("discrete sampling", "random numbers", 3)
def discrete(w: Writer) -> None:
    """Write draws of integers and booleans, and what is done with them."""
    key, dtype = w.key(), w.wide()
    shape = w.shape(0, 3, 12)
    name, text, result, low, high = w.pick(DISCRETE)
    raw = Value(text.format(k=key, s=spelled_shape(shape)), result, shape, low, high)
    x = w.let("counts draws choices", raw)
    if w.chance(0.4) and result in ("int32", "uint32", "int64"):
        x = w.let("mixed", chain(w, x, 1))
    values = w.array("rates values weights", dtype, shape)
    number = as_float(w, x, dtype) if x.dtype != dtype else x
    number = w.let("numbers", number)
    y = w.let(
        "weighted",
        w.make(
            f"{values} * {number} + 0.1 * {number}",
            values,
            number,
            low=-5 * max(number.bound, 1),
            high=5 * max(number.bound, 1),
        ),
    )
    w.words += ["draw", name, w.pick(("weights", "counts", "events"))]
    w.title = f"Draw {name} values and weight them"
    leave(w, calm(w, y), [], 4)


@template("dropout and noise", "random numbers", 3)
def dropout(w: Writer) -> None:
    """Write regularisation with random masks and noise."""
    key, dtype = w.key(), w.floating()
    shape = w.shape(1, 3, 16)
    x = w.array("x hidden activations", dtype, shape)
    rate = w.pick((0.1, 0.2, 0.5))
    keep = round(1 - rate, 1)
    w.line(f"mask_key, noise_key = jax.random.split({key})")
    mask_shape = shape if w.chance(0.7) else shape[-1:]
    w.line(f"keep = jax.random.bernoulli(mask_key, {keep}, {spelled_shape(mask_shape)})")
    y = calm(w, chain(w, x, w.between(0, 2)), 20)
    y = w.short(y, "inner", 30)
    kept = w.let(
        "kept",
        w.make(
            f"jnp.where(keep, {y.atom} / {keep}, 0.0)",
            y,
            low=min(0, y.low) * 2,
            high=max(0, y.high) * 2,
        ),
    )
    noise, word = draw(w, "noise_key", shape, dtype, ("normal", "uniform", "gumbel", "laplace"))
    noise = w.let("noise", noise)
    sigma = w.pick((0.1, 0.01, 0.3))
    text = w.pick((f"{kept} + {sigma} * {noise}", f"{kept} * (1.0 + {sigma} * {noise})"))
    z = w.let("noisy", w.make(text, kept, noise, low=-40, high=40))
    w.words += ["dropout", word, "noise"]
    w.title = f"Drop activations at rate {rate} and add {word} noise"
    leave(w, z, [x], 4)


@template("simulation", "random numbers", 3)
def simulation(w: Writer) -> None:
    """Write a random walk, a Markov chain or a Monte Carlo estimate."""
    key, dtype = w.key(), w.wide()
    count = w.between(4, 24)
    shape = w.shape(0, 1, 12)
    x = w.array("start position state", dtype, shape)
    kind = w.pick(("walk", "langevin", "metropolis", "estimate", "ornstein"))
    w.words += [kind, w.pick(("simulation", "path", "chain"))]
    w.title = f"Simulate {count} steps: {kind}"
    if kind == "estimate":
        noise, word = draw(w, key, (count, *shape), dtype)
        noise = w.let("samples", noise)
        moved = w.let(
            "moved",
            w.make(
                f"{x} + {noise}",
                x,
                noise,
                shape=(count, *shape),
                low=-9 + noise.low,
                high=9 + noise.high,
            ),
        )
        value = w.short(calm(w, chain(w, calm(w, moved), w.between(1, 3))), "values", 40)
        y, names = reduced(w, w.let("values", value), 0)
        w.words.append(word)
        leave(w, w.let(names, y), [x], 3)
        return
    sigma, rate = w.pick((0.1, 0.3, 0.5)), w.pick((0.05, 0.1, 0.2))
    with w.nested("step(value, step_key)"):
        noise, word = draw(w, "step_key", shape, dtype, ("normal", "uniform", "laplace", "gumbel"))
        w.line(f"noise = {noise}")
        if kind == "walk":
            w.line(f"value = value + {sigma} * noise")
        elif kind == "ornstein":
            w.line(f"value = value - {rate} * value + {sigma} * noise")
        elif kind == "langevin":
            drift = w.pick(("jnp.sin(value)", "jnp.tanh(value)", "value / (1.0 + value**2)"))
            w.line(f"value = value - {rate} * {drift} + {sigma} * noise")
        else:
            w.line(f"proposal = value + {sigma} * noise")
            w.line("ratio = jnp.exp(0.1 * (jnp.abs(value) - jnp.abs(proposal)))")
            w.line("value = value + jnp.minimum(ratio, 1.0) * (proposal - value)")
        output = w.pick(("value", "jnp.square(value)", "jnp.tanh(value)"))
        w.line(f"return value, {output}")
    w.line(f"keys = jax.random.split({key}, {count})")
    w.line(f"final, path = lax.scan(step, {x}, keys)")
    final = w.make("final", x, low=-20, high=20)
    path = w.make("path", x, shape=(count, *shape), low=-60, high=60)
    w.names |= {"final", "path", "keys", "step"}
    w.words.append(word)
    if w.chance(0.4):
        w.give(final, path)
        return
    y = w.let("average", w.make("jnp.mean(path, axis=0)", path, shape=shape))
    leave(w, w.let("mixed", binary(w, final, calm(w, y))), [], 3)


@template("shuffling", "random numbers", 6)
def shuffling(w: Writer) -> None:
    """Write permutations, choices and draws of vectors."""
    key, dtype = w.key(), w.wide()
    n = w.size(3, 16)
    kind = w.pick(
        (
            "permutation",
            "choice",
            "categorical",
            "dirichlet",
            "multivariate",
            "ball",
            "orthogonal",
            "gumbel_top",
            "generator",
            "generator",
            "generator",
            "rng_uniform",
            "clone",
            "wrap",
        )
    )
    x = w.array("values logits mean", dtype, (n,))
    w.words += ["random", kind, w.pick(("values", "rows", "order"))]
    w.title = f"Draw a random {kind.replace('_', ' ')} for given values"
    if kind == "permutation":
        text = w.pick(
            (f"jax.random.permutation({key}, {x})", f"{x}[jax.random.permutation({key}, {n})]")
        )
        y = w.make(f"{text} * jnp.arange({n}, dtype={x}.dtype)", x, low=-80, high=80)
    elif kind == "choice":
        k = w.between(1, n)
        extra = w.pick(("", ", replace=False"))
        y = w.make(
            f"jax.random.choice({key}, {x}, ({k},){extra}) + 0.1 * jnp.mean({x})", x, shape=(k,)
        )
    elif kind == "categorical":
        place = Value(f"jax.random.categorical({key}, {x}, shape=(8,))", "int64", (8,), 0, n)
        place = w.let("picked", place)
        y = w.make(f"{x}[{place}] + 0.1 * {place}.astype({x}.dtype)", x, shape=(8,), high=7)
    elif kind == "dirichlet":
        text = f"jax.random.dirichlet({key}, jnp.exp(jnp.tanh({x})), dtype={jnp_dtype(dtype)})"
        y = w.make(f"{text} * 2.0", x, low=0, high=2)
        w.is_blocked = False
        w.labels.add("own-derivative")  # that of the distribution, not of its rejection sampler
    elif kind == "multivariate":
        text = f"jax.random.multivariate_normal({key}, {x}, jnp.eye({n}, dtype={x}.dtype))"
        y = w.make(text, x, low=-9, high=9)
    elif kind == "ball":
        text = f"jax.random.ball({key}, {n}, dtype={jnp_dtype(dtype)})"
        y = w.make(f"{x} + {text}", x, low=-6, high=6)
    else:
        y = _drawn(w, kind, key, x)
    leave(w, w.let("drawn", y), [], 4)


def _drawn(w: Writer, kind: str, key: str, x: Value) -> Value:
    """Return a function of given values and of random ones."""
    n, dtype = x.size, x.dtype
    if kind == "orthogonal":
        w.line(f"rotation = jax.random.orthogonal({key}, {n}, dtype={jnp_dtype(dtype)})")
        y = w.make(f"rotation @ {x}", x, low=-12, high=12)
    elif kind == "gumbel_top":
        w.line(f"noise = jax.random.gumbel({key}, ({n},), {jnp_dtype(dtype)})")
        w.line(f"best, _ = lax.top_k({x} + noise, {min(3, n)})")
        y = w.make("best", x, shape=(min(3, n),), low=-6, high=14)
    elif kind == "generator":
        w.line(f"raw = jax.random.bits({key}, (4,), jnp.uint32)")
        w.line(f"_, bits = lax.rng_bit_generator(raw, ({n},), dtype=jnp.uint32)")
        y = w.make(f"{x} * (bits % 16).astype({x}.dtype)", x, low=-70, high=70)
    elif kind == "rng_uniform":
        w.line(f"data = jax.random.key_data({key})")
        w.line("low = (data[1] % 3).astype(jnp.float32)")
        y = w.make(f"{x} * (low + 1.0).astype({x}.dtype)", x, low=-15, high=15)
    elif kind == "clone":
        w.line(f"clone = jax.random.clone({key})")
        text = f"jax.random.normal(clone, ({n},), {jnp_dtype(dtype)})"
        y = w.make(f"{x} + {text}", x, low=-9, high=9)
    else:
        w.line(f"data = jax.random.key_data({key})")
        w.line("again = jax.random.wrap_key_data(data + jnp.uint32(1))")
        text = f"jax.random.uniform(again, ({n},), {jnp_dtype(dtype)})"
        y = w.make(f"{x} * {text}", x)
    return y


@template("initialisation", "random numbers", 2)
def initialisation(w: Writer) -> None:
    """Write random parameters and a model that uses them."""
    key, dtype = w.key(), w.floating()
    inner, outer = w.size(2, 16), w.size(2, 16)
    x = w.array("x inputs features", dtype, (*w.shape(0, 1, 6), inner))
    kind = w.pick(
        (
            "lecun_normal",
            "glorot_uniform",
            "he_normal",
            "orthogonal",
            "variance_scaling",
            "truncated_normal",
            "uniform",
        )
    )
    spelled = jnp_dtype(dtype)
    if kind == "orthogonal" and dtype not in WIDE:
        kind = "he_normal"
    call = {"variance_scaling": 'variance_scaling(1.0, "fan_in", "normal")'}.get(kind, f"{kind}()")
    w.line(f"initializer = jax.nn.initializers.{call}")
    w.line(f"weights = initializer({key}, ({inner}, {outer}), {spelled})")
    value = w.make(f"{x} @ weights", x, shape=(*x.shape[:-1], outer), low=-12, high=12)
    if kind in ("uniform", "truncated_normal"):
        value = w.make(f"50.0 * ({x} @ weights)", value)
    y = w.let("hidden", value)
    w.words += [kind, "layer", w.pick(("forward", "features", "rows"))]
    w.title = f"Apply a layer initialised by {kind}"
    leave(w, y, [], 4)
