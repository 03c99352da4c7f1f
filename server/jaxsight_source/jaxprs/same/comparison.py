"""Compares two programs equation by equation, from the inputs to the results."""

from __future__ import annotations

from collections.abc import Sequence

from jax.extend.core import primitives

from jaxsight_source.compat import control_flow
from jaxsight_source.compat.control_flow import Captures
from jaxsight_source.compat.jaxpr_types import Aval, Equation, Var
from jaxsight_source.compat.staging import Program, opened, variable
from jaxsight_source.jaxprs.base import room_for_nesting
from jaxsight_source.jaxprs.same.difference import (
    Difference,
    Parted,
    difference_of,
    require,
    require_same,
    step,
)
from jaxsight_source.jaxprs.same.liveness import all_operands, live, used_inside, used_operands
from jaxsight_source.jaxprs.same.parameters import ParameterComparison, RuleComparison
from jaxsight_source.jaxprs.same.values import (
    Block,
    Token,
    Tokens,
    ValueComparison,
    atom_token,
    block_of,
    effect_texts,
    free_constants,
    inlined,
)


def same_jaxpr(
    left: object,
    right: object,
    *,
    through_jits: bool = False,
    orders: int | None = None,
    sums: bool = False,
) -> Difference | None:
    """Return None if two jaxprs are the same program, or else their first difference.

    The jaxprs are results of `jax.make_jaxpr`.

    >>> print(same_jaxpr(jax.make_jaxpr(jnp.sin)(1.0), jax.make_jaxpr(jnp.cos)(1.0)))
    equation 0: primitive: sin against cos

    Args:
        through_jits: compare jitted functions as if they were inlined.
        orders: compare the rules of custom derivatives up to this order only. By default, rules of
            more than three orders that are not the same functions are a difference.
        sums: compare sums of cotangents (`add_any`) as additions; see `_are_sums`.
    """
    with room_for_nesting():
        return Comparison(through_jits, orders, sums).programs(opened(left), opened(right))


class Comparison:
    """Compares programs, and remembers the inner programs that are the same."""

    def __init__(
        self, through_jits: bool = False, orders: int | None = None, sums: bool = False
    ) -> None:
        self._through_jits = through_jits
        self._sums = sums
        self._read_by = all_operands if through_jits else used_operands
        """A call reads all of its operands, its inlined equations may not: to compare through
        calls, loops are treated like calls.
        """
        self._values = ValueComparison(self._closed)
        self._rules = RuleComparison(self._values, self._rule_programs, orders)
        self._parameters = ParameterComparison(self._values, self._rules, self._inner)
        self._next = 0
        self._same: dict[tuple[int, int], tuple[Program, Program, int]] = {}
        """Programs that are the same, with the order of the rules up to which they were compared,
        by the ids of their jaxprs."""
        self._around: list[tuple[Tokens, Tokens]] = []
        """The tokens of the variables of the enclosing programs, on both sides."""
        self._captures = 0
        """How often a rule captured a value of these programs."""

    def programs(self, lhs: Program, rhs: Program) -> Difference | None:
        return difference_of(self._closed, lhs, rhs)

    def blocks(self, lhs: Block, rhs: Block) -> Difference | None:
        return difference_of(self._blocks, lhs, rhs)

    def values(self, lhs: object, rhs: object) -> bool:
        """Return whether two parameters are the same."""
        return difference_of(self._values.compare, "value", lhs, rhs) is None

    def fresh(self) -> Token:
        self._next += 1
        return self._next

    def _closed(self, lhs: Program, rhs: Program) -> None:
        key = (id(lhs.jaxpr), id(rhs.jaxpr))
        compared = self._same.get(key)
        if (
            compared is not None
            and compared[2] <= self._rules.order
            and _identical(compared[0].consts, lhs.consts)
            and _identical(compared[1].consts, rhs.consts)
        ):
            return
        tokens = self._binders(
            [*free_constants(lhs), *lhs.jaxpr.invars], [*free_constants(rhs), *rhs.jaxpr.invars]
        )
        captures = self._captures
        self._blocks(block_of(lhs, tokens), block_of(rhs, tokens))
        if captures == self._captures:
            self._same[key] = (lhs, rhs, self._rules.order)

    def _binders(self, lhs: Sequence[Var], rhs: Sequence[Var]) -> list[Token]:
        require_same("number of inputs", len(lhs), len(rhs))
        for index, (first, second) in enumerate(zip(lhs, rhs, strict=True)):
            _same_aval(f"input {index}", first.aval, second.aval)
        return [self.fresh() for _ in lhs]

    def _blocks(self, lhs: Block, rhs: Block) -> None:
        if self._through_jits:
            lhs, rhs = inlined(lhs), inlined(rhs)
        lhs_tokens: Tokens = {id(var): token for var, token in lhs.inputs}
        rhs_tokens: Tokens = {id(var): token for var, token in rhs.inputs}
        self._around.append((lhs_tokens, rhs_tokens))
        try:
            lhs_equations = live(lhs.outputs, lhs.equations, self._read_by)
            rhs_equations = live(rhs.outputs, rhs.equations, self._read_by)
            for index, (equation, counterpart) in enumerate(
                zip(lhs_equations, rhs_equations, strict=False)
            ):
                with step(str(index)):
                    self._equations(equation, counterpart, lhs_tokens, rhs_tokens)
            _same_number(lhs_equations, rhs_equations)
            require_same("number of results", len(lhs.outputs), len(rhs.outputs))
            for index, (first, second) in enumerate(zip(lhs.outputs, rhs.outputs, strict=True)):
                _same_aval(f"result {index}", first.aval, second.aval)
                same = atom_token(first, lhs_tokens) == atom_token(second, rhs_tokens)
                require(same, f"result {index}", first, second)
        finally:
            self._around.pop()

    def _equations(
        self, lhs: Equation, rhs: Equation, lhs_tokens: Tokens, rhs_tokens: Tokens
    ) -> None:
        name = lhs.primitive.name
        same = lhs.primitive is rhs.primitive or (self._sums and _are_sums(lhs, rhs))
        require(same, "primitive", name, rhs.primitive.name)
        require_same("number of results", len(lhs.outvars), len(rhs.outvars))
        operands = _operand_tokens(lhs, lhs_tokens), _operand_tokens(rhs, rhs_tokens)
        self._applications(lhs, rhs, *operands)
        for first, second in zip(lhs.outvars, rhs.outvars, strict=True):
            if first.aval is not second.aval:
                _same_aval(f"result of {name}", first.aval, second.aval)
            lhs_tokens[id(first)] = rhs_tokens[id(second)] = self.fresh()
        has_effects = lhs.effects or rhs.effects
        if has_effects and effect_texts(lhs, lhs_tokens) != effect_texts(rhs, rhs_tokens):
            raise Parted("effects", lhs.effects, rhs.effects)
        if lhs.ctx is not rhs.ctx and lhs.ctx != rhs.ctx and str(lhs.ctx) != str(rhs.ctx):
            raise Parted("context", lhs.ctx, rhs.ctx)

    def _applications(
        self, lhs: Equation, rhs: Equation, lhs_operands: list[Token], rhs_operands: list[Token]
    ) -> None:
        """Compare the operands and the parameters of two equations of one primitive."""
        name = lhs.primitive.name
        first = control_flow.captures(lhs, lhs_operands)
        second = control_flow.captures(rhs, rhs_operands)
        if first is None or second is None:
            require(lhs_operands == rhs_operands, f"operands of {name}", lhs.invars, rhs.invars)
        else:
            require(first[1] == second[1], f"operands of {name}", lhs.invars, rhs.invars)
            if name == "scan":
                scans = control_flow.scan(lhs.params), control_flow.scan(rhs.params)
                for field in ("carry", "length", "reverse", "unroll", "split_transpose"):
                    require_same(f"scan's {field}", *(getattr(scan, field) for scan in scans))
            self._functions(name, first, second)
        if name not in ("scan", "while"):
            self._parameters.compare(lhs.primitive, lhs.params, rhs.params)

    def _functions(self, name: str, lhs: Captures[Token], rhs: Captures[Token]) -> None:
        """Compare the functions of two equations, which may capture values, in any order."""
        for (part, first, lhs_captured), (_, second, rhs_captured) in zip(
            lhs[0], rhs[0], strict=True
        ):
            if first is None or second is None:
                if first is not second:
                    raise Parted(f"{part} of {name}", first and part, second and part)
            elif lhs_captured or rhs_captured:
                tokens = self._binders(
                    first.jaxpr.invars[len(lhs_captured) :],
                    second.jaxpr.invars[len(rhs_captured) :],
                )
                with step(part):
                    self._blocks(
                        block_of(first, [*lhs_captured, *tokens]),
                        block_of(second, [*rhs_captured, *tokens]),
                    )
            else:
                self._inner(part, first, second)

    def _rule_programs(self, name: str, lhs: Program, rhs: Program) -> None:
        """Compare two rules, which may capture values of the enclosing programs."""
        lhs_outer, rhs_outer = (
            self._outer(program, side) for side, program in enumerate((lhs, rhs))
        )
        if not lhs_outer and not rhs_outer:
            self._inner(name, lhs, rhs)
            return
        tokens = self._binders(lhs.jaxpr.invars, rhs.jaxpr.invars)
        blocks = block_of(lhs, [*lhs_outer, *tokens]), block_of(rhs, [*rhs_outer, *tokens])
        with step(name):
            self._blocks(*blocks)

    def _outer(self, program: Program, side: int) -> list[Token]:
        """Return the tokens of the values of enclosing programs that a rule captures."""
        free = free_constants(program)
        if not free:
            return []
        self._captures += 1
        used = used_inside(program)
        consts = {
            id(var): value
            for var, value in zip(program.jaxpr.constvars, program.consts, strict=False)
        }
        return [self._outside(consts.get(id(var)), side, id(var) in used) for var in free]

    def _outside(self, tracer: object, side: int, is_used: bool) -> Token:
        if not is_used:
            return ("unused", id(tracer))
        key = id(variable(tracer))
        for tokens in reversed(self._around):
            if key in tokens[side]:
                return tokens[side][key]
        raise Parted("rule", "one with values of a finished trace", "another function")

    def _inner(self, name: str, lhs: Program, rhs: Program) -> None:
        with step(name):
            self._closed(lhs, rhs)


_SUMS = primitives.add_p, primitives.add_jaxvals_p


def _are_sums(lhs: Equation, rhs: Equation) -> bool:
    """Return whether two equations add their operands: by `add`, or by `add_any`.

    Differentiation adds cotangents with `add_any` (`ad_util.add_jaxvals`), which no public function
    spells. For operands of one type, as it requires, both primitives are lowered to
    `stablehlo.add` (`add_jaxvals_lowering` in `interpreters/mlir.py`, `add_p` in `lax/lax.py`) and
    hand their cotangent to both operands. Their derivatives differ in one way: where one operand
    has a zero tangent, `add_any` adds that zero (`linear_jvp` in `interpreters/ad.py`) and `add`
    does not (`_add_jvp`), so a tangent of -0.0 becomes 0.0 in the first only. Their types
    are compared as those of any equation.
    """
    return lhs.primitive in _SUMS and rhs.primitive in _SUMS


def _same_number(lhs: Sequence[Equation], rhs: Sequence[Equation]) -> None:
    """Raise `Parted`, with the names of equations that only one side has, if there are any."""
    if len(lhs) == len(rhs):
        return
    shared = min(len(lhs), len(rhs))
    texts = [
        f"{len(side)} ({' '.join(equation.primitive.name for equation in side[shared:][:5])})"
        for side in (lhs, rhs)
    ]
    raise Parted("number of equations", *texts)


def _operand_tokens(equation: Equation, tokens: Tokens) -> list[Token]:
    return [
        tokens[id(atom)] if id(atom) in tokens else atom_token(atom, tokens)
        for atom in equation.invars
    ]


def _same_aval(part: str, lhs: Aval, rhs: Aval) -> None:
    if lhs is rhs or lhs == rhs:
        return
    texts = _aval_text(lhs), _aval_text(rhs)
    if texts[0] == texts[1]:
        texts = f"{texts[0]} {_mesh_text(lhs)}", f"{texts[1]} {_mesh_text(rhs)}"
    raise Parted(f"type of {part}", *texts)


def _mesh_text(aval: Aval) -> str:
    """Return the mesh of a type, with the kinds of its axes."""
    mesh = getattr(getattr(aval, "sharding", None), "mesh", None)
    return f"over {mesh}" if mesh is not None and mesh.axis_names else "over no mesh"


def _aval_text(aval: Aval) -> str:
    weak = " (weak)" if getattr(aval, "weak_type", False) else ""
    short = getattr(aval, "str_short", None)
    return f"{short() if short else aval}{weak}"


def _identical(lhs: Sequence[object], rhs: Sequence[object]) -> bool:
    return len(lhs) == len(rhs) and all(
        value is counterpart for value, counterpart in zip(lhs, rhs, strict=True)
    )
