"""Pretty style: calls of JAX's own jitted functions, and those with custom rules, by public name.

Such an equation has the function's name and the names of its arguments. Other arguments (`axis`,
`shape` …) are guessed from the inner equations and from the result; the prover takes the first
guess that results in the same equation, including its inner program.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxsight_source.compat.equations import argument_names, function_name
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import is_literal, opened
from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, PRETTY, EquationView, signatures
from jaxsight_source.text.exprs import FALSE, TRUE, Item, binary, call, public
from jaxsight_source.values import spelling
from jaxsight_source.values.spelling import value

_HOMES = {
    "jnp": "jax.numpy", "jax.nn": "jax.nn", "jnp.linalg": "jax.numpy.linalg",
    "jax.random": "jax.random", "jnp.fft": "jax.numpy.fft",
    "jax.scipy.special": "jax.scipy.special", "jax.scipy.linalg": "jax.scipy.linalg",
    "lax": "jax.lax", "jax.nn.initializers": "jax.nn.initializers",
}  # fmt: skip

_OTHER_NAMES = {
    "_roll_static": "roll", "_roll_dynamic": "roll", "_reduce_sum": "sum", "_mean": "mean",
    "_squared_difference": "squared_difference", "_threefry_split": "split", "fft_": "fft",
}  # fmt: skip

MOST = 40
"""The maximum number of guesses for one equation.

Each guess that fails costs a trace, and they are sorted by how many arguments they have: a call
with more unusual arguments than these cover is written with `lax`.
"""


@dataclass(frozen=True, slots=True)
class NumpyCall:
    """A call in a program."""

    name: str
    view: EquationView
    names: Sequence[str | None]
    """The function's names for its arguments, where known."""
    equations: Sequence[Equation]
    """The inner equations, including nested ones."""


@functools.cache
def _signatures(name: str) -> tuple[tuple[str, inspect.Signature], ...]:
    """Return the paths and signatures of the public functions of that name."""
    homes = {path: importlib.import_module(module) for path, module in _HOMES.items()}
    return tuple(signatures(name, homes))


def _all_equations(program: object, depth: int = 3) -> Iterator[Equation]:
    """Yield the equations of a library function, and of what it jits itself."""
    for equation in opened(program).jaxpr.eqns:
        yield equation
        if depth:
            for part in inner_jaxprs(equation):
                yield from _all_equations(part.value, depth - 1)


def candidates(name: str, view: EquationView, program: object) -> Iterator[ast.expr]:
    """Yield public calls that may be a call of this program, the shortest first."""
    called = NumpyCall(name, view, argument_names(opened(program)), list(_all_equations(program)))
    bare = _OTHER_NAMES.get(name, name.strip("_"))
    for path, signature in _signatures(bare):
        yield from itertools.islice(_calls(path, signature, called), MOST)


def _calls(path: str, signature: inspect.Signature, called: NumpyCall) -> Iterator[ast.expr]:
    parameters = {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    for operands in _arguments(called, parameters):
        free = {name: p for name, p in parameters.items() if name not in operands}
        guesses = {
            name: options
            for name, p in free.items()
            if (options := list(_guesses(name, p, called)))
        }
        chosen = sorted(
            itertools.product(*guesses.values()),
            key=lambda picks: sum(p is not None for p in picks),
        )
        for picks in chosen:
            guessed = {
                name: pick for name, pick in zip(guesses, picks, strict=True) if pick is not None
            }
            yield call(path, *_placed(parameters, operands | guessed))


def _arguments(
    called: NumpyCall, parameters: Mapping[str, inspect.Parameter]
) -> Iterator[dict[str, ast.expr]]:
    """Yield operands by parameter: by their names if the function has these, and in order."""
    named = dict(zip(called.names, called.view.operands, strict=False))
    if len(called.names) == len(called.view.operands) == len(named) and set(named) <= set(
        parameters
    ):
        by_name = {str(name): expr for name, expr in named.items()}
        literals = dict(zip(called.names, called.view.literals, strict=True))
        shown = {
            name: expr
            for name, expr in by_name.items()
            if literals[name] is None
            or not _is_default(literals[name], parameters[name].default, name)
        }
        if len(shown) < len(by_name):
            yield shown
        yield by_name
    positional = [
        name
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(positional) >= len(called.view.operands):
        yield dict(zip(positional, called.view.operands, strict=False))


def _is_default(literal: object, default: object, name: str) -> bool:
    if name == "correction":
        return bool(np.asarray(literal) == 0)
    return isinstance(default, (bool, int, float)) and bool(np.asarray(literal) == default)


def _placed(
    parameters: Mapping[str, inspect.Parameter], arguments: Mapping[str, ast.expr]
) -> list[Item]:
    """Return arguments in the function's order: required ones by position, then by name."""
    placed: list[Item] = []
    positional = True
    for name, parameter in parameters.items():
        if name not in arguments:
            positional = False
        elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY or (
            positional
            and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            and (parameter.default is inspect.Parameter.empty or name in _UNNAMED)
        ):
            placed.append(arguments[name])
        else:
            placed.append(ast.keyword(name, arguments[name]))
            positional = False
    return placed


_UNNAMED = frozenset(
    {"x", "y", "p", "shape", "a_min", "min", "a_max", "max", "shift", "num_classes"}
)
"""Optional arguments that people pass by position."""


def _guesses(
    name: str, parameter: inspect.Parameter, called: NumpyCall
) -> Iterator[ast.expr | None]:
    """Yield values for a parameter; None leaves it at its default."""
    required = parameter.default is inspect.Parameter.empty
    if not required:
        yield None
    shape = tuple(getattr(called.view.outputs[0], "shape", ()))
    match name:
        case "shape" | "sample_shape" if required or shape:
            yield value(shape)
        case "dtype" if required or called.name in _TYPED:
            yield spelling.dtype(called.view.outputs[0].dtype)
        case "axis" | "dimension" | "axes":
            yield from _axes(called)
        case "keepdims" if called.view.inputs:
            rank = getattr(called.view.inputs[0], "ndim", -1)
            if parameter.default is True and len(shape) < rank:
                yield FALSE
            if len(shape) == rank:
                yield TRUE
        case "num_classes":
            yield from map(value, dict.fromkeys(shape))
        case "num" | "length" | "total_repeat_length" if shape:
            yield value(shape[0])
        case "shift":
            yield from _shifts(called)
        case "method" if called.name == "searchsorted":
            yield from _strings("sort", "compare_all", "scan_unrolled")
        case "mode":
            yield from _MODES.get(called.name, _OTHER_MODES)
        case _:
            yield from _USUAL.get(name, ())


def _strings(*texts: str) -> tuple[ast.expr, ...]:
    return tuple(ast.Constant(text) for text in texts)


_MODES = dict.fromkeys(("convolve", "correlate"), _strings("same", "valid"))
_MODES["qr"] = _strings("raw", "r", "complete")
_OTHER_MODES = _strings("clip", "fill", "wrap")

_USUAL: dict[str, tuple[ast.expr, ...]] = {
    "ord": (ast.Constant(1), public("jnp.inf")), "k": (ast.Constant(1), ast.Constant(-1)),
    "lower": (TRUE,), "descending": (TRUE,), "unit_diagonal": (TRUE,), "approximate": (FALSE,),
    "trans": (ast.Constant(1), ast.Constant(2)), "side": _strings("right"),
    "ddof": (ast.Constant(1),), "correction": (ast.Constant(1),),
}  # fmt: skip
"""Values of other parameters that are not their defaults."""

_TYPED = frozenset({
    "_one_hot", "_randint", "_linspace", "_uniform", "_normal", "_bernoulli", "_gumbel", "_laplace",
    "_exponential", "_truncated_normal", "_beta", "_gamma", "_cauchy", "arange",
})  # fmt: skip
"""Functions whose result has the dtype that they are given."""


def _axes(called: NumpyCall) -> Iterator[ast.expr]:
    candidates_seen: dict[object, None] = {}
    rank = getattr(called.view.inputs[0], "ndim", 0) if called.view.inputs else 0
    for equation in called.equations:
        for key in ("axes", "axis", "dimension", "dimensions"):
            axes = equation.params.get(key)
            if isinstance(axes, int):
                axes = (axes,)
            if (
                isinstance(axes, tuple)
                and len(axes) > 0
                and all(isinstance(a, int) for a in axes)
                and (len(axes) < max(rank, 1) or len(axes) == 1)
            ):
                candidates_seen.setdefault(axes[0] if len(axes) == 1 else axes)
    for axis in range(rank):
        candidates_seen.setdefault(axis)
    yield from map(value, candidates_seen)


def _shifts(called: NumpyCall) -> Iterator[ast.expr]:
    """Yield the shifts that `roll` may have: it concatenates two slices."""
    for equation in called.equations:
        if equation.primitive.name == "slice":
            starts, stops = equation.params["start_indices"], equation.params["limit_indices"]
            shape = equation.invars[0].aval.shape
            for axis, (start, stop) in enumerate(zip(starts, stops, strict=True)):
                if start:
                    yield value(shape[axis] - start)
                    yield value(-start)
                elif stop != shape[axis]:
                    yield value(-stop)


_AS_OPERATORS = {"remainder": "%", "floor_divide": "//", "true_divide": "/", "matmul": "@"}


def _padded(view: EquationView) -> Iterator[ast.expr]:
    """Yield calls of `jnp.pad`, whose padding value is a keyword and whose modes differ."""
    equations = list(_all_equations(view.params["jaxpr"]))
    array, *fill = view.operands
    widths = list(_widths(view.inputs[0].shape, view.outputs[0].shape, equations))
    zero = (
        len(fill) == 1 and view.literals[1] is not None and not np.asarray(view.literals[1]).any()
    )
    for width in widths:
        if zero:
            yield call("jnp.pad", array, width)
        elif fill:
            yield call("jnp.pad", array, width, constant_values=fill[0])
        for mode in ("edge", "reflect", "symmetric", "wrap"):
            yield call("jnp.pad", array, width, mode=ast.Constant(mode))


def _widths(
    before: Sequence[int], after: Sequence[int], equations: Sequence[Equation]
) -> Iterator[ast.expr]:
    """Yield the padding that an array may have on each side."""
    for equation in equations:
        if equation.primitive.name == "pad":
            yield from _sides([(low, high) for low, high, _ in equation.params["padding_config"]])
            return
    both = [new - old for old, new in zip(before, after, strict=True)]
    if all(width % 2 == 0 for width in both):
        yield from _sides([(width // 2, width // 2) for width in both])
    yield from _sides([(0, width) for width in both])
    yield from _sides([(width, 0) for width in both])


def _sides(sides: list[tuple[int, int]]) -> Iterator[ast.expr]:
    if len(set(sides)) == 1:
        low, high = sides[0]
        yield value(low if low == high else (low, high))
    yield value(tuple(sides))


@PRETTY("jit", "pjit")
def jitted(view: EquationView) -> Iterator[ast.expr]:
    program = view.params["jaxpr"]
    name = str(view.params["name"])
    if name in _AS_OPERATORS and len(view.operands) == 2 and None in view.literals:
        yield binary(_AS_OPERATORS[name], *view.operands)
    if name == "_pad" and len(view.inputs[0].shape) == len(view.outputs[0].shape):
        yield from _padded(view)
    yield from candidates(name, view, program)


@PRETTY("custom_jvp_call", "custom_vjp_call")
def with_rules(view: EquationView) -> Iterator[ast.expr]:
    program = view.params.get("call_jaxpr", view.params.get("fun_jaxpr"))
    name = str(view.params.get("name") or function_name(opened(program)))
    yield from candidates(name.rpartition(".")[2].partition(" ")[0], view, program)


@IDIOMS(
    "random_wrap jit|pjit",
    "random_wrap jit|pjit random_unwrap",
    "convert_element_type jit|pjit",
    "random_wrap convert_element_type jit|pjit",
    "broadcast_in_dim* jit|pjit",
)
def prepared(window: Window) -> Iterator[ast.expr]:
    """Yield a library function that converts its arguments before it calls its jitted part.

    It may convert raw PRNG keys to typed ones.
    """
    equation = window.find("jit", "pjit")
    origins = [
        window.origin(atom, "random_wrap", "convert_element_type", "broadcast_in_dim")
        for atom in equation.invars
    ]
    view = EquationView(
        equation.primitive,
        equation.params,
        tuple(map(window.expr, origins)),
        tuple(atom.aval for atom in origins),
        (window.output.aval,),
        tuple(atom.val if is_literal(atom) else None for atom in origins),
    )
    yield from candidates(str(equation.params["name"]), view, equation.params["jaxpr"])


@IDIOMS("random_wrap convert_element_type? random_split|random_fold_in|random_clone random_unwrap")
def raw_keys(window: Window) -> Iterator[ast.expr]:
    equation = window.find("random_split", "random_fold_in", "random_clone")
    operands = window.operands(equation, "random_wrap", "convert_element_type")
    shape = equation.params.get("shape", (2,))  # what `split` returns by default
    count = [] if shape == (2,) else [value(shape[0] if len(shape) == 1 else shape)]
    yield call(f"jax.{equation.primitive.name.replace('_', '.', 1)}", *operands, *count)


@IDIOMS("convert_element_type? random_seed random_unwrap")
def new_raw_key(window: Window) -> Iterator[ast.expr]:
    seeded = window.find("random_seed")
    yield call("jax.random.PRNGKey", *window.operands(seeded, "convert_element_type"))


@IDIOMS("convert_element_type random_fold_in")
def folded(window: Window) -> Iterator[ast.expr]:
    last = window.equations[-1]
    yield call("jax.random.fold_in", *window.operands(last, "convert_element_type"))


@IDIOMS("jit|pjit add argmax")
def categorical(window: Window) -> Iterator[ast.expr]:
    drawn = window.equations[0]
    added, chosen = window.equations[1:]
    logits = next(atom for atom in added.invars if window.maker(atom) is None)
    key = window.expr(drawn.invars[0])
    yield call("jax.random.categorical", key, window.expr(logits))
    yield call(
        "jax.random.categorical", key, window.expr(logits), axis=value(chosen.params["axes"][0])
    )
