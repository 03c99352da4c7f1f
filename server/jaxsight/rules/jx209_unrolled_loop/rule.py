"""JX209: a Python loop was unrolled while tracing, into copies of the same equations."""

# Longer than most rules: what counts as a copy of an iteration is told by the program and the text,
# and the fix has to find what an iteration carries to the next.

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import ALL, Rule, Violation
from jaxsight.rules.text.expressions import FunctionNode, name_of
from jaxsight.source.text import Edit, Position, Range
from jaxsight.text.names import bound_in, read_in
from jaxsight.wire import primitives
from jaxsight.wire.chunks import Span
from jaxsight.wire.program import Body, Step

RULE = Rule(
    __name__, "Python loop unrolled into many copies.", severity="warning", once_a_line=True
)
MANY = 16
FUSED = 1024
"""Iterations from which a loop is reported, and equations if its iterations fuse into one kernel, a
choice: fewer compile in little time, and a higher limit misses the layers of a model. Where they
fuse, few cost little, and a `fori_loop` would launch a kernel for each iteration."""
_ALIKE = 0.8
"""Share of a loop's equations that each iteration has: less are loops whose iterations differ.

The others belong to the first or the last iteration.
"""
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_CONDITIONS = (ast.If, ast.IfExp, ast.While)
_MOVES = primitives.SHAPED | primitives.PICKS | {"concatenate"}
"""Primitives that read or arrange elements: a loop of nothing else computes nothing."""
_WHERE = frozenset({"start_indices", "limit_indices", "index"})
"""Parameters with the place of a read: `dynamic_slice` takes it from a counter instead."""
_AXES = re.compile(r"(?:.*_)?(?:n?dims?|ndims?|rank|shapes?|axis|axes|sizes?)")
"""Names of sequences with an entry for each axis of an array."""
_LENGTHS = frozenset(
    {
        "arange", "broadcast_to", "broadcasted_iota", "empty", "eye", "full", "geomspace",
        "identity", "indices", "iota", "linspace", "logspace", "ones", "range", "repeat", "reshape",
        "tile", "tri", "zeros",
    }
)  # fmt: skip
"""Functions with a number among their arguments that is a length of the result."""
_CONTAINERS = re.compile(r"\b(?:list|tuple|dict|sequence|mapping|iterable)\b", re.IGNORECASE)


class _Loop(NamedTuple):
    """A loop and the function around it."""

    node: ast.AST
    function: ast.AST
    spans: Mapping[Span, bool]
    """The places in the function; true for those in the loop."""


_Placed = tuple[Step, Span]
"""An equation, and the place in the loop's function that created it or called what did."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Find Python loops of sixteen or more iterations that made the same equations."""
    for loop in _loops(view):
        # The axes of an array are few.
        over_axes = any(_names_axes(part) for parts in _iterated(loop.node) for part in parts)
        is_meant = over_axes or _is_chosen(loop) or _makes_shapes(loop.node)
        if is_meant or _is_of_an_example(view, loop) or _is_on_host(view, loop):
            continue
        for placed in _executions(view, loop.spans):
            copies, steps = _copies(view, placed), [step for step, _ in placed]
            fuses = all(step.primitive in primitives.FUSED for step in steps)
            is_small = copies < MANY or (fuses and len(steps) < FUSED)
            if is_small or all(step.primitive in _MOVES for step in steps):
                continue
            is_call = any(step.span != place for step, place in placed)
            yield Violation(
                f"Python loop unrolled into {copies:,} copies ({len(steps):,} equations)",
                span=placed[0][1],
                help=_help(loop.node),
                notes=(
                    "each copy is compiled, as XLA inlines calls"
                    if is_call
                    else "each copy is traced, lowered and compiled",
                ),
            )
            break


def _help(loop: ast.AST) -> str:
    """Return what to write: what differs between iterations has to be stacked for a `scan`."""
    names = set(bound_in(*(target for target, _ in _iterated(loop))))
    counts = all(isinstance(v, ast.Call) and name_of(v) == "range" for _, v in _iterated(loop))
    is_index = any(
        isinstance(node, ast.Subscript) and not names.isdisjoint(read_in(node.slice))
        for node in ast.walk(loop)
    )
    if counts and not is_index:
        return "use `jax.lax.fori_loop` or `jax.lax.scan` to compile the body once"
    return (
        "compile the body once: `jax.lax.scan` over what differs between iterations, stacked with "
        "`jnp.stack`"
    )


def _loops(view: ProgramView) -> Iterator[_Loop]:
    """Yield the loops in which some place made equations sixteen or more times, or calls did."""
    often: Counter[Span] = Counter()
    for step in view.flow.steps.values():
        if step.results:
            often.update(set(view.places(step)))
    if max(often.values(), default=0) < MANY:
        return
    around = {span: view.syntax(span) for span in often}
    loops: dict[ast.AST, ast.AST] = {}
    for span, nodes in around.items():
        inner = next((node for node in nodes if isinstance(node, _LOOPS)), None)
        if inner is not None and often[span] >= MANY:
            loops[inner] = nodes[-1]
    for loop, function in loops.items():
        is_in_function = isinstance(function, FunctionNode | ast.Lambda)
        spans = {
            span: loop in nodes
            for span, nodes in around.items()
            if loop in nodes or (is_in_function and function in nodes)
        }
        yield _Loop(loop, function, spans)


def _executions(view: ProgramView, spans: Mapping[Span, bool]) -> Iterator[list[_Placed]]:
    """Yield the equations of each run of a loop.

    The loop of a helper runs for each call, and an inner loop for each iteration of the outer one.
    Between two runs, the function around the loop makes other equations.
    """
    flow = view.flow
    running: dict[str, list[_Placed]] = defaultdict(list)
    for step in flow.steps.values():
        place = next((span for span in view.places(step) if span in spans), None)
        if place is None or not step.results:
            continue
        inside = flow.parent.get(step.path)
        loop_path = inside.path if inside is not None else ""
        if spans[place]:
            running[loop_path].append((step, place))
        elif ended := running.pop(loop_path, None):
            yield ended
    yield from running.values()


def _is_on_host(view: ProgramView, loop: _Loop) -> bool:
    """Whether a loop calls a function that is compiled by itself, from code that nobody compiles.

    Such a loop stays in Python: each iteration runs the same compiled program.
    """
    called = {
        (call.span, call.name.rpartition(".")[2])
        for call in view.calls
        if call.name and call.span is not None and loop.spans.get(call.span)
    }
    return not view.is_staged(view.name) and any(
        (step.span, step.parameter("name")) in called
        for step in view.program.body.steps
        if step.primitive in primitives.JITS
    )


def _copies(view: ProgramView, placed: Sequence[_Placed]) -> int:
    """Return how many iterations made the same equations; 0 if they differ.

    Each iteration visits each of its places. If there is only one place, the rarest equation
    counts, since an iteration may make others several times.
    """
    visits: Counter[Span] = Counter()
    kinds: Counter[object] = Counter()
    before = None
    for step, place in placed:
        visits[place] += place != before
        before = place
        kinds[step.span, _kind(view, step)] += 1
    counts = (visits if max(visits.values()) > 1 else kinds).values()
    copies = min((count for count in counts if count > 1), default=0)
    alike = sum(count for count in kinds.values() if count >= copies - 2)
    return copies if alike >= _ALIKE * len(placed) else 0


def _kind(view: ProgramView, step: Step) -> object:
    """Return a key that equations share which do the same with arrays of the same types."""
    operands, results = (
        tuple(view.flow.value(number).text for number in numbers)
        for numbers in (step.operands, step.results)
    )
    parameters = tuple(parameter for parameter in step.parameters if parameter[0] not in _WHERE)
    return step.primitive, operands, results, parameters, tuple(map(_inner, step.bodies))


def _inner(body: Body) -> object:
    return tuple((step.primitive, tuple(map(_inner, step.bodies))) for step in body.steps)


def _iterated(loop: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of a loop, each with the expression that it iterates over."""
    if isinstance(loop, ast.For):
        yield loop.target, loop.iter
    for clause in getattr(loop, "generators", ()):
        yield clause.target, clause.iter


def _names_axes(values: ast.AST) -> bool:
    """Whether an expression reads `x.ndim`, `shape` and the like; `x.shape[0]` is a length."""
    match values:
        case ast.Subscript(slice=ast.Constant()):
            return False
        case ast.Name(id=name) | ast.Attribute(attr=name) if _AXES.fullmatch(name):
            return True
    return any(map(_names_axes, ast.iter_child_nodes(values)))


def _makes_shapes(loop: ast.AST) -> bool:
    """Whether the loop variable is used as a length or an axis in the body."""
    names = set(bound_in(*(target for target, _ in _iterated(loop))))
    lengths: list[ast.expr] = []
    for call in ast.walk(loop):
        if isinstance(call, ast.Call):
            lengths += call.args if name_of(call) in _LENGTHS else ()
            lengths += (key.value for key in call.keywords if key.arg and _AXES.fullmatch(key.arg))
    return not names.isdisjoint(read_in(*lengths))


def _is_chosen(loop: _Loop) -> bool:
    """Whether the program chooses to unroll: a parameter, a condition or the loop's own range.

    `def f(x, unroll)`, `if config.unroll:`, `for _ in range(unroll)`. The function's name alone is
    no choice: `unrolled_loop` may be the example of what takes long.
    """
    asked: list[ast.AST] = [values for _, values in _iterated(loop.node)]
    if isinstance(loop.function, FunctionNode | ast.Lambda):
        asked.append(loop.function.args)
        asked += [node.test for node in ast.walk(loop.function) if isinstance(node, _CONDITIONS)]
    return any(
        "unroll" in str(getattr(node, field, "")).lower()
        for part in asked
        for node in ast.walk(part)
        for field in ("id", "attr", "arg")
    )


def _is_of_an_example(view: ProgramView, loop: _Loop) -> bool:
    """Whether the loop runs over an example array that stands for a list or a dictionary.

    Its length then says nothing about real calls.
    """
    arguments = getattr(loop.function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return False
    arrays = {view.flow.values[number].said for number in view.flow.inputs}
    return any(
        isinstance(values, ast.Name)
        and values.id == argument.arg
        and argument.arg in arrays
        and argument.annotation is not None
        and bool(_CONTAINERS.search(ast.unparse(argument.annotation)))
        for _, values in _iterated(loop.node)
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    )


# The fix: turn a Python loop over `range` into a `fori_loop`.

_REFUSED = (
    *(ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await),
    *(ast.Nonlocal, ast.Global),
)
"""Statements that a body of `fori_loop` cannot have."""


# Less to trace and compile, for a loop that launches its kernels in each iteration.
@RULE.fixes("`jax.lax.fori_loop`, for a loop over `range`", timed=True, trades=ALL)
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Rewrite `for i in range(…)`; the names that the body assigns become the loop's carry."""
    nodes = context.node, *context.ancestors(context.node)
    loop = next((node for node in nodes if isinstance(node, ast.For)), None)
    function = context.function(loop)
    if loop is None or function is None or loop.orelse or not context.begins_line(loop):
        return
    bounds = _bounds(context, loop)
    if bounds is None or not isinstance(loop.target, ast.Name):
        return
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    state = _state(function, loop)
    if not state or loop.target.id in state or any(map(_is_refused, inside)):
        return
    text = _written(context, loop, state, *bounds)
    range_ = Range(context.range(loop).start, context.range(loop).end)
    head = Range(range_.start, context.range(loop.body[0]).start)
    yield Candidate(
        f"Loop over `{loop.target.id}` with `{context.lax}.fori_loop`",
        (*context.jax_import(), Edit(range_, text)),
        safe="#" not in context.module.slice_text(head) and all(map(context.is_pure, loop.body)),
    )


def _is_refused(node: ast.AST) -> bool:
    """Whether a body of `fori_loop` cannot have a node: it leaves the body, or `x.y[i] = …`."""
    is_place = isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)
    return is_place or isinstance(node, _REFUSED)


def _bounds(context: FixContext, loop: ast.For) -> tuple[str, str] | None:
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[*start, stop], keywords=[]) if not start[1:]:
            return context.text(start[0]) if start else "0", context.text(stop)
        case _:
            return None


def _state(function: ast.AST, loop: ast.For) -> list[str]:
    """Return the names that the loop carries, in the order of the text.

    An iteration takes them from the one before, or they are read after the loop.
    """
    after = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.lineno > (loop.end_lineno or 0)
    }
    carried = after | _read_first(loop.body)
    return [name for name in _names(loop.body, ast.Store) if name in carried]


def _names(body: Sequence[ast.stmt], kind: type[ast.expr_context]) -> list[str]:
    nodes = [
        node
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, kind)
    ]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in nodes))


def _read_first(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that are read before they are assigned.

    Names that `+=` or a compound statement assigns count as read: that may not execute it.
    """
    stored: set[str] = set()
    names: set[str] = set()
    for statement in body:
        reads = set(_names([statement], ast.Load))
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
            reads |= set(_names([statement], ast.Store))
        names |= reads - stored
        stored |= set(_names([statement], ast.Store))
    return names


def _written(context: FixContext, loop: ast.For, state: list[str], start: str, stop: str) -> str:
    indent = context.indent(loop)
    assert isinstance(loop.target, ast.Name)
    first = context.range(loop.body[0]).start
    deeper = context.module.line(first.line)[: first.column]
    if deeper.strip():  # on the line of the `for`
        deeper = indent + "    "
    name = context.fresh("body" if "body" not in context.names else f"{loop.target.id}_body")
    last = context.range(loop.body[-1]).end
    inside = context.module.slice_text(Range(first, Position(last.line, last.column)))
    several = len(state) > 1
    names = ", ".join(state)
    carry, initial = (context.fresh("carry"), f"({names})") if several else (names, names)
    lines = [
        f"def {name}({loop.target.id}, {carry}):",
        *([f"{deeper}{names} = {carry}"] if several else []),
        deeper + inside,
        f"{deeper}return {names}",
        "",
        f"{indent}{names} = {context.lax}.fori_loop({start}, {stop}, {name}, {initial})",
    ]
    return "\n".join(lines)
