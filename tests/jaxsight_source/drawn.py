"""Functions of installed libraries, drawn by a seed: names of public namespaces, and arguments from
menus.

Modules, solvers, optimizers and distributions are constructed with values by the parameter's name,
and called with the first inputs that they take. One in three is drawn as its gradient.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight_source.compat.inner import equation_count
from tests.corpora.jaxsight_source.programs.registry import floats, integers
from tests.truth import libraries, oracle

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Program:
    """A function with arguments that it can be traced with, and how many equations that gives."""

    title: str
    function: Function
    args: tuple[Any, ...]
    equations: int


@dataclass(frozen=True, slots=True)
class Subject:
    """Something public of a library: the family says how it becomes a function."""

    family: str
    name: str
    derived: bool
    """Whether it is the gradient that is drawn, where there is one."""

    def program(self) -> Program | None:
        """Return the first way to call it that traces to at least `LEAST` equations."""
        module, _, name = self.name.rpartition(".")
        subject = getattr(importlib.import_module(module), name)
        for function, args in _without_errors(FAMILIES[self.family].calls(subject)):
            ways = {f"grad {self.name}": _gradient(function)} if self.derived else {}
            for title, way in (ways | {self.name: function}).items():
                equations = _equations(way, args)
                if equations >= libraries.LEAST:
                    return Program(title, way, args, equations)
        return None


Call = tuple[Function, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Family:
    """Namespaces, which of their names are of the family, and ways to call one of these."""

    namespaces: tuple[str, ...]
    holds: Callable[[Any], bool]
    calls: Callable[[Any], Iterable[Call]]


def drawn(seed: int) -> Iterator[Subject]:
    """Return everything of all families in turn, each family in an order that the seed draws."""
    draw = random.Random(seed)
    waiting = []
    for family in FAMILIES:
        names = list(_names(family))
        draw.shuffle(names)
        waiting.append([Subject(family, name, draw.random() < 1 / 3) for name in names])
    while any(waiting):
        yield from [subjects.pop() for subjects in waiting if subjects]


def _names(family: str) -> Iterator[str]:
    """Return the public names of a family, each object once."""
    seen: set[int] = set()
    for namespace in FAMILIES[family].namespaces:
        try:
            module = importlib.import_module(namespace)
        except ImportError:
            continue
        for name in sorted(dir(module)):
            value = None if name.startswith("_") else getattr(module, name, None)
            if value is not None and id(value) not in seen and FAMILIES[family].holds(value):
                seen.add(id(value))
                yield f"{namespace}.{name}"


def _without_errors(calls: Iterable[Call]) -> Iterator[Call]:
    iterator = iter(calls)
    try:
        yield from iterator
    except Exception:  # noqa: BLE001 - whatever a library makes of these values
        return


def _equations(function: Function, args: tuple[Any, ...]) -> int:
    try:
        return equation_count(jax.make_jaxpr(_arrays_of(function))(*args))
    except Exception:  # noqa: BLE001 - whatever a library raises for these arguments
        return 0


def _arrays_of(function: Function) -> Function:
    """Return the function with the arrays of its results alone."""

    def arrays(*args: Any) -> list[Any]:
        return [leaf for leaf in jax.tree.leaves(function(*args)) if _is_array(leaf)]

    return arrays


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array)


def _gradient(function: Function) -> Function:
    """Return the function's gradient by its floats, of the sum of its real results."""

    def gradient(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        places = [place for place, leaf in enumerate(leaves) if _is_float(leaf)]

        def total(floats: list[Any]) -> Any:
            whole = dict(enumerate(leaves)) | dict(zip(places, floats, strict=True))
            results = function(*tree.unflatten([whole[place] for place in range(len(leaves))]))
            real = [leaf for leaf in jax.tree.leaves(results) if _is_float(leaf)]
            return functools.reduce(jnp.add, [leaf.astype(jnp.float32).sum() for leaf in real])

        return jax.grad(total)([leaves[place] for place in places])

    return gradient


def _is_float(leaf: Any) -> bool:
    return _is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)


# Functions: arguments of the menu that jaxsight's own answers are measured with.


def _is_function(value: Any) -> bool:
    return callable(value) and not inspect.isclass(value) and not inspect.ismodule(value)


def _functions(function: Function) -> Iterator[Call]:
    arguments = libraries.filled(function)
    if arguments is None:
        return
    values = [_concrete(oracle.value(spec, {}, {})) for _, _, spec in arguments]
    arrays = tuple(value for value in values if jax.tree.leaves(value) and _all_arrays(value))

    def call(*arrays: Any) -> Any:
        left = iter(arrays)
        return function(*(next(left) if _all_arrays(value) else value for value in values))

    yield (function if len(arrays) == len(values) else call), arrays


def _all_arrays(value: Any) -> bool:
    leaves = jax.tree.leaves(value)
    return bool(leaves) and all(map(_is_array, leaves))


def _concrete(value: Any) -> Any:
    return jax.tree.map(_filled_in, value)


def _filled_in(leaf: Any) -> Any:
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key(0)
    numbers = floats if jnp.issubdtype(leaf.dtype, jnp.floating) else integers
    return jnp.array(numbers(*leaf.shape), leaf.dtype)


# Classes and factories: values by the parameter's name.

_SIZES = dict.fromkeys(
    (
        "in_features", "hidden_size", "hidden_features", "in_size", "input_size", "num_features",
        "query_size", "embedding_size", "embedding_dim", "shape", "size", "qkv_features",
        "in_channels", "channels", "width_size", "input_shape", "out_features", "out_size",
        "out_channels", "features",
    ),
    8,
)  # fmt: skip
_VALUES: dict[str, Any] = {
    **_SIZES,
    "learning_rate": 1e-3,
    "num_heads": 2,
    "groups": 2,
    "num_groups": 2,
    "depth": 2,
    "num_layers": 2,
    "num_embeddings": 16,
    "kernel_size": (3,),
    "num_spatial_dims": 1,
    "target_shape": 2,
    "window_shape": (2,),
    "axis_name": "batch",
    "p": 0.1,
    "rate": 0.1,
    "rtol": 1e-2,
    "atol": 1e-2,
    "init_value": 1e-3,
    "peak_value": 1e-2,
    "end_value": 1e-4,
    "decay_rate": 0.9,
    "weight_decay": 1e-2,
    "power": 2.0,
    "transition_steps": 4,
    "warmup_steps": 4,
    "decay_steps": 16,
    "decay": 0.9,
    "max_norm": 1.0,
    "max_delta": 1.0,
    "clipping": 1.0,
    "step_size": 1e-2,
    "mode": "batch",
}


def _constructed(made_by: Function, more: dict[str, Any]) -> Any:
    """Call a class or a factory with a value for each parameter that needs one.

    Raises:
        KeyError: for a parameter whose name is in no menu.
    """
    values = _VALUES | more
    needed = {
        parameter.name: values[parameter.name]
        for parameter in inspect.signature(made_by).parameters.values()
        if parameter.name in more
        or (
            parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        )
    }
    return made_by(**needed)


def _is_concrete(of: str) -> Callable[[Any], bool]:
    """Return whether something is a class below that one, and can be constructed."""

    def holds(value: Any) -> bool:
        module, _, name = of.rpartition(".")
        base = getattr(importlib.import_module(module), name)
        return inspect.isclass(value) and issubclass(value, base) and not inspect.isabstract(value)

    return holds


def _inputs() -> Iterator[tuple[Any, ...]]:
    row = jnp.array(floats(8))
    rows = jnp.array(floats(6, 8))
    images = jnp.array(floats(2, 6, 6, 8))
    yield (jnp.array(floats(2, 6, 8)),)
    yield (row,)
    yield (rows,)
    yield (rows, rows)
    yield (rows, rows, rows)
    yield (images,)
    yield (images[0].T,)
    yield (row, row)
    yield ((row, row), row)
    yield row, (row, row)
    yield (jnp.array(integers(2, 6)),)
    yield (jnp.array(3),)


def _linen(layer: Any) -> Iterator[Call]:
    module = _constructed(layer, {})
    for args in _inputs():
        try:
            variables = module.init(jax.random.key(0), *args)
        except Exception:  # noqa: BLE001, S112 - the layer takes other inputs
            continue
        yield module.apply, (variables, *args)


def _nnx(layer: Any) -> Iterator[Call]:
    from flax import nnx

    graph, state = nnx.split(_constructed(layer, {"rngs": nnx.Rngs(0)}))

    def apply(state: Any, *args: Any) -> Any:
        return nnx.merge(graph, state)(*args)

    for args in _inputs():
        yield apply, (state, *args)


def _equinox(layer: Any) -> Iterator[Call]:
    module = _constructed(layer, {"key": jax.random.key(0), "kernel_size": 3})
    for args in _inputs():
        yield module, args
        yield lambda *inputs: module(*inputs, key=jax.random.key(1)), args


def _parameters() -> Any:
    return {"w": jnp.array(floats(8, 4)), "b": jnp.array(floats(4))}


def _optimizers(factory: Any) -> Iterator[Call]:
    optimizer = _constructed(factory, {})
    if not hasattr(optimizer, "update"):
        yield optimizer, (jnp.asarray(3),)  # a schedule
        return
    parameters = _parameters()
    gradients = jax.tree.map(lambda leaf: 2 * leaf, parameters)
    yield optimizer.update, (gradients, optimizer.init(parameters), parameters)


def _distributions(family: Any) -> Iterator[Call]:
    import numpyro.distributions as dist

    for shape in ((3,), (), (3, 3), (6,)):
        values: dict[str, Any] = {}
        for name in inspect.signature(family).parameters:
            constraint = family.arg_constraints.get(name)
            if constraint is None or name in ("probs",):
                continue
            if getattr(constraint, "is_discrete", False):
                values[name] = jnp.asarray(5)
            else:
                values[name] = dist.biject_to(constraint)(jnp.array(floats(*shape)))
            if name == "covariance_matrix":
                break

        def sample(values: Any, key: Any) -> Any:
            made = family(**values)
            value = jax.lax.stop_gradient(made.sample(key))
            return value, made.log_prob(value)

        def density(values: Any, x: Any) -> Any:
            return family(**values).log_prob(x)

        yield sample, (values, jax.random.key(0))
        yield density, (values, jnp.array(floats(*shape)))


def _decaying(t: Any, y: Any, args: Any) -> Any:
    return -y * jnp.sin(t)


def _differential(solver: Any) -> Iterator[Call]:
    import diffrax

    made = _constructed(solver, {"solver": diffrax.Euler()})

    def solve(y: Any) -> Any:
        terms = diffrax.ODETerm(_decaying)
        return diffrax.diffeqsolve(terms, made, 0.0, 1.0, 0.1, y).ys

    def split(y: Any) -> Any:
        terms = diffrax.MultiTerm(diffrax.ODETerm(_decaying), diffrax.ODETerm(_decaying))
        return diffrax.diffeqsolve(terms, made, 0.0, 1.0, 0.1, y).ys

    yield solve, (jnp.array(floats(3)),)
    yield split, (jnp.array(floats(3)),)


def _linear(solver: Any) -> Iterator[Call]:
    import lineax

    made = _constructed(solver, {"solver": lineax.CG(1e-3, 1e-3)})
    operators = (
        lineax.MatrixLinearOperator,
        lambda matrix: lineax.MatrixLinearOperator(
            matrix @ matrix.T, lineax.positive_semidefinite_tag
        ),
        lambda matrix: lineax.MatrixLinearOperator(jnp.triu(matrix), lineax.upper_triangular_tag),
        lambda matrix: lineax.DiagonalLinearOperator(matrix[0]),
        lambda matrix: lineax.TridiagonalLinearOperator(matrix[0], matrix[1, 1:], matrix[2, 1:]),
    )
    for operator in operators:

        def solve(matrix: Any, vector: Any, operator: Any = operator) -> Any:
            return lineax.linear_solve(operator(matrix), vector, made).value

        matrix = jnp.array(floats(4, 4)) + 3 * jnp.eye(4, dtype=jnp.float32)
        yield solve, (matrix, jnp.array(floats(4)))


def _iterative(solver: Any) -> Iterator[Call]:
    import optimistix as optx

    made = _constructed(solver, {"solver": optx.BFGS(1e-2, 1e-2)})
    problems = (
        (optx.root_find, lambda x, _: x**3 + x - 1),
        (optx.fixed_point, lambda x, _: jnp.cos(x)),
        (optx.least_squares, lambda x, _: jnp.sin(x) - 0.5 * x),
        (optx.minimise, lambda x, _: jnp.sum((x - 1) ** 4)),
    )
    for entry, problem in problems:

        def solve(x: Any, entry: Any = entry, problem: Any = problem) -> Any:
            return entry(problem, made, x, max_steps=8, throw=False).value

        yield solve, (jnp.array(floats(3)),)


def _of(*namespaces: str) -> Family:
    return Family(namespaces, _is_function, _functions)


FAMILIES: dict[str, Family] = {
    "jax.numpy": _of("jax.numpy", "jax.numpy.linalg", "jax.numpy.fft"),
    "jax.scipy": _of(
        "jax.scipy.special", "jax.scipy.linalg", "jax.scipy.signal", "jax.scipy.ndimage",
        "jax.scipy.integrate", "jax.scipy.cluster.vq", "jax.scipy.interpolate",
        *(f"jax.scipy.stats.{name}" for name in (
            "norm", "beta", "gamma", "t", "poisson", "nbinom", "betabinom", "cauchy", "chi2",
            "dirichlet", "expon", "gennorm", "laplace", "logistic", "multivariate_normal",
            "multinomial", "pareto", "truncnorm", "vonmises", "wrapcauchy", "binom",
        )),
    ),
    "jax.nn": _of("jax.nn", "jax.random", "jax.image", "jax.ops", "jax.lax", "jax.nn.initializers"),
    "optax": _of("optax", "optax.losses", "optax.projections", "optax.tree", "optax.perturbations",
                 "optax.second_order", "optax.assignment", "optax.contrib"),
    "optax optimizers": Family(
        ("optax", "optax.contrib", "optax.transforms", "optax.schedules"), _is_function, _optimizers
    ),
    "flax": _of("flax.linen", "flax.nnx", "flax.linen.attention", "flax.nnx.nn.attention",
                "flax.linen.spmd", "flax.nnx.nn.activations", "flax.training.common_utils"),
    "flax.linen modules": Family(("flax.linen",), _is_concrete("flax.linen.Module"), _linen),
    "flax.nnx modules": Family(("flax.nnx",), _is_concrete("flax.nnx.Module"), _nnx),
    "equinox modules": Family(("equinox.nn",), _is_concrete("equinox.Module"), _equinox),
    "diffrax solvers": Family(
        ("diffrax",), _is_concrete("diffrax.AbstractSolver"), _differential
    ),
    "lineax solvers": Family(("lineax",), _is_concrete("lineax.AbstractLinearSolver"), _linear),
    "optimistix solvers": Family(("optimistix",), lambda value: inspect.isclass(value) and (
        hasattr(value, "step") and hasattr(value, "terminate") and not inspect.isabstract(value)
    ), _iterative),
    "numpyro": _of("numpyro.distributions.util", "numpyro.util", "numpyro.ops.indexing",
                   "numpyro.infer.util", "numpyro.infer.hmc_util", "numpyro.diagnostics",
                   "numpyro.distributions.kl", "numpyro.contrib.ecs_proxies", "numpyro.nn"),
    "numpyro distributions": Family(
        ("numpyro.distributions",),
        _is_concrete("numpyro.distributions.Distribution"),
        _distributions,
    ),
}  # fmt: skip
"""Libraries and what is drawn from them."""
