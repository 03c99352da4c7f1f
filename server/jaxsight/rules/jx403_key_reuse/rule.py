"""JX403: a PRNG key is consumed twice.

Found in the traced program, for typed and for raw keys. JAX's own checker
(`jax.experimental.key_reuse`), which has to be enabled and does not support raw keys, is recognized
by its error. As there, drawing and splitting consume a key, and `fold_in` does not.
"""

# Longer than most rules: keys are followed in programs, and in text in order, in loops and in
# methods.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.jx403_key_reuse import untraced
from jaxsight.rules.jx403_key_reuse.untraced import (
    SPLIT_FIRST,
    SPLIT_ONCE,
    Uses,
    in_functions,
    reused,
    reused_in_loop,
)
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.loops import loop_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import ModuleViolation, Rule, Violation
from jaxsight.rules.text.expressions import reads_of
from jaxsight.rules.text.jitted import jitted_module
from jaxsight.rules.text.python_loops import InLoops
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.statements import Statement, imports_of, uses_jax
from jaxsight.rules.wording import quoted
from jaxsight.wire.primitives import ELEMENTWISE, RESHAPES, SHAPED
from jaxsight.wire.program import LITERAL, Step

RULE = Rule(__name__, "PRNG key used more than once.", without_inputs=True)

_CONSUMES = frozenset({"random_bits", "random_split", "random_gamma"})
_MOVES = RESHAPES | {"slice", "unstack", "random_wrap", "random_unwrap", "dynamic_slice"}
_EACH = ELEMENTWISE | SHAPED | {"bitcast_convert_type"}
_FAR = 100
"""How many values after a draw are looked at: a use beyond them is missed, more take long."""

_DRAWS = re.compile(
    r"random\.\w+\)?\(|\b(?:ball|bernoulli|beta|binomial|bits|categorical|cauchy|chisquare|choice|"
    r"dirichlet|double_sided_maxwell|exponential|gamma|geometric|gumbel|laplace|loggamma|logistic|"
    r"lognormal|maxwell|multinomial|multivariate_normal|normal|orthogonal|pareto|permutation|"
    r"poisson|rademacher|randint|rayleigh|split|triangular|truncated_normal|uniform|wald|"
    r"weibull_min)\("
)
"""Calls of functions of `jax.random`, under any name of the module."""

Token = object


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize the error of JAX's key-reuse checker (`jax_debug_key_reuse`)."""
    if not error.is_a("KeyReuseError"):
        return None
    return Violation(
        f"{error.quoted('this call')} uses a PRNG key that is already consumed",
        help=SPLIT_FIRST,
        notes=(
            "drawing from a key and splitting it consume the key",
            f"JAX's key-reuse checker says: {error.said}",
        ),
    )


_IN_LOOPS = InLoops(untraced.in_loop)
_DEFINES = re.compile(r"(async )?def |class |@|import |from ")
"""Statements that draw nothing themselves."""


@RULE.finds_in_module
def find_untraced(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield uses in a text of a key that nothing replaces in between, once for each call."""
    imports = imports_of(statements)
    if not uses_jax(imports):
        return
    names = {name for name, full in imports if full.startswith("jax.random")} | {"random"}
    drawing = [
        number
        for number, statement in enumerate(statements)
        if any(name in statement.text for name in names)
    ]
    found: dict[tuple[int, int, int], ModuleViolation] = {}
    for each in chain(
        _IN_LOOPS(statements),
        _in_order(statements, drawing),
        _in_methods(statements, drawing),
    ):
        node = each.violation.node
        found.setdefault((each.statement, node.lineno, node.col_offset), each)
    yield from found.values()


def _in_order(statements: Sequence[Statement], drawing: Sequence[int]) -> Iterator[ModuleViolation]:
    """Yield second uses in functions, and in the module's own statements."""
    imports = imports_of(statements)
    for number in drawing:
        for violation in statements[number].read(in_functions, imports):
            yield ModuleViolation(number, violation)
    if all(_DEFINES.match(statements[number].text) for number in drawing):
        return
    uses = Uses(scopes_of(ast.Module([], []), dict(imports))[0])
    for number, statement in enumerate(statements):
        for node in statement.tree().body:
            yield from (ModuleViolation(number, violation) for violation in uses.read(node))


def _in_methods(
    statements: Sequence[Statement], drawing: Sequence[int]
) -> Iterator[ModuleViolation]:
    """Yield uses of attributes of objects that nothing in the module assigns again."""
    traced, imports = jitted_module(statements).traced, imports_of(statements)
    for number in drawing:
        statement = statements[number]
        if not statement.text.startswith("class "):
            continue
        others = [other.text for other in statements if other is not statement]
        for violation in statement.read(untraced.in_methods, imports, traced):
            assigned = re.compile(rf"\.{violation.data}\b[^=\n]*=[^=]")
            if not any(map(assigned.search, others)):
                yield ModuleViolation(number, violation)


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation | None]:
    """Yield second uses of a key, and uses in a loop of a key from outside, once for each place."""
    flow = view.flow
    keys = _Keys(flow)
    first: dict[Token, Step] = {}
    for step in flow.steps.values():
        if step.primitive not in _CONSUMES or step.backward or not step.operands:
            continue
        key = keys.of(step.operands[0])
        before = first.setdefault(key, step)
        if step.span is None or (before is not step and _excluded(before, step)):
            continue
        if before is not step and (before.span != step.span or _drawn(view, step)):
            elsewhere = before.span != step.span
            first_use = f"{quoted(view.quote(before.path), 'other code')} used the key first"
            yield Violation(
                reused(
                    [*map(_splits, (before, step))],
                    equal=before.parameter("shape") == step.parameter("shape"),
                ),
                step.path,
                help=SPLIT_ONCE if _splits(before) and _splits(step) else SPLIT_FIRST,
                notes=(first_use,) if elsewhere else (),
                related=((before.path, "first use of the key"),),
            )
        elif before is step and _drawn(view, step):
            yield _alone(flow, keys, step)


def _alone(flow: Flow, keys: _Keys, step: Step) -> Violation | None:
    """Return the violation of the only use of a key, which a loop, `vmap` or the caller repeats."""
    if keys.from_outside(step.operands[0]):
        return Violation(
            reused_in_loop(_splits(step)),
            step.path,
            help="carry the key and split it in the body, or fold in the counter: "
            "`jax.random.fold_in(key, i)`",
        )
    if step.path in flow.mapped and keys.is_repeated(step.operands[0]):
        return Violation(
            "one PRNG key repeated for all elements of a `vmap`: all draw the same numbers",
            step.path,
            help="split it into a key for each element: `jax.random.split(key, n)`",
            severity="warning",
        )
    if _shared(flow, step):
        return Violation(
            "one PRNG key for all elements of a `vmap`: all draw the same numbers",
            step.path,
            help="split the key and map over the keys: `jax.vmap(f)(jax.random.split(key, n), x)`",
            severity="warning",
        )
    if any(keys.is_same(keys.of(step.operands[0]), number) for number in flow.outputs):
        return Violation(
            "PRNG key is split and returned: the next split gives the same keys"
            if _splits(step)
            else "PRNG key is drawn from and returned: the next draw gives the same numbers",
            step.path,
            help="return a new key: `key, subkey = jax.random.split(key)`",
            severity="warning",
        )
    return None


def _shared(flow: Flow, step: Step) -> bool:
    """Whether a draw under `vmap` is of one key, and combined with each of the mapped elements.

    Matrices that all elements are multiplied with are shared on purpose: random projections.
    """
    if step.path not in flow.mapped or flow.value(step.operands[0]).shape or _splits(step):
        return False
    waiting, visited = [(number, False) for number in step.results], set[int]()
    while waiting and len(visited) < _FAR:
        number, repeated = waiting.pop()
        if number in visited:
            continue
        visited.add(number)
        for user in flow.used_by(number):
            if user.primitive not in _EACH or user.path not in flow.mapped:
                continue
            size = flow.value(user.results[0]).elements
            grows = repeated or flow.value(number).elements < size
            other_operands = [
                flow.of(operand) for operand in user.operands if flow.of(operand) not in visited
            ]
            if grows and any(flow.value(operand).elements == size for operand in other_operands):
                return True
            waiting += [(output, grows) for output in user.results]
    return False


def _splits(step: Step) -> bool:
    return step.primitive == "random_split"


def _drawn(view: ProgramView, step: Step) -> bool:
    """Whether the user's own expression draws; what a library does in one call is not reported."""
    return _DRAWS.search(view.quote(step.path)) is not None


def _excluded(step: Step, other_step: Step) -> bool:
    """Whether two equations are in different branches of one `cond`, of which only one runs."""
    first, second = step.path.split("/"), other_step.path.split("/")
    for depth, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return a.startswith("branches") and b.startswith("branches") and depth % 2 == 1
    return False


class _Keys:
    """Identify values by how they are computed, so that equal slices of the same keys are equal."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._known: dict[int, Token] = {}
        self._outer: dict[int, int] = {}
        self._looped: set[int] = set()
        for step in flow.steps.values():
            if (loop := loop_of(flow, step)) is not None:
                pairs = dict(loop.unchanged(flow))
                if step.parameter("length") != 1:
                    self._looped |= pairs.keys()
                self._outer |= pairs
            elif step.primitive == "cond":
                for body in step.bodies:
                    self._outer |= zip(flow.inputs_of(body), step.operands[1:], strict=False)

    def of(self, number: int) -> Token:
        """Return the token of a value; equal tokens are equal values."""
        number = self._flow.of(number)
        if number not in self._known:
            self._known[number] = number  # ends recursion
            self._known[number] = self._made(number)
        return self._known[number]

    def is_same(self, token: Token, number: int) -> bool:
        """Whether a key, or the raw key that it was made from, is a value."""
        other_token = self.of(number)
        if token == other_token:
            return True
        match token:
            case ("random_wrap", _, _, (raw,)):
                return raw == other_token
            case _:
                return False

    def from_outside(self, number: int) -> bool:
        """Whether a key that a loop consumes is the same in every iteration."""
        number = self._flow.of(number)
        if number in self._looped:
            return True
        if number in self._outer and self.from_outside(self._outer[number]):
            return True
        maker = self._flow.producer(number)
        if maker is None or maker.primitive not in _MOVES or not maker.operands:
            return False
        return self.from_outside(maker.operands[0])

    def is_repeated(self, number: int) -> bool:
        """Whether an array of keys has the same key for all its elements."""
        number = self._flow.before(number, RESHAPES | {"random_wrap", "random_unwrap"})
        step = self._flow.producer(number)
        if step is None or step.span is None or not step.operands:
            return False
        if step.primitive in ("concatenate", "stack"):
            return len(step.operands) > 1 and len({self._key(each) for each in step.operands}) == 1
        grows = self._flow.value(number).elements > self._flow.value(step.operands[0]).elements
        return grows and step.primitive in ("broadcast_in_dim", "tile")

    def _key(self, number: int) -> Token:
        """Return the token of a key before it was reshaped to be a row."""
        through = RESHAPES | {"broadcast_in_dim"}
        return self.of(self._flow.before(number, through))

    def _made(self, number: int) -> Token:
        value = self._flow.values[number]
        if value.origin == LITERAL:
            return "literal", value.said
        if number in self._outer:
            return self.of(self._outer[number])
        step = self._flow.producer(number)
        if step is None or step.primitive not in _MOVES:
            return number
        if step.primitive == "random_wrap":
            before = self._flow.producer(step.operands[0])
            if before is not None and before.primitive == "random_unwrap":
                return self.of(before.operands[0])
        operands = tuple(self.of(operand) for operand in step.operands)
        return step.primitive, step.parameters, step.results.index(number), operands


# The fix: split a key that is used twice.


@RULE.corrects("`jax.random.split` before the first use (unsafe)")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield one `split` before the first use, with a key for each use.

    The drawn numbers change on purpose.
    """
    function = context.function(context.node)
    if function is None:
        context = context.of_subject()
        function = context.subject
    if function is None:
        return
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and context.called(node.func).startswith("jax.random.")
    ]
    keys = [call.args[0].id for call in calls if call.args and isinstance(call.args[0], ast.Name)]
    for key in dict.fromkeys(keys):
        if keys.count(key) > 1:
            random = context.text(calls[0].func).rpartition(".")[0] or "jax.random"
            uses = reads_of(key, function)
            statement = context.statement(uses[0])
            if statement is None:
                continue
            names = [context.fresh(f"{key}_{number}") for number in range(1, len(uses) + 1)]
            count = "" if len(names) == 2 else f", {len(names)}"
            split = f"{', '.join(names)} = {random}.split({key}{count})"
            edits = (context.replace(use, name) for use, name in zip(uses, names, strict=True))
            yield Candidate(
                f"Split `{key}` into {len(uses)} keys",
                (context.before(statement, split), *edits),
                same=False,
            )
