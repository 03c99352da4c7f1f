"""Comparison of two jaxprs: whether they are the same program, and where they first differ.

The same program may have other names of variables and of inner jits, other dead code, and scalar
literals of another Python or NumPy type, or as constants. A sharding may be absent or over no axes,
and loops, linear solves and functions with custom rules may list the values that they capture in
another order. Everything else must agree: primitives in order, their parameters, operands, abstract
values with weak types, effects, the rules of custom derivatives, and the bits of constants.

Only the `==` of Python's, NumPy's and JAX's own objects is trusted; other objects are compared by
their contents, or count as different.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import numpy as np

from jaxsight.interpreters.compat import parameters as read
from jaxsight.interpreters.compat.staging import (
    Program,
    folded,
    is_jaxpr,
    is_literal,
    is_ref,
    is_tracer,
    opened,
    variable,
)
from jaxsight.interpreters.contents import Identity, contents
from jaxsight.interpreters.depth import room_for_nesting

Token = Hashable
Answer = TypeVar("Answer")

DEEPEST_RULES = 3
"""The depth of nested derivative rules up to which they are traced, compared and written. Rules of
some functions (`odeint`) nest without end, each larger than the one around it."""

_IGNORED: dict[str, frozenset[str]] = {
    "jit": frozenset({"name"}),
    "pjit": frozenset({"name"}),
    "reduce": frozenset({"computation"}),  # the function that became `jaxpr`
    "linear_call": frozenset({"transpose_thunk"}),  # compared as a program
    "custom_vmap_call": frozenset({"rule"}),
    "custom_linear_solve": frozenset({"const_lengths", "jaxprs"}),
    "custom_jvp_call": frozenset({"call_jaxpr", "num_consts", "jvp_jaxpr_fun"}),
    "custom_vjp_call": frozenset(
        {"call_jaxpr", "num_consts", "fwd_jaxpr_thunk", "bwd", "out_trees"}
    ),
    "pallas_call": frozenset({"debug"}),
    "shard_map": frozenset({"debug_info"}),
}
"""Parameters of JAX's own primitives that do not affect the results, or that are compared
separately. No parameter of another package's primitive is ignored: there, `debug` may mean
anything.
"""

_INFORMATION = frozenset({"debug", "debug_info"})
"""Fields of JAX's own dataclasses that do not affect the results."""

_BY_IDENTITY: Any = object.__eq__

_TRUSTED = frozenset({"builtins", "enum", "functools", "jax", "jaxlib", "ml_dtypes", "numpy"})
"""Packages whose `==` is trusted."""

_NUMBERS = (bool, int, float, complex, np.generic)
"""Types of numbers that differ although `==` is true: `0.0` and `-0.0`, `1` and `True`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two programs: the equation's path (`3/body/1`), its part, both sides.

    `left` and `right` are text.
    """

    path: str
    what: str
    left: str
    right: str

    def __str__(self) -> str:
        where = f"equation {self.path}" if self.path else "the program"
        return f"{where}: {self.what}: {self.left} against {self.right}"


def same_jaxpr(
    left: Any, right: Any, *, through_jits: bool = False, orders: int | None = None
) -> Difference | None:
    """Return None if two jaxprs are the same program, or else their first difference.

    The jaxprs are results of `jax.make_jaxpr`.

    Args:
        through_jits: compare jitted functions as if they were inlined.
        orders: compare the rules of custom derivatives up to this order only. By default, rules of
            more than three orders that are not the same functions are a difference.
    """
    with room_for_nesting():
        return Comparison(through_jits, orders).programs(opened(left), opened(right))


def all_operands(equation: Any) -> Sequence[Any]:
    operands: Sequence[Any] = equation.invars
    return operands


def live(
    program_outputs: Iterable[Any],
    equations: Sequence[Any],
    read_by: Callable[[Any], Sequence[Any]] = all_operands,
) -> list[Any]:
    """Return the equations on which results depend, or that have effects, in order.

    Args:
        read_by: returns the operands on which an equation depends.
    """
    return _live(program_outputs, equations, read_by)[0]


def read_by_live(program_outputs: Iterable[Any], equations: Sequence[Any]) -> set[int]:
    """Return the ids of the atoms that the results and the `live` equations read."""
    return _live(program_outputs, equations, all_operands)[1]


def needed_by(program: Program) -> list[Any]:
    """Return the variables of a program that are read for its results or effects.

    Captured variables count only if the functions that capture them read them.
    """
    jaxpr = program.jaxpr
    kept = live(jaxpr.outvars, jaxpr.eqns, _read_by)
    atoms = itertools.chain(jaxpr.outvars, *map(_read_by, kept))
    return [atom for atom in atoms if not is_literal(atom)]


def _live(
    program_outputs: Iterable[Any],
    equations: Sequence[Any],
    read_by: Callable[[Any], Sequence[Any]],
) -> tuple[list[Any], set[int]]:
    """Return the `live` equations, and the ids of all atoms that they and the results read."""
    needed = set(map(id, program_outputs))  # literals too, which are no equation's result
    kept = []
    for equation in reversed(equations):
        if equation.effects or not needed.isdisjoint(map(id, equation.outvars)):
            kept.append(equation)
            needed.update(map(id, read_by(equation)))
    kept.reverse()
    return kept, needed


def _read_by(equation: Any) -> Sequence[Any]:
    """Return the operands of an equation, except captured values that are not used.

    Loops, linear solves and functions with custom rules capture values.
    """
    params, invars = equation.params, equation.invars
    match equation.primitive.name:
        case "scan":
            found = read.scan(params)
            return [*_used(found.body, invars[: found.consts]), *invars[found.consts :]]
        case "while":
            conds = params["cond_nconsts"]
            consts = conds + params["body_nconsts"]
            for_cond = _used(opened(params["cond_jaxpr"]), invars[:conds])
            for_body = _used(opened(params["body_jaxpr"]), invars[conds:consts])
            return [*for_cond, *for_body, *invars[consts:]]
        case "custom_linear_solve":
            split = list(read.solves(params, invars))
            solved = [_used(program, operands) for program, operands in split if program]
            held = sum(len(operands) for _, operands in split)
            return [*itertools.chain.from_iterable(solved), *invars[held:]]
        case "custom_jvp_call" | "custom_vjp_call":
            captured = params["num_consts"]
            inside = opened(params["call_jaxpr"])
            return [*_used(inside, invars[:captured]), *invars[captured:]]
        case _:
            return all_operands(equation)


def _used(program: Program, captured: Sequence[Any]) -> list[Any]:
    """Return the captured operands that a program reads; they are its first inputs."""
    if not captured:
        return []
    jaxpr = program.jaxpr
    # Runs once for each inner loop: loops may be nested a hundred deep.
    _, inside = _live(jaxpr.outvars, jaxpr.eqns, _read_by)
    return [a for a, var in zip(captured, jaxpr.invars, strict=False) if id(var) in inside]


@dataclass(frozen=True, slots=True)
class Block:
    """Equations with their inputs and outputs; `inputs` pairs variables with their tokens."""

    inputs: Sequence[tuple[Any, Token]]
    equations: Sequence[Any]
    outputs: Sequence[Any]


@dataclass(eq=False, slots=True)
class _Variable:
    """A variable of a jitted function in one of its calls."""

    aval: Any


def unjitted(block: Block) -> Block:
    """Return the equations with the calls of jitted functions inlined."""
    inputs, equations = list(block.inputs), []

    def walk(inside: Sequence[Any], known: dict[int, Any]) -> None:
        for equation in inside:
            invars = [_known(atom, known) for atom in equation.invars]
            if equation.primitive.name not in ("jit", "pjit"):
                if known and (number := folded(equation, invars)) is not None:
                    known[id(equation.outvars[0])] = number
                    continue
                if known:
                    known |= {id(var): _Variable(var.aval) for var in equation.outvars}
                    outvars = [known[id(var)] for var in equation.outvars]
                    equation = equation.replace(invars=invars, outvars=outvars)
                equations.append(equation)
                continue
            program = opened(equation.params["jaxpr"])
            held = [_Variable(var.aval) for var in program.jaxpr.constvars]
            inputs.extend(zip(held, map(value_token, program.consts), strict=True))
            binders = [*program.jaxpr.constvars, *program.jaxpr.invars]
            own = {id(var): atom for var, atom in zip(binders, [*held, *invars], strict=True)}
            walk(program.jaxpr.eqns, own)
            results = [_known(atom, own) for atom in program.jaxpr.outvars]
            known |= {id(var): atom for var, atom in zip(equation.outvars, results, strict=True)}

    outer: dict[int, Any] = {}
    walk(block.equations, outer)
    return Block(inputs, equations, [_known(atom, outer) for atom in block.outputs])


def _known(atom: Any, known: dict[int, Any]) -> Any:
    return atom if is_literal(atom) else known.get(id(atom), atom)


class Parted(Exception):
    """Two programs differ: ends a comparison."""

    def __init__(self, what: str, left: Any, right: Any) -> None:
        super().__init__(what)
        self.what = what
        self.left = left
        self.right = right
        self.path: list[str] = []


def value_token(value: Any) -> Token:
    """Return a key that is equal for values of equal bits, shape and dtype.

    A scalar has the same key as a literal, a NumPy and a JAX array; weak types do not count.
    """
    if read.is_subtype(getattr(value, "dtype", None), jax.dtypes.prng_key):
        return (str(value.dtype), value_token(jax.random.key_data(value)))
    if is_ref(value):
        return ("ref", id(value))
    if not hasattr(value, "dtype"):
        try:
            value = np.asarray(value, jax.dtypes.result_type(value))
        except TypeError:
            return ("object", id(value))
    found = np.asarray(value)
    return (str(found.dtype), found.shape, found.tobytes())


def _literal_token(atom: Any) -> Token:
    dtype = getattr(atom.aval, "dtype", None)
    if dtype is None or read.is_subtype(dtype, jax.dtypes.extended):
        return value_token(atom.val)
    found = np.asarray(atom.val).astype(dtype)
    return (str(found.dtype), found.shape, found.tobytes())


class Comparison:
    """Compares programs, and remembers the inner programs that are the same."""

    def __init__(self, through_jits: bool = False, orders: int | None = None) -> None:
        self._through_jits = through_jits
        self._orders = orders
        self._read_by = all_operands if through_jits else _read_by
        """A call reads all of its operands, its inlined equations may not: to compare through
        calls, loops are treated like calls.
        """
        self._next = 0
        self._order = 0
        """How many derivative rules are around: the more there are, the less deeply programs
        are compared.
        """
        self._known: dict[tuple[int, int], tuple[Program, Program, int]] = {}
        self._assumed: dict[tuple[Token, Token, tuple[Any, ...]], int] = {}
        self._opening: set[tuple[int, int]] = set()
        """Pairs of ids of the objects whose contents are being compared."""
        self._around: list[tuple[dict[int, Token], dict[int, Token]]] = []
        """The tokens of the variables of the enclosing programs, on both sides."""
        self._held = 0
        """How often a rule captured a value of these programs."""

    def programs(self, left: Program, right: Program) -> Difference | None:
        if _same_at_once(left, right):
            return None
        try:
            self._closed(left, right)
        except Parted as parted:
            return Difference(
                "/".join(reversed(parted.path)), parted.what, str(parted.left), str(parted.right)
            )
        return None

    def blocks(self, left: Block, right: Block) -> Difference | None:
        try:
            self._blocks(left, right)
        except Parted as parted:
            return Difference(
                "/".join(reversed(parted.path)), parted.what, str(parted.left), str(parted.right)
            )
        return None

    def values(self, left: Any, right: Any) -> bool:
        """Return whether two parameters are the same."""
        try:
            self._values("value", left, right)
        except Parted:
            return False
        return True

    def fresh(self) -> Token:
        self._next += 1
        return self._next

    def _closed(self, left: Program, right: Program) -> None:
        key = (id(left.jaxpr), id(right.jaxpr))
        known = self._known.get(key)
        if (
            known is not None
            and known[2] <= self._order
            and _same_objects(known[0].consts, left.consts)
            and _same_objects(known[1].consts, right.consts)
        ):
            return
        tokens = self._binders(
            [*_free(left), *left.jaxpr.invars], [*_free(right), *right.jaxpr.invars]
        )
        held = self._held
        self._blocks(_block(left, tokens), _block(right, tokens))
        if held == self._held:
            self._known[key] = (left, right, self._order)

    def _binders(self, left: Sequence[Any], right: Sequence[Any]) -> list[Token]:
        if len(left) != len(right):
            raise Parted("number of inputs", len(left), len(right))
        for index, (first, second) in enumerate(zip(left, right, strict=True)):
            _same_aval(f"input {index}", first.aval, second.aval)
        return [self.fresh() for _ in left]

    def _blocks(self, left: Block, right: Block) -> None:
        if self._through_jits:
            left, right = unjitted(left), unjitted(right)
        first: dict[int, Token] = {id(var): token for var, token in left.inputs}
        second: dict[int, Token] = {id(var): token for var, token in right.inputs}
        self._around.append((first, second))
        try:
            self._insides(left, right, first, second)
        finally:
            self._around.pop()

    def _insides(
        self, left: Block, right: Block, first: dict[int, Token], second: dict[int, Token]
    ) -> None:
        ours = live(left.outputs, left.equations, self._read_by)
        theirs = live(right.outputs, right.equations, self._read_by)
        for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            try:
                self._equations(one, other, first, second)
            except Parted as parted:
                parted.path.append(str(index))
                raise
        if len(ours) != len(theirs):
            names = [
                " ".join(e.primitive.name for e in side[min(len(ours), len(theirs)) :][:5])
                for side in (ours, theirs)
            ]
            raise Parted(
                "number of equations", f"{len(ours)} ({names[0]})", f"{len(theirs)} ({names[1]})"
            )
        if len(left.outputs) != len(right.outputs):
            raise Parted("number of results", len(left.outputs), len(right.outputs))
        for index, (one, other) in enumerate(zip(left.outputs, right.outputs, strict=True)):
            _same_aval(f"result {index}", one.aval, other.aval)
            if _read(one, first) != _read(other, second):
                raise Parted(f"result {index}", one, other)

    def _equations(
        self, left: Any, right: Any, first: dict[int, Token], second: dict[int, Token]
    ) -> None:
        if left.primitive is not right.primitive:
            raise Parted("primitive", left.primitive.name, right.primitive.name)
        if len(left.outvars) != len(right.outvars):
            raise Parted("number of results", len(left.outvars), len(right.outvars))
        ours = [_read(atom, first) for atom in left.invars]
        theirs = [_read(atom, second) for atom in right.invars]
        match left.primitive.name:
            case "scan":
                self._scans(left, right, ours, theirs)
            case "while":
                self._whiles(left, right, ours, theirs)
            case "custom_jvp_call" | "custom_vjp_call":
                self._customs(left, right, ours, theirs)
            case "custom_linear_solve":
                self._solves(left, right, ours, theirs)
            case name:
                if ours != theirs:
                    raise Parted(f"operands of {name}", left.invars, right.invars)
                self._parameters(left, right)
        for one, other in zip(left.outvars, right.outvars, strict=True):
            _same_aval(f"result of {left.primitive.name}", one.aval, other.aval)
            first[id(one)] = second[id(other)] = self.fresh()
        if _effects(left, first) != _effects(right, second):
            raise Parted("effects", left.effects, right.effects)
        if left.ctx != right.ctx and str(left.ctx) != str(right.ctx):
            raise Parted("context", left.ctx, right.ctx)

    def _captured(
        self,
        name: str,
        left: Program,
        right: Program,
        ours: Sequence[Token],
        theirs: Sequence[Token],
    ) -> None:
        """Compare two bodies, whose first inputs are captured values, in any order."""
        tokens = self._binders(left.jaxpr.invars[len(ours) :], right.jaxpr.invars[len(theirs) :])
        try:
            self._blocks(_block(left, [*ours, *tokens]), _block(right, [*theirs, *tokens]))
        except Parted as parted:
            parted.path.append(name)
            raise

    def _scans(self, left: Any, right: Any, ours: Sequence[Token], theirs: Sequence[Token]) -> None:
        one, other = read.scan(left.params), read.scan(right.params)
        if ours[one.consts :] != theirs[other.consts :]:
            raise Parted("operands of scan", left.invars, right.invars)
        for field in ("carry", "length", "reverse", "unroll", "split_transpose"):
            if getattr(one, field) != getattr(other, field):
                raise Parted(f"scan's {field}", getattr(one, field), getattr(other, field))
        self._captured("body", one.body, other.body, ours[: one.consts], theirs[: other.consts])

    def _whiles(
        self, left: Any, right: Any, ours: Sequence[Token], theirs: Sequence[Token]
    ) -> None:
        splits = []
        for equation, tokens in ((left, ours), (right, theirs)):
            conds = equation.params["cond_nconsts"]
            consts = conds + equation.params["body_nconsts"]
            splits.append((tokens[:conds], tokens[conds:consts], tokens[consts:]))
        (cond1, body1, init1), (cond2, body2, init2) = splits
        if init1 != init2:
            raise Parted("operands of while", left.invars, right.invars)
        for name, one, other in (("cond", cond1, cond2), ("body", body1, body2)):
            key = f"{name}_jaxpr"
            self._captured(name, opened(left.params[key]), opened(right.params[key]), one, other)

    def _solves(
        self, left: Any, right: Any, ours: Sequence[Token], theirs: Sequence[Token]
    ) -> None:
        """Compare linear solves, whose functions capture values (`lax.custom_linear_solve`)."""
        first = list(read.solves(left.params, ours))
        second = list(read.solves(right.params, theirs))
        vectors = [
            tokens[sum(len(held) for _, held in parts) :]
            for tokens, parts in ((ours, first), (theirs, second))
        ]
        if vectors[0] != vectors[1]:
            raise Parted("operands of custom_linear_solve", left.invars, right.invars)
        for name, (one, held), (other, others) in zip(read.SOLVES, first, second, strict=True):
            if one is not None and other is not None:
                self._captured(name, one, other, held, others)
            elif one is not other:
                raise Parted(f"{name} of custom_linear_solve", one and name, other and name)
        self._parameters(left, right)

    def _customs(
        self, left: Any, right: Any, ours: Sequence[Token], theirs: Sequence[Token]
    ) -> None:
        first, second = left.params["num_consts"], right.params["num_consts"]
        if ours[first:] != theirs[second:]:
            raise Parted(f"operands of {left.primitive.name}", left.invars, right.invars)
        one, other = (opened(side.params["call_jaxpr"]) for side in (left, right))
        if first or second:
            self._captured("body", one, other, ours[:first], theirs[:second])
        else:
            self._inner("body", one, other)
        self._parameters(left, right)

    def _parameters(self, left: Any, right: Any) -> None:
        name = left.primitive.name
        one, other = left.params, right.params
        skipped = _IGNORED.get(name, frozenset()) if _is_of_jax(left.primitive) else frozenset()
        if name == "ffi_call" and _attribute_types(one) != _attribute_types(other):
            raise Parted("attributes of ffi_call", _attribute_types(one), _attribute_types(other))
        if name == "linear_call":
            ours, theirs = (opened(side["transpose_thunk"]()[0]) for side in (one, other))
            self._inner("transpose", ours, theirs)
        if name == "custom_vmap_call" and not _sequential(one["rule"], other["rule"]):
            self._values("rule of custom_vmap_call", one["rule"].rule, other["rule"].rule)
        if one.keys() != other.keys():
            raise Parted(f"parameters of {name}", sorted(one), sorted(other))
        for key in one:
            if key not in skipped:
                try:
                    self._values(f"{key} of {name}", one[key], other[key])
                except Parted as parted:
                    if parted.path:
                        parted.path.append(_step(key))
                    raise
        if name in ("custom_jvp_call", "custom_vjp_call"):
            self._rules(name, one, other)

    def _rules(self, name: str, one: dict[str, Any], other: dict[str, Any]) -> None:
        """Compare the derivative rules of two functions.

        Rules may call their own function, so a pair that is being compared counts as the same until
        a difference is found.
        """
        if read.same_rule(one, other) or self._same_functions(one, other):
            return
        inputs = opened(one["call_jaxpr"]).jaxpr.invars[one["num_consts"] :]
        types = tuple(var.aval for var in inputs)
        pair = (read.rule_identity(one), read.rule_identity(other), types)
        assumed = self._assumed.get(pair)
        if assumed is not None and assumed <= self._order:
            return
        if self._orders is not None and self._order >= self._orders:
            return
        if self._order >= DEEPEST_RULES:
            raise Parted("rule", f"one of order {self._order + 1}", "another function")
        self._assumed[pair] = self._order
        self._order += 1
        try:
            if name == "custom_jvp_call":
                self._jvp_rules(one, other)
            else:
                self._vjp_rules(one, other)
        finally:
            self._order -= 1

    def _same_functions(self, one: dict[str, Any], other: dict[str, Any]) -> bool:
        """Return whether two rules are the same functions of the user's, with equal arguments."""
        try:
            self._values("rule", read.rules_key(one), read.rules_key(other))
        except Parted:
            return False
        return True

    def _jvp_rules(self, one: dict[str, Any], other: dict[str, Any]) -> None:
        patterns = read.absences(one)
        if patterns is None:
            raise Parted("jvp rule", "one for many symbolic zeros", "another function")
        for absent in patterns:
            ours, theirs = (_asked(read.jvp_rule, params, absent) for params in (one, other))
            if isinstance(ours, str) or isinstance(theirs, str):
                if ours != theirs:
                    raise Parted(f"jvp rule for zeros {absent}", _outcome(ours), _outcome(theirs))
                continue
            if ours.zeros != theirs.zeros:
                raise Parted("symbolic zeros of the jvp rule", ours.zeros, theirs.zeros)
            self._rule("jvp", ours.program, theirs.program)

    def _vjp_rules(self, one: dict[str, Any], other: dict[str, Any]) -> None:
        patterns = read.perturbations(one)
        if patterns is None:
            raise Parted("vjp rule", "one for many symbolic zeros", "another function")
        for perturbed, absent in patterns:
            ours, theirs = (
                _asked(read.vjp_rules, params, perturbed, absent) for params in (one, other)
            )
            if isinstance(ours, str) or isinstance(theirs, str):
                if ours != theirs:
                    raise Parted("vjp rule", _outcome(ours), _outcome(theirs))
                continue
            self._rule("fwd", ours.forward, theirs.forward)
            if ours.forwarded != theirs.forwarded:
                raise Parted("residuals of the vjp rule", ours.forwarded, theirs.forwarded)
            if ours.zeros != theirs.zeros:
                raise Parted("symbolic zeros of the vjp rule", ours.zeros, theirs.zeros)
            self._rule("bwd", ours.backward, theirs.backward)

    def _rule(self, name: str, left: Program, right: Program) -> None:
        """Compare two rules, which may capture values of the enclosing programs."""
        sides = [self._outer(program, side) for side, program in enumerate((left, right))]
        if not any(sides):
            self._inner(name, left, right)
            return
        tokens = self._binders(left.jaxpr.invars, right.jaxpr.invars)
        ours, theirs = (
            _block(program, [*outer, *tokens])
            for program, outer in zip((left, right), sides, strict=True)
        )
        try:
            self._blocks(ours, theirs)
        except Parted as parted:
            parted.path.append(name)
            raise

    def _outer(self, program: Program, side: int) -> list[Token]:
        """Return the tokens of the values of enclosing programs that a rule captures."""
        free = _free(program)
        if not free:
            return []
        self._held += 1
        _, used = _live(program.jaxpr.outvars, program.jaxpr.eqns, _read_by)
        held = {
            id(var): value
            for var, value in zip(program.jaxpr.constvars, program.consts, strict=False)
        }
        return [self._outside(held.get(id(var)), side, id(var) in used) for var in free]

    def _outside(self, tracer: Any, side: int, is_used: bool) -> Token:
        if not is_used:
            return ("unused", id(tracer))
        key = id(variable(tracer))
        for tokens in reversed(self._around):
            if key in tokens[side]:
                return tokens[side][key]
        raise Parted("rule", "one with values of a finished trace", "another function")

    def _inner(self, name: str, left: Program, right: Program) -> None:
        try:
            self._closed(left, right)
        except Parted as parted:
            parted.path.append(name)
            raise

    def _values(self, what: str, left: Any, right: Any) -> None:
        """Compare two parameters of any type."""
        left, right = _said(left), _said(right)
        if left is right:
            return
        if is_jaxpr(left) and is_jaxpr(right):
            self._closed(opened(left), opened(right))
            return
        if type(left) is not type(right):
            # A size may be Python's or NumPy's integer.
            if (_whole(left) and _whole(right) and left == right) or _equal_of_jax(left, right):
                return
            raise Parted(what, _typed(left), _typed(right))
        if is_tracer(left):
            raise Parted(what, left, right)
        if isinstance(left, (np.ndarray, jax.Array)):
            if value_token(left) != value_token(right):
                raise Parted(what, left, right)
            return
        if isinstance(left, (tuple, list)):
            if len(left) != len(right):
                raise Parted(what, left, right)
            for index, (one, other) in enumerate(zip(left, right, strict=True)):
                try:
                    self._values(what, one, other)
                except Parted as parted:
                    if parted.path:
                        parted.path.append(str(index))
                    raise
            if not _is_plain(left):  # a user's class, which may have other attributes
                self._contents(what, left, right)
            return
        if isinstance(left, dict):
            ours, theirs = ({_key(key): key for key in side} for side in (left, right))
            if ours.keys() != theirs.keys():
                raise Parted(what, left, right)
            for key, one in ours.items():
                self._values(what, left[one], right[theirs[key]])
            if not _is_plain(left):
                self._contents(what, left, right)
            return
        if isinstance(left, (set, frozenset)):
            if set(map(_key, left)) != set(map(_key, right)):
                raise Parted(what, left, right)
            return
        if isinstance(left, (float, complex, np.generic)):
            if np.asarray(left).tobytes() != np.asarray(right).tobytes():
                raise Parted(what, left, right)
            return
        if isinstance(left, jax.tree_util.PyTreeDef):  # its `==` calls that of the user's classes
            self._contents(what, left, right)
            return
        if isinstance(left, jax.lax.Tolerance):
            self._values(what, vars(left), vars(right))
            return
        if dataclasses.is_dataclass(left) and _is_of_jax(left):
            for field in dataclasses.fields(left):
                if field.name not in _INFORMATION:
                    self._values(
                        what, getattr(left, field.name, None), getattr(right, field.name, None)
                    )
            return
        if _is_trusted(left) and _plain_equal(left, right):
            return
        if (held := read.held_by_high(left)) is not None:
            self._values(what, held, read.held_by_high(right))
            return
        if read.is_wrapped_function(left):
            self._values(what, left.f, right.f)
            self._values(what, left.params, right.params)
            return
        self._contents(what, left, right)

    def _contents(self, what: str, left: Any, right: Any) -> None:
        """Compare two objects by their contents if their `==` compares identity.

        Objects that contain each other are the same if nothing else differs.
        """
        pair = id(left), id(right)
        if pair in self._opening:
            return
        ours, theirs = contents(left), contents(right)
        if ours is None or theirs is None or len(ours) != len(theirs):
            raise Parted(what, left, right)
        self._opening.add(pair)
        try:
            self._values(what, ours, theirs)
        finally:
            self._opening.discard(pair)


_EQUAL_IF_SAID = (type(None), bool, int, str, np.dtype)
"""Types whose values are the same if their types are the same and `==` is true."""


def _same_at_once(left: Program, right: Program) -> bool:
    """Return whether two programs are the same equation by equation, as most are.

    Return False for those that need a closer look: with constants, effects, parameters that are not
    plain values, or dead code.
    """
    if left.consts or right.consts or left.jaxpr.constvars or right.jaxpr.constvars:
        return False
    one, other = left.jaxpr, right.jaxpr
    stands_for: dict[int, Any] = {}

    def reads_same(left_atoms: Sequence[Any], right_atoms: Sequence[Any]) -> bool:
        if len(left_atoms) != len(right_atoms):
            return False
        for atom, counterpart in zip(left_atoms, right_atoms, strict=True):
            if stands_for.get(id(atom)) is not counterpart and not _same_literal(atom, counterpart):
                return False
        return True

    def makes_same(left_vars: Sequence[Any], right_vars: Sequence[Any]) -> bool:
        if len(left_vars) != len(right_vars):
            return False
        for var, counterpart in zip(left_vars, right_vars, strict=True):
            if var.aval is not counterpart.aval and var.aval != counterpart.aval:
                return False
            stands_for[id(var)] = counterpart
        return True

    return (
        len(one.eqns) == len(other.eqns)
        and makes_same(one.invars, other.invars)
        and all(
            equation.primitive is counterpart.primitive
            and not equation.effects
            and not counterpart.effects
            and (equation.ctx is counterpart.ctx or equation.ctx == counterpart.ctx)
            and reads_same(equation.invars, counterpart.invars)
            and _same_plainly(equation.params, counterpart.params)
            and makes_same(equation.outvars, counterpart.outvars)
            for equation, counterpart in zip(one.eqns, other.eqns, strict=True)
        )
        and reads_same(one.outvars, other.outvars)
    )


def _same_literal(left: Any, right: Any) -> bool:
    if not (is_literal(left) and is_literal(right)) or left.aval != right.aval:
        return False
    return _literal_token(left) == _literal_token(right)


def _same_plainly(left: Any, right: Any) -> bool:
    """Return whether two parameters are identical, or equal and of a type with a trusted `==`."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is tuple:
        return len(left) == len(right) and all(map(_same_plainly, left, right))
    if kind is dict:
        return left.keys() == right.keys() and all(
            _same_plainly(value, right[key]) for key, value in left.items()
        )
    if is_jaxpr(left):
        return _same_at_once(opened(left), opened(right))
    return issubclass(kind, _EQUAL_IF_SAID) and _package(kind) in _TRUSTED and bool(left == right)


def _outcome(rule: Any) -> str:
    return rule if isinstance(rule, str) else "a rule"


def _asked(rule: Callable[..., Answer], *asked: Any) -> Answer | str:
    """Return a rule as a program, or `"refused"` if it raises, whatever the error."""
    try:
        return rule(*asked)
    except read.Refused:
        return "refused"


def _said(value: Any) -> Any:
    """Return a parameter; None for a sharding over a mesh without axes.

    Derivatives leave such shardings behind; they place nothing and compile to nothing.
    """
    vacuous = isinstance(value, jax.sharding.NamedSharding) and not value.mesh.axis_names
    return None if vacuous and value.memory_kind in (None, "device") else value


def _same_objects(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(
        one is other for one, other in zip(left, right, strict=True)
    )


def _step(key: str) -> str:
    return "body" if key in ("jaxpr", "call_jaxpr", "body_jaxpr") else key.removesuffix("_jaxpr")


def _attribute_types(params: dict[str, Any]) -> list[str]:
    """Return the types of a foreign function's attributes, which select the function."""
    return [f"{name} {type(value).__name__}" for name, value in params.get("attributes") or ()]


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _package(cls: type) -> str:
    return str(cls.__module__).partition(".")[0]


def _is_of_jax(value: Any) -> bool:
    return _package(type(value)) in ("jax", "jaxlib")


def _is_trusted(value: Any) -> bool:
    """Return whether the `==` of a value can be trusted.

    Trusted are objects of Python, NumPy and JAX, and those that compare by identity.
    """
    cls = type(value)
    if issubclass(cls, enum.Enum) or getattr(cls, "__eq__", None) is _BY_IDENTITY:
        return True
    wraps = isinstance(value, functools.partial) or read.is_wrapper(value)
    return _package(cls) in _TRUSTED and not wraps


def _equal_of_jax(left: Any, right: Any) -> bool:
    """Return whether JAX or NumPy objects of two types are equal, as dtypes and layouts may be."""
    kinds = (*_NUMBERS, str, tuple, list, dict, set, frozenset)
    if isinstance(left, kinds) and isinstance(right, kinds):
        return False
    return _is_trusted(left) and _is_trusted(right) and _plain_equal(left, right)


def _is_plain(value: Any) -> bool:
    """Return whether a tuple, list or dictionary has nothing but its items."""
    return not getattr(value, "__dict__", None)


def _key(value: Any) -> Hashable:
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


def _typed(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"


def _plain_equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right)
    except (TypeError, ValueError, RuntimeError):
        return False


def _sequential(*rules: Any) -> bool:
    """Return whether all rules are those of `sequential_vmap`, which follow from the function."""
    return all(
        str(getattr(rule.rule, "__qualname__", "")).startswith("sequential_vmap.") for rule in rules
    )


def _effects(equation: Any, tokens: dict[int, Token]) -> list[str]:
    return sorted(_effect(effect, equation, tokens) for effect in equation.effects)


def _effect(effect: Any, equation: Any, tokens: dict[int, Token]) -> str:
    """Return the text of an effect, with the token of the operand that it concerns, if any."""
    where = getattr(effect, "input", getattr(effect, "input_index", None))
    if where is None:
        return str(effect)
    var = equation.invars[where] if isinstance(where, int) else where
    return f"{type(effect).__name__} on {tokens.get(id(var))}"


def _block(program: Program, tokens: Sequence[Token]) -> Block:
    consts = [
        (var, value_token(value))
        for var, value in zip(program.jaxpr.constvars, program.consts, strict=False)
        if not is_tracer(value)
    ]
    inputs = list(zip([*_free(program), *program.jaxpr.invars], tokens, strict=True))
    return Block([*consts, *inputs], program.jaxpr.eqns, program.jaxpr.outvars)


def _free(program: Program) -> list[Any]:
    """Return the constants of a jaxpr that came without values.

    Primitives of other packages keep such constants and pass the values as operands. From JAX 0.12
    on, the tracers that stood for them in a finished trace are still there.
    """
    held = itertools.chain(map(is_tracer, program.consts), itertools.repeat(True))
    return [var for var, free in zip(program.jaxpr.constvars, held, strict=False) if free]


def _read(atom: Any, tokens: dict[int, Token]) -> Token:
    """Return the token of an atom.

    A value that is no equation's result, because it is unused, is equal to no other.
    """
    if is_literal(atom):
        return _literal_token(atom)
    return tokens.get(id(atom), ("unused", id(atom)))


def _same_aval(what: str, left: Any, right: Any) -> None:
    if left is right or left == right:
        return
    raise Parted(f"type of {what}", _aval(left), _aval(right))


def _aval(aval: Any) -> str:
    weak = " (weak)" if getattr(aval, "weak_type", False) else ""
    short = getattr(aval, "str_short", None)
    return f"{short() if short else aval}{weak}"
