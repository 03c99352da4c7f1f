"""JX306: a call site has a function compiled for many types or static values.

That is seen in a run of the user's program, in the text (a loop calls a jitted function of the
module with another static value or another shape in every iteration), or in a trace of the loop.
"""

# Longer than most rules: a run, the text of a loop and the trace of a loop show it, each in its own
# way.

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.recompilation import FIRST_SHAPES, Miss, named
from jaxsight.rules.rule import NodeViolation, Rule, Violation
from jaxsight.rules.text.expressions import FunctionNode, argument_of, call_operands, dotted
from jaxsight.rules.text.jitted import JitFunction, JittedCalls
from jaxsight.rules.text.python_loops import FEW, InLoops, PythonLoop
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import written
from jaxsight.rules.wording import cut, quoted
from jaxsight.text.names import bound_in, read_in
from jaxsight.text.units import count
from jaxsight.wire.chunks import Span
from jaxsight.wire.primitives import JITS
from jaxsight.wire.program import LITERAL, ProgramValue, Step

RULE = Rule(
    __name__, "Call site triggers repeated recompilation.", severity="warning", always=False
)

# Which calls of a Python loop compile, by the types that a trace of the loop passes to them.

_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_LEAST = 3
"""So many calls show that one of them differs."""


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of a jitted function from one place in a loop, in order."""

    function: str
    span: Span
    arguments: Sequence[str]
    """By operand: the argument as it is written; nothing where that is not known."""
    types: Sequence[tuple[ProgramValue, ...]]
    """Of the operands of each call."""

    @staticmethod
    def of(view: ProgramView) -> Iterator[_Calls]:
        """Yield those of a program with the user's own functions."""
        own = {(call.span, call.name.rpartition(".")[2]) for call in view.calls if call.name}
        groups: dict[tuple[Span, str], list[Step]] = defaultdict(list)
        for step in view.program.body.steps:
            if step.primitive in JITS and step.span is not None:
                called = (step.span, str(step.parameter("name")))
                if called in own:
                    groups[called].append(step)
        for (span, _), steps in groups.items():
            nodes = view.syntax(span)
            call = next((node for node in nodes if isinstance(node, ast.Call)), None)
            is_in_loop = any(isinstance(node, _LOOPS) for node in nodes)
            alike = {len(step.operands) for step in steps}
            if len(steps) >= _LEAST and call is not None and is_in_loop and len(alike) == 1:
                types = [tuple(view.program.values[n] for n in step.operands) for step in steps]
                arguments = [*map(written, call_operands(call))]
                if len(arguments) != len(types[0]):  # trees are passed
                    arguments = [""] * len(types[0])
                yield _Calls(written(call.func), span, arguments, types)

    def named(self, position: int) -> str:
        """Return an argument as messages name it."""
        return quoted(self.arguments[position], "an argument", most=18)

    def begin_otherwise(self) -> Violation | None:
        """Return the finding of a state that the first call makes another type of."""
        first, second, *others = map(_types, self.types)
        if first == second or any(other != second for other in others):
            return None
        at = next(at for at, pair in enumerate(zip(first, second, strict=True)) if len({*pair}) > 1)
        before, after = self.types[0][at], self.types[1][at]
        is_number = before.weak and before.shape == after.shape and before.dtype == after.dtype
        if after.weak or (not is_number and len(self.types) <= FEW):
            return None  # layers of other sizes
        start = before.said if before.origin == LITERAL and before.said else "…"
        return Violation(
            f"{quoted(self.function, most=20)} compiles twice: {self.named(at)} is "
            + ("a Python number at first" if is_number else f"{cut(before.text, 20)} at first"),
            span=self.span,
            help=f"begin with the type that it has later: `jnp.{after.dtype}({start})`"
            if not after.shape
            else f"begin with an array of the type that it has later, {cut(after.text, 40)}",
            notes=(f"in later calls it is {cut(after.text, 40)}, which is another program",),
        )

    def end_smaller(self) -> Violation | None:
        """Return the finding of a last batch that is smaller."""
        first, *others, last = self.types
        if any(_types(other) != _types(first) for other in others):
            return None
        for at, (before, after) in enumerate(zip(first, last, strict=True)):
            rest = before.dtype, before.shape[1:], before.weak
            if rest == (after.dtype, after.shape[1:], after.weak) and after.shape < before.shape:
                rows = after.shape[0], before.shape[0]
                message, help, note = last_batch(self.function, self.arguments[at], *rows)
                return Violation(message, span=self.span, help=help, notes=(note,))
        return None

    def differ_often(self) -> Violation | None:
        """Return the finding of an argument that has many shapes."""
        for at, values in enumerate(zip(*self.types, strict=True)):
            shapes = len({value.shape for value in values})
            if shapes > FEW:
                return Violation(
                    f"{quoted(self.function, most=20)} compiles {shapes:,} times in this loop: "
                    f"the shape of {self.named(at)} changes",
                    span=self.span,
                    help="pad it to one size and mask the rest, or to a few sizes",
                    notes=(f"{len(self.types):,} calls have {shapes:,} shapes",),
                )
        return None


@RULE.finds_in_program
def find_in_traces(view: ProgramView) -> Iterator[Violation | None]:
    """Yield calls in a loop outside of `jit` that compile again because of an argument's type."""
    if view.is_staged(view.name):
        return
    for calls in _Calls.of(view):
        yield calls.begin_otherwise() or calls.end_smaller() or calls.differ_often()


def _types(values: Sequence[ProgramValue]) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(value.dtype, value.shape, value.weak) for value in values]


def last_batch(function: str, argument: str, last: int, others: int) -> tuple[str, str, str]:
    """Return the message, the help and the note about a smaller last batch."""
    batch, rows = quoted(argument, "batch", most=18), count(last, "row")
    return (
        f"{quoted(function, most=20)} compiles twice: the last {batch} has {rows}, not {others:,}",
        "drop the last batch, or pad it to the full size and mask the rest",
        "each shape is another program",
    )


# What has another value or another shape in every iteration of a loop, by the text.

_BY_SHAPE = frozenset({"zeros", "ones", "empty", "full", "eye", "identity"})
"""Functions of NumPy whose first argument is a shape."""
_RANDOM = frozenset(
    {"normal", "uniform", "bernoulli", "randint", "exponential", "gumbel", "laplace"}
)
"""Functions of `jax.random` that take a key and a shape."""
_JOINS = frozenset({"array", "asarray", "stack", "concatenate", "vstack", "hstack"})
"""Functions that make an array of a list."""
_STARTS = re.compile(
    r"(?P<start>\w+) in range\(0, "
    r"(?:len\((?P<data>\w+)\)|(?P<shaped>\w+)\.shape\[0\]|(?P<count>\d+)), (?P<step>\d+)\)"
)
"""The head of a loop over batches, as `ast` writes it."""
_BATCH = re.compile(r"(?P<data>\w+)\[(?P<start>\w+):(?P=start) \+ (?P<taken>\d+)(?:,[^\n]*)?\]")
_FEW_VALUES = (ast.Mod, ast.FloorDiv, ast.RShift, ast.BitAnd)


class Varying:
    """What differs in all iterations of a loop."""

    def __init__(self, scope: NameScope, loop: PythonLoop) -> None:
        self._scope, self._loop = scope, loop.node
        self._counted = loop.counted
        self.count = loop.count
        """How many iterations there are, where the text says so."""
        self._is_short = loop.is_short
        self._bound = Counter(bound_in(*ast.iter_child_nodes(loop.node)))
        self._made: dict[str, ast.expr] = {}
        self._grown: set[str] = set()
        self._functions = {
            node.name for node in ast.walk(loop.node) if isinstance(node, FunctionNode)
        }
        for statement, always in loop.statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if always:
                    self._made[name] = value
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"))
                ) if always and not loop.is_short:
                    self._grown.add(name)

    def new_function(self, node: ast.expr) -> str:
        """Return what kind of function an expression makes; empty if it is none, or an old one."""
        if self._is_short:
            return ""
        match self._resolved(node):
            case ast.Lambda():
                return "a new lambda"
            case ast.Call(func=function) if self._scope.full(function) == "functools.partial":
                return "a new partial"
            case ast.Name(id=name) if name in self._functions:
                return "a new function"
            case _:
                return ""

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is a number that differs."""
        match self._resolved(node):
            case ast.Name(id=name):
                return name in self._counted
            case ast.BinOp(left=left, right=right, op=op) if not isinstance(op, _FEW_VALUES):
                return self.is_number(left) or self.is_number(right)
            case ast.UnaryOp(operand=operand):
                return self.is_number(operand)
            case ast.Tuple(elts=parts):
                return any(map(self.is_number, parts))
            case ast.Call(func=ast.Name(id="float" | "int" | "str"), args=[argument]):
                return self.is_number(argument)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                return self._is_grown(name)
            case ast.JoinedStr(values=parts):
                shown = (part.value for part in parts if isinstance(part, ast.FormattedValue))
                return any(map(self.is_number, shown))
            case _:
                return False

    def is_shape(self, node: ast.expr) -> bool:
        """Whether an expression is an array whose shape differs."""
        if isinstance(node, ast.Name) and self._is_peeled(node.id):
            return True
        node = self._resolved(node)
        match node:
            case ast.Subscript(slice=ast.Tuple(elts=parts)):
                return any(map(self._is_open_slice, parts))
            case ast.Subscript(slice=part):
                return self._is_open_slice(part)
            case ast.Call(func=function, args=arguments):
                full = self._scope.full(function)
                package, _, name = full.rpartition(".")
                if package == "jax.random" and name in _RANDOM:
                    shape = argument_of(node, 1, "shape")
                    return shape is not None and self.is_number(shape)
                if package not in ("jax.numpy", "numpy") or not arguments:
                    return False
                if name in _BY_SHAPE or (name == "arange" and len(arguments) == 1):
                    return self.is_number(arguments[0])
                if name in _JOINS and self._is_grown(dotted(arguments[0])):
                    return True
                return name in ("array", "asarray") and self.is_shape(arguments[0])
            case _:
                return False

    def last_rows(self, node: ast.expr) -> tuple[int, int] | None:
        """Return the length of the last batch and of the others, where the text says both.

        `data[start : start + 256]` in `for start in range(0, len(data), 256)`.
        """
        if not isinstance(self._loop, ast.For):
            return None
        batch = _BATCH.fullmatch(written(self._resolved(node)))
        loop = _STARTS.fullmatch(f"{written(self._loop.target)} in {written(self._loop.iter)}")
        if batch is None or loop is None or batch["start"] != loop["start"]:
            return None
        step, length = int(loop["step"]), self._rows_of(batch["data"])
        data = loop["data"] or loop["shaped"]
        counted = int(loop["count"]) if loop["count"] else self._rows_of(data)
        if int(batch["taken"]) != step or not length or counted != length:
            return None
        if not step or length < 2 * step:
            return None
        return (length % step, step) if length % step else None

    def _rows_of(self, array: str) -> int | None:
        """Return how many rows an array has that is made once, with a shape in the text."""
        made = self._scope.holder(array).aliases.get(array)
        if not isinstance(made, ast.Call) or not made.args:
            return None
        package, _, name = self._scope.full(made.func).rpartition(".")
        if package == "jax.random" and name in _RANDOM and len(made.args) > 1:
            shape = made.args[1]
        elif package in ("numpy", "jax.numpy") and name in _BY_SHAPE - {"eye", "identity"}:
            shape = made.args[0]
        else:
            return None
        first = shape.elts[0] if isinstance(shape, ast.Tuple) and shape.elts else shape
        value = first.value if isinstance(first, ast.Constant) else None
        return value if isinstance(value, int) else None

    def _is_grown(self, name: str) -> bool:
        """Whether a list is longer in each iteration."""
        return name in self._grown and not self._bound[name]

    def _is_peeled(self, name: str) -> bool:
        """Whether an array is shorter in each iteration: `x = x[1:]`."""
        match self._made.get(name):
            case ast.Subscript(value=ast.Name(id=source), slice=ast.Slice(lower=lower, upper=None)):
                first = lower.value if isinstance(lower, ast.Constant) else 0
                is_cut = source == name and isinstance(first, int) and first > 0
                return is_cut and self._bound[name] == 1 and not self._is_short
            case _:
                return False

    def _is_open_slice(self, part: ast.expr) -> bool:
        """Whether one end of a slice is a number that differs, and the other one is fixed."""
        if not isinstance(part, ast.Slice):
            return False
        ends = [end for end in (part.lower, part.upper) if end is not None]
        unknown = self._counted | self._made.keys()
        moving = [end for end in ends if not unknown.isdisjoint(read_in(end))]
        fixed = [end for end in ends if end not in moving]
        return (
            len(moving) == 1
            and self.is_number(moving[0])
            and all(isinstance(end, ast.Constant) for end in fixed)
        )

    def _resolved(self, node: ast.expr) -> ast.expr:
        """Return what a name is bound to in the loop, once and in every iteration."""
        if not isinstance(node, ast.Name) or node.id in self._counted:
            return node
        return self._made.get(node.id, node) if self._bound[node.id] == 1 else node


@RULE.explains_misses
def explain(function: str, misses: Sequence[Miss]) -> Iterator[Violation]:
    """Yield what a call has compiled several times: static arguments, then types of arguments."""
    count = sum(miss.static for miss in misses) + 1
    if count >= FIRST_SHAPES:
        yield Violation(
            f"{named(function)} is compiled for {count} values of a static argument",
            help="make the argument dynamic, or pass fewer values",
        )
    types: dict[str, set[str]] = defaultdict(set)
    for miss in misses:
        for argument, now, before in miss.differs:
            if "weak_type" not in now:
                types[argument] |= {now, before}
    for argument, seen in types.items():
        if len(seen) >= FIRST_SHAPES:
            few = ", ".join(sorted(seen)[:4]) + (", …" if len(seen) > 4 else "")
            yield Violation(
                f"{named(function)} is compiled for {len(seen)} types of an argument",
                help="pad the argument to a few sizes",
                notes=(f"{quoted(argument)} is {few}",),
            )


def find(scope: NameScope, loop: PythonLoop, calls: JittedCalls) -> Iterator[NodeViolation]:
    """Yield calls that compile in every iteration of a loop."""
    loops = [Varying(scope, around) for around in (loop, *loop.around)]
    for _, call, always in loop.calls():
        called = calls.called(scope, call) if always else None
        if called is None:
            continue
        found = (_varies(*called, call, each, "outer " * (each is not loops[0])) for each in loops)
        yield from islice(filter(None, found), 1)


def _varies(
    function: str, jitted: JitFunction, call: ast.Call, varying: Varying, which: str
) -> NodeViolation | None:
    """Return the finding of a call that compiles in every iteration of a loop."""
    compiled = f"{quoted(function, most=20)} compiles in every {which}iteration"
    count = f"{varying.count:,}" if varying.count is not None else "n"
    kept = f"{count} iterations compile {count} programs, which stay in memory"
    at = ast.copy_location(ast.Constant(None), call)
    for name, argument in jitted.static_arguments(call):
        static = "a static argument" if name.isdigit() else f"static {quoted(name, most=14)}"
        if made := varying.new_function(argument):
            return NodeViolation(
                at,
                f"{compiled}: {static} is {made}",
                help="create the function once, before the loop",
                notes=("JAX compares static arguments by `==`: a new function differs", kept),
            )
        if varying.is_number(argument):
            return NodeViolation(
                at,
                f"{compiled}: {static} changes",
                help="pass the same text in all iterations"
                if isinstance(argument, ast.JoinedStr)
                else "trace the argument: take it out of `static_argnums` or `static_argnames`",
                notes=(kept,),
            )
    for argument in jitted.traced_arguments(call):
        if varying.is_shape(argument):
            return NodeViolation(
                at,
                f"{compiled}: the shape of {quoted(written(argument), most=18)} changes",
                help="pad it to one size and mask the rest, or to a few sizes",
                notes=(kept,),
            )
        if not which and (rows := varying.last_rows(argument)) is not None:
            message, help, note = last_batch(function, written(argument), *rows)
            return NodeViolation(at, message, help=help, notes=(note,))
    return None


RULE.finds_in_module(InLoops(find, in_tests=True))
