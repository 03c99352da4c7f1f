"""What text made by the sourcerizer has to hold, checked without trusting the sourcerizer.

The text is executed in a module of its own; then the jaxpr, the primitives, the results to the bit,
their weak types, the trees and the effects have to be those of the function, and the gradient's
where it has one.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import shutil
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jax.interpreters import partial_eval

import jaxsight
from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from jaxsight_source.readable import readable as simplified
from jaxsight_source.written import Written
from tests.corpora.jaxsight_source.programs.registry import Call

LINE_LENGTH = 88


class Fails(AssertionError):
    """The text does not hold what it must; the message names what."""


@dataclass(frozen=True, slots=True)
class Passed:
    text: str
    equations: int
    bound: int
    """Equations written with `Primitive.bind`."""


@contextlib.contextmanager
def x64(enabled: bool) -> Iterator[None]:
    """Under this setting of 64-bit types."""
    switch: Any = getattr(jax, "enable_x64", None)
    if not callable(switch):
        from jax.experimental import enable_x64 as switch
    with switch(enabled):
        yield


def on(mesh: Any) -> contextlib.AbstractContextManager[Any]:
    """Under a mesh that is set, if any."""
    return contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh)


@contextlib.contextmanager
def recursion(limit: int | None) -> Iterator[None]:
    """Under this limit of Python's, or the usual one."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit or before)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def check(
    call: Call, *, imports: frozenset[str] = frozenset(), gradient: bool = True, **options: Any
) -> Passed:
    """Raises `Fails` unless the text made of the function holds everything; `options` are those of
    `sourcerize`.
    """
    with recursion(None):
        written = write(
            call.function,
            call.args,
            call.kwargs,
            SourceOptions(name="generated", run=False, **options),
        )
    try:
        _check_text(written, call, imports, gradient)
    except Exception as error:
        error.add_note(f"in the text:\n{written.text[:20_000]}")
        raise
    return Passed(written.text, written.equations, len(written.bound))


def _check_text(written: Written, call: Call, imports: frozenset[str], gradient: bool) -> None:
    tree = ast.parse(written.text)
    _check_imports(tree, imports)
    check_format(written.text)
    module = types.ModuleType("generated_module")
    exec(compile(tree, "<generated>", "exec"), module.__dict__)
    added = frozenset(placeholder.name for placeholder in written.placeholders)
    _check_signature(call.function, module.generated, added)
    given = {placeholder.name: placeholder.value for placeholder in written.placeholders}
    made = functools.partial(module.generated, **given) if given else module.generated
    with recursion(call.recursion):
        _check_program(made, call, gradient, readable=written.options.style == "pretty")


def _check_program(
    made: Callable[..., Any], call: Call, gradient: bool, *, readable: bool = False
) -> None:
    original, args = arrays_only(call.function, call)
    rewritten, _ = arrays_only(made, call)
    shapes: list[Any] = []
    again: list[Any] = []
    expected = jax.make_jaxpr(keeping_tree(original, shapes))(*args)
    found = jax.make_jaxpr(keeping_tree(rewritten, again))(*args)
    difference = jaxsight.same_jaxpr(expected, found, orders=call.orders)
    if difference is not None and readable:
        # Without choices, JAX's own pass shows that only dead code differs.
        clean = without_dead_code if "cond" not in live(expected) else simplified
        expected, found = clean(expected), without_dead_code(found)
        difference = jaxsight.same_jaxpr(expected, found, orders=call.orders, sums=True)
    runs = call.bits and not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in args)
    # That pass keeps what a `while` carries without need: there, bits and derivatives decide.
    by_values = difference is not None and readable and runs and "while" in live(expected)
    if difference is not None and not by_values:
        raise Fails(
            f"another jaxpr: {difference}\nexpected\n{expected!s:.20000}\nfound\n{found!s:.20000}"
        )
    ours, theirs = live(expected, readable), live(found, readable)
    if ours != theirs and not by_values:
        raise Fails(f"other primitives: {ours - theirs} and {theirs - ours}")
    if shapes != again:
        raise Fails(f"the result is {again[0]}, not {shapes[0]}")
    if {type(e).__name__ for e in expected.effects} != {type(e).__name__ for e in found.effects}:
        raise Fails(f"effects {found.effects}, not {expected.effects}")
    if runs:
        same_bits(jax.jit(original)(*args), jax.jit(rewritten)(*args), "the result")
    if gradient:
        _check_gradient(original, rewritten, args)


def _check_imports(tree: ast.Module, allowed: frozenset[str]) -> None:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported = [name.name for name in names]
            case ast.ImportFrom(module=module, names=names):
                imported = [f"{module}.{name.name}" for name in names]
            case ast.Attribute(attr=attribute):
                if (
                    attribute.startswith("_")
                    and not attribute.startswith("__")
                    and attribute != "_replace"
                ):
                    raise Fails(f"uses {ast.unparse(node)}")
                continue
            case _:
                continue
        for name in imported:
            parts = name.split(".")
            standard = parts[0] in {
                "__future__",
                "typing",
                "functools",
                "collections",
                "zlib",
                "base64",
                "dataclasses",
            }
            if parts[0] not in {"jax", "numpy", "ml_dtypes"} | allowed and not standard:
                raise Fails(f"imports {name}")
            if "_src" in parts or parts[0] == "jaxlib":
                raise Fails(f"imports {name}, which is private")


def check_format(text: str) -> None:
    """Raises `Fails` where `ruff format` would change the text; nothing without ruff."""
    if (ruff := shutil.which("ruff")) is None and (
        beside := Path(sys.executable).with_name("ruff")
    ).exists():
        ruff = str(beside)
    if ruff is None:
        return
    command = [ruff, "format", "--isolated", "--line-length", str(LINE_LENGTH), "--diff", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Fails(f"ruff format would change the text:\n{done.stdout}{done.stderr}")


def _check_signature(
    function: Callable[..., Any], made: Callable[..., Any], added: frozenset[str]
) -> None:
    try:
        expected = inspect.signature(function)
    except (TypeError, ValueError):
        return
    parameters = inspect.signature(made).parameters.values()
    found = [parameter for parameter in parameters if parameter.name not in added]
    for want, have in zip(expected.parameters.values(), found, strict=False):
        if (want.name, want.kind) != (have.name, have.kind):
            raise Fails(f"the signature is {inspect.signature(made)}, not {expected}")
    if len(found) < len(expected.parameters):
        raise Fails(f"the signature is {inspect.signature(made)}, not {expected}")


def arrays_only(function: Callable[..., Any], call: Call) -> tuple[Callable[..., Any], list[Any]]:
    """The function of the array leaves of its arguments alone, and these."""
    leaves, tree = jax.tree.flatten((call.args, call.kwargs))
    places = [i for i, leaf in enumerate(leaves) if is_array(leaf)]

    def of_arrays(*arrays: Any) -> Any:
        filled = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        args, kwargs = jax.tree.unflatten(tree, filled)
        return function(*args, **kwargs)

    return of_arrays, [leaves[i] for i in places]


def is_array(leaf: Any) -> bool:
    return isinstance(
        leaf, (jax.Array, jax.ShapeDtypeStruct, np.ndarray, np.generic, bool, int, float, complex)
    )


def keeping_tree(function: Callable[..., Any], into: list[Any]) -> Callable[..., Any]:
    """Appends to `into` the tree of each result."""

    def keeping(*args: Any) -> Any:
        out = function(*args)
        into.append(jax.tree.structure(out))
        return out

    return keeping


def same_bits(expected: Any, found: Any, what: str) -> None:
    """Raises `Fails` unless two trees have the same arrays to the bit."""
    pairs = jax.tree.leaves_with_path(expected), jax.tree.leaves(found)
    for (path, a), b in zip(*pairs, strict=True):
        where = f"{what}{jax.tree_util.keystr(path)}"
        if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            if a.dtype != b.dtype:
                raise Fails(f"{where} is {b.dtype}, not {a.dtype}")
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        if not isinstance(a, (jax.Array, np.ndarray, np.generic)):
            if a != b:
                raise Fails(f"{where} is {b!r}, not {a!r}")
            continue
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            raise Fails(f"{where} is {b.dtype}{b.shape}, not {a.dtype}{a.shape}")
        if jax.typeof(a) != jax.typeof(b) or getattr(a, "weak_type", 0) != getattr(
            b, "weak_type", 0
        ):
            raise Fails(
                f"{where} is {jax.typeof(b)}, not {jax.typeof(a)} (or its weak type differs)"
            )
        if np.asarray(a).tobytes() != np.asarray(b).tobytes():
            raise Fails(f"{where} is {b}, not {a}")


def _check_gradient(
    original: Callable[..., Any], rewritten: Callable[..., Any], args: list[Any]
) -> None:
    chosen = tuple(
        i
        for i, a in enumerate(args)
        if jnp.issubdtype(
            jax.typeof(a).dtype if not isinstance(a, jax.ShapeDtypeStruct) else a.dtype, np.floating
        )
    )
    if not chosen:
        return

    def loss(function: Callable[..., Any]) -> Callable[..., Any]:
        def total(*given: Any) -> Any:
            leaves = [leaf for leaf in jax.tree.leaves(function(*given)) if is_array(leaf)]
            kept = [
                jnp.real(leaf)
                for leaf in leaves
                if jnp.issubdtype(jax.typeof(leaf).dtype, np.inexact)
            ]
            return sum((jnp.sum(leaf.astype(np.float32)) for leaf in kept), jnp.float32(0))

        return jax.grad(total, argnums=chosen)

    try:
        expected = jax.make_jaxpr(loss(original))(*args)
    except Exception:  # noqa: BLE001  whatever the function's gradient fails with, it has none
        return
    found = jax.make_jaxpr(loss(rewritten))(*args)
    if jaxsight.same_jaxpr(expected, found) is None:
        return
    # JAX may take derivatives of a derivative in another order than those of its jaxpr: sums may be
    # of another order then
    evaluated = loss(_evaluated(original, args))
    if jaxsight.same_jaxpr(jax.make_jaxpr(evaluated)(*args), found) is None:
        return
    if not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in args):
        gradient = jax.jit(loss(rewritten))(*args)
        try:
            same_bits(jax.jit(evaluated)(*args), gradient, "the gradient")
        except Fails:
            same_bits(jax.jit(loss(original))(*args), gradient, "the gradient")


def _evaluated(original: Callable[..., Any], args: list[Any]) -> Callable[..., Any]:
    """The function as what evaluates its jaxpr."""
    jaxpr: Any
    jaxpr, tree = jax.make_jaxpr(original, return_shape=True)(*args)
    flat = jax.extend.core.jaxpr_as_fun(jaxpr)
    return lambda *given: jax.tree.unflatten(jax.tree.structure(tree), flat(*given))


def without_dead_code(jaxpr: Any) -> Any:
    """A program without values that nobody reads, also those that calls pass on: JAX's own pass."""
    inside = getattr(jaxpr, "jaxpr", jaxpr)
    needed, _ = partial_eval.dce_jaxpr(inside, [True] * len(inside.outvars), instantiate=True)
    return needed if inside is jaxpr else jax.extend.core.ClosedJaxpr(needed, jaxpr.consts)


def live(jaxpr: Any, sums: bool = False) -> Counter[str]:
    """How often each primitive occurs among equations whose results or effects are used; with
    `sums`, those of cotangents as additions.
    """
    counts: Counter[str] = Counter()
    waiting = [jaxpr]
    while waiting:
        opened = waiting.pop()
        opened = getattr(opened, "jaxpr", opened)
        used = {id(v) for v in opened.outvars}
        for equation in reversed(opened.eqns):
            if not equation.effects and not any(id(v) in used for v in equation.outvars):
                continue
            used |= {id(v) for v in _read_by(equation)}
            name = equation.primitive.name
            counts["add" if sums and name == "add_any" else name] += 1
            waiting += _inner(equation.params.values())
    return counts


def _read_by(equation: Any) -> list[Any]:
    """The operands of an equation, without those that a scan hands to a body that does not read
    them.
    """
    if equation.primitive.name != "scan":
        return list(equation.invars)
    body = equation.params["jaxpr"]
    body = getattr(body, "jaxpr", body)
    read = {id(v) for inner in body.eqns for v in inner.invars} | {id(v) for v in body.outvars}
    inputs = zip(equation.invars, body.invars, strict=True)
    return [atom for atom, var in inputs if id(var) in read]


def _inner(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _inner(value)
        elif hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
            yield value
