"""Compares two programs equation by equation, from the inputs to the results."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.interpreters.compat import control_flow
from jaxsight.interpreters.compat.jaxpr_types import Aval, Equation, Var
from jaxsight.interpreters.compat.staging import Program, opened, variable
from jaxsight.interpreters.depth import room_for_nesting
from jaxsight.interpreters.same.derivatives import RuleComparison
from jaxsight.interpreters.same.difference import Difference, Parted, require, step
from jaxsight.interpreters.same.inlining import inlined
from jaxsight.interpreters.same.liveness import all_operands, live, used_inside, used_operands
from jaxsight.interpreters.same.parameters import ParameterComparison
from jaxsight.interpreters.same.shortcut import obviously_same
from jaxsight.interpreters.same.tokens import (
    Block,
    Token,
    Tokens,
    atom_token,
    block_of,
    effect_texts,
    free_constants,
)
from jaxsight.interpreters.same.values import ValueComparison


def same_jaxpr(
    left: object, right: object, *, through_jits: bool = False, orders: int | None = None
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


class Comparison:
    """Compares programs, and remembers the inner programs that are the same."""

    def __init__(self, through_jits: bool = False, orders: int | None = None) -> None:
        self._through_jits = through_jits
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

    def programs(self, left: Program, right: Program) -> Difference | None:
        if obviously_same(left, right):
            return None
        try:
            self._closed(left, right)
        except Parted as parted:
            return parted.difference()
        return None

    def blocks(self, left: Block, right: Block) -> Difference | None:
        try:
            self._blocks(left, right)
        except Parted as parted:
            return parted.difference()
        return None

    def values(self, left: object, right: object) -> bool:
        """Return whether two parameters are the same."""
        try:
            self._values.compare("value", left, right)
        except Parted:
            return False
        return True

    def fresh(self) -> Token:
        self._next += 1
        return self._next

    def _closed(self, left: Program, right: Program) -> None:
        key = (id(left.jaxpr), id(right.jaxpr))
        compared = self._same.get(key)
        if (
            compared is not None
            and compared[2] <= self._rules.order
            and _identical(compared[0].consts, left.consts)
            and _identical(compared[1].consts, right.consts)
        ):
            return
        tokens = self._binders(
            [*free_constants(left), *left.jaxpr.invars],
            [*free_constants(right), *right.jaxpr.invars],
        )
        captures = self._captures
        self._blocks(block_of(left, tokens), block_of(right, tokens))
        if captures == self._captures:
            self._same[key] = (left, right, self._rules.order)

    def _binders(self, left: Sequence[Var], right: Sequence[Var]) -> list[Token]:
        require(len(left) == len(right), "number of inputs", len(left), len(right))
        for index, (first, second) in enumerate(zip(left, right, strict=True)):
            _same_aval(f"input {index}", first.aval, second.aval)
        return [self.fresh() for _ in left]

    def _blocks(self, left: Block, right: Block) -> None:
        if self._through_jits:
            left, right = inlined(left), inlined(right)
        left_tokens: Tokens = {id(var): token for var, token in left.inputs}
        right_tokens: Tokens = {id(var): token for var, token in right.inputs}
        self._around.append((left_tokens, right_tokens))
        try:
            self._insides(left, right, left_tokens, right_tokens)
        finally:
            self._around.pop()

    def _insides(
        self, left: Block, right: Block, left_tokens: Tokens, right_tokens: Tokens
    ) -> None:
        left_equations = live(left.outputs, left.equations, self._read_by)
        right_equations = live(right.outputs, right.equations, self._read_by)
        for index, (equation, counterpart) in enumerate(
            zip(left_equations, right_equations, strict=False)
        ):
            with step(str(index)):
                self._equations(equation, counterpart, left_tokens, right_tokens)
        _same_number(left_equations, right_equations)
        counts = len(left.outputs), len(right.outputs)
        require(counts[0] == counts[1], "number of results", *counts)
        for index, (first, second) in enumerate(zip(left.outputs, right.outputs, strict=True)):
            _same_aval(f"result {index}", first.aval, second.aval)
            same = atom_token(first, left_tokens) == atom_token(second, right_tokens)
            require(same, f"result {index}", first, second)

    def _equations(
        self, left: Equation, right: Equation, left_tokens: Tokens, right_tokens: Tokens
    ) -> None:
        name = left.primitive.name
        require(left.primitive is right.primitive, "primitive", name, right.primitive.name)
        counts = len(left.outvars), len(right.outvars)
        require(counts[0] == counts[1], "number of results", *counts)
        self._applications(
            left,
            right,
            [atom_token(atom, left_tokens) for atom in left.invars],
            [atom_token(atom, right_tokens) for atom in right.invars],
        )
        for first, second in zip(left.outvars, right.outvars, strict=True):
            _same_aval(f"result of {name}", first.aval, second.aval)
            left_tokens[id(first)] = right_tokens[id(second)] = self.fresh()
        if effect_texts(left, left_tokens) != effect_texts(right, right_tokens):
            raise Parted("effects", left.effects, right.effects)
        if left.ctx != right.ctx and str(left.ctx) != str(right.ctx):
            raise Parted("context", left.ctx, right.ctx)

    def _applications(
        self,
        left: Equation,
        right: Equation,
        left_operands: Sequence[Token],
        right_operands: Sequence[Token],
    ) -> None:
        """Compare the operands and the parameters of two equations of one primitive."""
        match left.primitive.name:
            case "scan":
                self._scans(left, right, left_operands, right_operands)
            case "while":
                self._whiles(left, right, left_operands, right_operands)
            case "custom_jvp_call" | "custom_vjp_call":
                self._customs(left, right, left_operands, right_operands)
            case "custom_linear_solve":
                self._solves(left, right, left_operands, right_operands)
            case _:
                _same_operands(left, right, left_operands == right_operands)
                self._parameters.compare(left.primitive, left.params, right.params)

    def _captured(
        self,
        name: str,
        left: Program,
        right: Program,
        left_captured: Sequence[Token],
        right_captured: Sequence[Token],
    ) -> None:
        """Compare two bodies, whose first inputs are captured values, in any order."""
        tokens = self._binders(
            left.jaxpr.invars[len(left_captured) :], right.jaxpr.invars[len(right_captured) :]
        )
        with step(name):
            self._blocks(
                block_of(left, [*left_captured, *tokens]),
                block_of(right, [*right_captured, *tokens]),
            )

    def _scans(
        self,
        left: Equation,
        right: Equation,
        left_operands: Sequence[Token],
        right_operands: Sequence[Token],
    ) -> None:
        first, second = control_flow.scan(left.params), control_flow.scan(right.params)
        _same_operands(
            left, right, left_operands[first.consts :] == right_operands[second.consts :]
        )
        for field in ("carry", "length", "reverse", "unroll", "split_transpose"):
            values = getattr(first, field), getattr(second, field)
            if values[0] != values[1]:
                raise Parted(f"scan's {field}", *values)
        self._captured(
            "body",
            first.body,
            second.body,
            left_operands[: first.consts],
            right_operands[: second.consts],
        )

    def _whiles(
        self,
        left: Equation,
        right: Equation,
        left_operands: Sequence[Token],
        right_operands: Sequence[Token],
    ) -> None:
        groups = []
        for equation, tokens in ((left, left_operands), (right, right_operands)):
            conds = equation.params["cond_nconsts"]
            consts = conds + equation.params["body_nconsts"]
            groups.append((tokens[:conds], tokens[conds:consts], tokens[consts:]))
        (cond1, body1, init1), (cond2, body2, init2) = groups
        _same_operands(left, right, init1 == init2)
        for name, first, second in (("cond", cond1, cond2), ("body", body1, body2)):
            key = f"{name}_jaxpr"
            programs = opened(left.params[key]), opened(right.params[key])
            self._captured(name, *programs, first, second)

    def _solves(
        self,
        left: Equation,
        right: Equation,
        left_operands: Sequence[Token],
        right_operands: Sequence[Token],
    ) -> None:
        """Compare linear solves, whose functions capture values (`lax.custom_linear_solve`)."""
        left_parts = list(control_flow.solves(left.params, left_operands))
        right_parts = list(control_flow.solves(right.params, right_operands))
        vectors = [
            tokens[sum(len(captured) for _, captured in parts) :]
            for tokens, parts in ((left_operands, left_parts), (right_operands, right_parts))
        ]
        _same_operands(left, right, vectors[0] == vectors[1])
        for name, (first, left_captured), (second, right_captured) in zip(
            control_flow.SOLVES, left_parts, right_parts, strict=True
        ):
            if first is not None and second is not None:
                self._captured(name, first, second, left_captured, right_captured)
            elif first is not second:
                raise Parted(f"{name} of custom_linear_solve", first and name, second and name)
        self._parameters.compare(left.primitive, left.params, right.params)

    def _customs(
        self,
        left: Equation,
        right: Equation,
        left_operands: Sequence[Token],
        right_operands: Sequence[Token],
    ) -> None:
        """Compare functions with custom derivatives, which may capture values."""
        first, second = left.params["num_consts"], right.params["num_consts"]
        _same_operands(left, right, left_operands[first:] == right_operands[second:])
        left_body, right_body = (opened(side.params["call_jaxpr"]) for side in (left, right))
        if first or second:
            self._captured(
                "body", left_body, right_body, left_operands[:first], right_operands[:second]
            )
        else:
            self._inner("body", left_body, right_body)
        self._parameters.compare(left.primitive, left.params, right.params)

    def _rule_programs(self, name: str, left: Program, right: Program) -> None:
        """Compare two rules, which may capture values of the enclosing programs."""
        left_outer, right_outer = (
            self._outer(program, side) for side, program in enumerate((left, right))
        )
        if not left_outer and not right_outer:
            self._inner(name, left, right)
            return
        tokens = self._binders(left.jaxpr.invars, right.jaxpr.invars)
        blocks = block_of(left, [*left_outer, *tokens]), block_of(right, [*right_outer, *tokens])
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

    def _inner(self, name: str, left: Program, right: Program) -> None:
        with step(name):
            self._closed(left, right)


def _same_number(left: Sequence[Equation], right: Sequence[Equation]) -> None:
    """Raise `Parted`, with the names of equations that only one side has, if there are any."""
    if len(left) == len(right):
        return
    shared = min(len(left), len(right))
    texts = [
        f"{len(side)} ({' '.join(equation.primitive.name for equation in side[shared:][:5])})"
        for side in (left, right)
    ]
    raise Parted("number of equations", *texts)


def _same_operands(left: Equation, right: Equation, same: bool) -> None:
    require(same, f"operands of {left.primitive.name}", left.invars, right.invars)


def _same_aval(what: str, left: Aval, right: Aval) -> None:
    if left is right or left == right:
        return
    raise Parted(f"type of {what}", _aval_text(left), _aval_text(right))


def _aval_text(aval: Aval) -> str:
    weak = " (weak)" if getattr(aval, "weak_type", False) else ""
    short = getattr(aval, "str_short", None)
    return f"{short() if short else aval}{weak}"


def _identical(left: Sequence[object], right: Sequence[object]) -> bool:
    return len(left) == len(right) and all(
        value is counterpart for value, counterpart in zip(left, right, strict=True)
    )
