"""Comparison of the parameters of two equations, which are values of any type."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import jax
import numpy as np

from jaxsight_source.compat import avals, staging
from jaxsight_source.compat.derivative_rules import is_wrapped_function, is_wrapper
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Literal, Var
from jaxsight_source.compat.parameters import params_of_object
from jaxsight_source.compat.staging import Program, is_jaxpr, is_tracer, opened
from jaxsight_source.jaxprs.contents import Identity, contents
from jaxsight_source.jaxprs.same.difference import Parted, require, step_to_inner

_INFORMATION = frozenset(
    {"debug", "debug_info", "index_map_tree", "origin", "_get_vjp", "mlir_module_serialized"}
)
"""Fields of JAX's own dataclasses that do not affect the results. Of kernels, `origin` is an
argument's name (`BlockMapping`), and `index_map_tree` how those of index maps were nested. Of
`Exported`, `_get_vjp` exports the derivative, from the function or as it was serialized, which is
compared where a program calls it, and `mlir_module_serialized` has locations.
"""

_LOCATION = re.compile(r'^#loc.*\n| loc\((?:"[^"]*"|[^()"])*\)', re.MULTILINE)
"""A location in the text of an MLIR module."""

_BY_IDENTITY: object = object.__eq__

TRUSTED = frozenset({"builtins", "enum", "functools", "jax", "jaxlib", "ml_dtypes", "numpy"})
"""Packages whose `==` is trusted."""

_NUMBERS = (bool, int, float, complex, np.generic)
"""Types of numbers that differ although `==` is true: `0.0` and `-0.0`, `1` and `True`."""


class ValueComparison:
    """Compares values of any type; raises `Parted` where they differ.

    Args:
        compare_programs: compares the jaxprs among the values.
    """

    def __init__(self, compare_programs: Callable[[Program, Program], None]) -> None:
        self._compare_programs = compare_programs
        self._opening: set[tuple[int, int]] = set()
        """Pairs of ids of the objects whose contents are being compared."""

    def compare(self, part: str, lhs: object, rhs: object) -> None:
        """Compare two values; `part` describes them in the difference."""
        if plainly_equal(lhs, rhs):
            return
        lhs, rhs = _without_vacuous_sharding(lhs), _without_vacuous_sharding(rhs)
        if lhs is rhs:
            return
        if is_jaxpr(lhs) and is_jaxpr(rhs):
            self._compare_programs(opened(lhs), opened(rhs))
            return
        if type(lhs) is not type(rhs):
            # A size may be Python's or NumPy's integer.
            if (_is_integer(lhs) and _is_integer(rhs) and lhs == rhs) or _equal_of_jax(lhs, rhs):
                return
            raise Parted(part, _typed(lhs), _typed(rhs))
        require(not is_tracer(lhs), part, lhs, rhs)
        if isinstance(lhs, (tuple, list, dict, set, frozenset)):
            self._collections(part, lhs, rhs)
        elif isinstance(lhs, (np.ndarray, jax.Array)):
            require(value_token(lhs) == value_token(rhs), part, lhs, rhs)
        elif isinstance(lhs, (float, complex, np.generic)):
            same_bits = np.asarray(lhs).tobytes() == np.asarray(rhs).tobytes()
            require(same_bits, part, lhs, rhs)
        else:
            self._objects(part, lhs, rhs)

    def _collections(self, part: str, lhs: object, rhs: object) -> None:
        """Compare two collections of one type."""
        match lhs, rhs:
            case ((tuple() | list()), (tuple() | list())):
                require(len(lhs) == len(rhs), part, lhs, rhs)
                for index, (element, counterpart) in enumerate(zip(lhs, rhs, strict=True)):
                    with step_to_inner(str(index)):
                        self.compare(part, element, counterpart)
            case dict(), dict():
                lhs_keys, rhs_keys = ({_key(key): key for key in side} for side in (lhs, rhs))
                require(lhs_keys.keys() == rhs_keys.keys(), part, lhs, rhs)
                for unique, key in lhs_keys.items():
                    self.compare(part, lhs[key], rhs[rhs_keys[unique]])
            case ((set() | frozenset()), (set() | frozenset())):
                require(set(map(_key, lhs)) == set(map(_key, rhs)), part, lhs, rhs)
                return
        if getattr(lhs, "__dict__", None):  # a user's class, which may have other attributes
            self._contents(part, lhs, rhs)

    def _objects(self, part: str, lhs: object, rhs: object) -> None:
        """Compare two objects of one type that are neither numbers nor collections."""
        if isinstance(lhs, jax.tree_util.PyTreeDef):  # its `==` calls that of the user's classes
            self._contents(part, lhs, rhs)
        elif isinstance(lhs, jax.lax.Tolerance):
            self.compare(part, vars(lhs), vars(rhs))
        elif dataclasses.is_dataclass(lhs) and is_of_jax(lhs):
            for field in dataclasses.fields(lhs):
                if field.name not in _INFORMATION:
                    first, second = (getattr(side, field.name, None) for side in (lhs, rhs))
                    self.compare(part, first, second)
            if hasattr(lhs, "mlir_module_serialized"):  # an `Exported`
                programs = [_LOCATION.sub("", cast(Any, side).mlir_module()) for side in (lhs, rhs)]
                require(programs[0] == programs[1], part, *programs)
        elif _is_trusted(lhs) and _plain_equal(lhs, rhs):
            return
        elif (params := params_of_object(lhs)) is not None:
            self.compare(part, params, params_of_object(rhs))
        elif is_wrapped_function(lhs) and is_wrapped_function(rhs):
            self.compare(part, lhs.f, rhs.f)
            self.compare(part, lhs.params, rhs.params)
        else:
            self._contents(part, lhs, rhs)

    def _contents(self, part: str, lhs: object, rhs: object) -> None:
        """Compare two objects by their contents if their `==` compares identity.

        Objects that contain each other are the same if nothing else differs.
        """
        pair = id(lhs), id(rhs)
        if pair in self._opening:
            return
        lhs_parts, rhs_parts = contents(lhs), contents(rhs)
        if lhs_parts is None or rhs_parts is None or len(lhs_parts) != len(rhs_parts):
            raise Parted(part, lhs, rhs)
        self._opening.add(pair)
        try:
            self.compare(part, lhs_parts, rhs_parts)
        finally:
            self._opening.discard(pair)


def plainly_equal(lhs: object, rhs: object) -> bool:
    """Return whether two values are identical, or equal integers, strings or tuples of such."""
    if lhs is rhs:
        return True
    kind = type(lhs)
    if kind is not type(rhs):
        return False
    if kind in (int, str):
        return lhs == rhs
    if kind is tuple and isinstance(lhs, tuple) and isinstance(rhs, tuple):
        return len(lhs) == len(rhs) and all(map(plainly_equal, lhs, rhs))
    return False


def _without_vacuous_sharding(value: object) -> object:
    """Return a parameter; None for a sharding over a mesh without axes.

    Derivatives leave such shardings behind; they place nothing and compile to nothing.
    """
    match value:
        case jax.sharding.NamedSharding(memory_kind=None | "device") if not value.mesh.axis_names:
            return None
        case _:
            return value


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def package(cls: type) -> str:
    return str(cls.__module__).partition(".")[0]


def is_of_jax(value: object) -> bool:
    return package(type(value)) in ("jax", "jaxlib")


def _is_trusted(value: object) -> bool:
    """Return whether the `==` of a value can be trusted.

    Trusted are objects of Python, NumPy and JAX, and those that compare by identity.
    """
    cls = type(value)
    if issubclass(cls, enum.Enum) or getattr(cls, "__eq__", None) is _BY_IDENTITY:
        return True
    wraps = isinstance(value, functools.partial) or is_wrapper(value)
    return package(cls) in TRUSTED and not wraps


def _equal_of_jax(lhs: object, rhs: object) -> bool:
    """Return whether JAX or NumPy objects of two types are equal, as dtypes and layouts may be."""
    kinds = (*_NUMBERS, str, tuple, list, dict, set, frozenset)
    if isinstance(lhs, kinds) and isinstance(rhs, kinds):
        return False
    return _is_trusted(lhs) and _is_trusted(rhs) and _plain_equal(lhs, rhs)


def _key(value: object) -> Hashable:
    """Return a key that is equal for dictionary keys and members of sets that are the same.

    `0.0` and `-0.0`, `1` and `True` are different.
    """
    if isinstance(value, _NUMBERS):
        return (type(value), np.asarray(value).dtype.str, np.asarray(value).tobytes())
    if isinstance(value, tuple):
        return (type(value), *map(_key, value))
    if isinstance(value, frozenset):
        return (type(value), frozenset(map(_key, value)))
    return (type(value), value if _is_trusted(value) else Identity(value))


def _typed(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"


def _plain_equal(lhs: object, rhs: object) -> bool:
    try:
        return bool(lhs == rhs)
    except (TypeError, ValueError, RuntimeError):
        return False


Token: TypeAlias = Hashable

Tokens: TypeAlias = dict[int, Token]
"""The tokens of variables, by the ids of the variables."""


@dataclass(frozen=True, slots=True)
class Block:
    """Equations with their inputs and outputs; `inputs` pairs variables with their tokens."""

    inputs: Sequence[tuple[Var, Token]]
    equations: Sequence[Equation]
    outputs: Sequence[Atom]


def block_of(program: staging.Program, tokens: Sequence[Token]) -> Block:
    """Return a program as a block: `tokens` are those of its free constants, then its inputs."""
    jaxpr = program.jaxpr
    consts = [
        (var, value_token(value))
        for var, value in zip(jaxpr.constvars, program.consts, strict=False)
        if not staging.is_tracer(value)
    ]
    inputs = list(zip([*free_constants(program), *jaxpr.invars], tokens, strict=True))
    return Block([*consts, *inputs], jaxpr.eqns, jaxpr.outvars)


def free_constants(program: staging.Program) -> list[Var]:
    """Return the constants of a jaxpr that came without values.

    Primitives of other packages keep such constants and pass the values as operands. From JAX 0.12
    on, the tracers that stood for them in a finished trace are still there.
    """
    flags = itertools.chain(map(staging.is_tracer, program.consts), itertools.repeat(True))
    return [var for var, free in zip(program.jaxpr.constvars, flags, strict=False) if free]


def value_token(value: object) -> Token:
    """Return a key that is equal for values of equal bits, shape and dtype.

    A scalar has the same key as a literal, a NumPy and a JAX array; weak types do not count.
    """
    if isinstance(value, np.ndarray):
        return _array_token(np.asarray(value))
    dtype = getattr(value, "dtype", None)
    if avals.is_subtype(dtype, jax.dtypes.prng_key):
        return (str(dtype), value_token(jax.random.key_data(cast(jax.Array, value))))
    if staging.is_ref(value):
        return ("ref", id(value))
    if not hasattr(value, "dtype"):
        try:
            value = np.asarray(value, jax.dtypes.result_type(value))
        except TypeError:
            return ("object", id(value))
    return _array_token(np.asarray(value))


def _array_token(array: np.ndarray) -> Token:
    return (_dtype_name(array.dtype), array.shape, array.tobytes())


_dtype_name = functools.lru_cache(str)
"""Returns the name of a dtype, which NumPy composes each time."""


@functools.lru_cache
def _is_extended(dtype: object) -> bool:
    return avals.is_subtype(dtype, jax.dtypes.extended)


def literal_token(literal: Literal) -> Token:
    dtype = getattr(literal.aval, "dtype", None)
    if dtype is None or _is_extended(dtype):
        return value_token(literal.val)
    array = np.asarray(literal.val)
    return _array_token(array if array.dtype == dtype else array.astype(dtype))


def atom_token(atom: Atom, tokens: Tokens) -> Token:
    """Return the token of an atom.

    A value that is no equation's result, because it is unused, is equal to no other.
    """
    if staging.is_literal(atom):
        return literal_token(atom)
    return tokens.get(id(atom), ("unused", id(atom)))


def effect_texts(equation: Equation, tokens: Tokens) -> list[str]:
    """Return the texts of an equation's effects, sorted."""
    return sorted(_effect_text(effect, equation, tokens) for effect in equation.effects)


def _effect_text(effect: object, equation: Equation, tokens: Tokens) -> str:
    """Return the text of an effect, with the token of the operand that it concerns, if any."""
    operand = getattr(effect, "input", getattr(effect, "input_index", None))
    if operand is None:
        return str(effect)
    var = equation.invars[operand] if isinstance(operand, int) else operand
    return f"{type(effect).__name__} on {tokens.get(id(var))}"


def inlined(block: Block) -> Block:
    """Return the equations with the calls of jitted functions inlined."""
    inputs: list[tuple[Var, Token]] = list(block.inputs)
    equations: list[Equation] = []

    def walk(inner_equations: Sequence[Equation], atoms: dict[int, Atom]) -> None:
        for equation in inner_equations:
            invars = staging.substituted(equation.invars, atoms)
            if equation.primitive.name not in ("jit", "pjit"):
                if atoms and (number := staging.folded(equation, invars)) is not None:
                    atoms[id(equation.outvars[0])] = number
                    continue
                if atoms:
                    atoms |= {id(var): staging.new_variable(var.aval) for var in equation.outvars}
                    outvars = [atoms[id(var)] for var in equation.outvars]
                    equation = equation.replace(invars=invars, outvars=outvars)
                equations.append(equation)
                continue
            program = staging.opened(equation.params["jaxpr"])
            consts = [staging.new_variable(var.aval) for var in program.jaxpr.constvars]
            inputs.extend(zip(consts, map(value_token, program.consts), strict=True))
            binders = [*program.jaxpr.constvars, *program.jaxpr.invars]
            inner_atoms = {
                id(var): atom for var, atom in zip(binders, [*consts, *invars], strict=True)
            }
            walk(program.jaxpr.eqns, inner_atoms)
            results = staging.substituted(program.jaxpr.outvars, inner_atoms)
            atoms |= {id(var): atom for var, atom in zip(equation.outvars, results, strict=True)}

    outer_atoms: dict[int, Atom] = {}
    walk(block.equations, outer_atoms)
    return Block(inputs, equations, staging.substituted(block.outputs, outer_atoms))
