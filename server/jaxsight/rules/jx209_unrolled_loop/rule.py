"""JX209: a Python loop was traced iteration by iteration, and each one is the same program."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import ELEMENTWISE, SHAPED, Reading
from jaxsight.rules.rule import Rule
from jaxsight.tracer.places import Span
from jaxsight.tracer.program import Body, Step

RULE = Rule(
    "JX209",
    "unrolled-loop",
    "A Python loop was unrolled into many copies.",
    severity="warning",
    once_a_line=True,
)
MANY = 16
FUSED = 1024
"""Equations of rounds that fuse into one kernel, from which on they are too many: fewer cost little, and a loop would launch a kernel for each round."""
_ALIKE = 0.8
"""Share of a loop's equations that are the same in each iteration; the others are of the first or the last one."""
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_FUSES = ELEMENTWISE | SHAPED | {"iota", "concatenate", "pad"}
_WHERE = frozenset({"start_indices", "limit_indices", "index"})
"""Parameters that say where something is read: `dynamic_slice` takes that from a counter."""
_AXES = re.compile(r"(?:.*_)?(?:n?dims?|ndims?|rank|shapes?|axis|axes|sizes?)")
"""Names of what has an entry for each axis of an array."""
_LENGTHS = frozenset(
    {
        "arange", "broadcast_to", "broadcasted_iota", "empty", "eye", "full", "geomspace",
        "identity", "indices", "iota", "linspace", "logspace", "ones", "range", "repeat", "reshape",
        "tile", "tri", "zeros",
    }
)  # fmt: skip
"""Functions of which a number is a length in the result's shape."""
_CONTAINERS = re.compile(r"\b(?:list|tuple|dict|sequence|mapping|iterable)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop and the function around it; of the places in that function, whether they are in it."""

    node: ast.AST
    function: ast.AST | None
    spans: Mapping[Span, bool]


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Find loops of Python's with sixteen iterations or more that made the same equations."""
    for loop in _loops(reading):
        if _is_meant(loop.function) or _is_of_axes(loop.node) or _makes_shapes(loop.node):
            continue
        if _is_of_an_example(reading, loop):
            continue
        for steps in _executions(reading, loop.spans):
            rounds = _rounds(reading, steps)
            fuses = all(step.primitive in _FUSES for step in steps)
            if rounds < MANY or (fuses and len(steps) < FUSED):
                continue
            yield Noticed(
                f"This Python loop was unrolled: {rounds} rounds made {len(steps)} equations, each traced, lowered and compiled. "
                "`jax.lax.fori_loop` or `jax.lax.scan` compile the body once.",
                steps[0].path,
            )
            break


def _loops(reading: Reading) -> Iterator[_Loop]:
    """Return the loops in which some place made equations sixteen times or more."""
    first: dict[Span, str] = {}
    often: Counter[Span] = Counter()
    for step in reading.flow.steps.values():
        if step.span is not None and step.results:
            first.setdefault(step.span, step.path)
            often[step.span] += 1
    if max(often.values(), default=0) < MANY:
        return
    around = {span: reading.around(path) for span, path in first.items()}
    loops: dict[ast.AST, ast.AST | None] = {}
    for span, nodes in around.items():
        inner = next((node for node in nodes if isinstance(node, _LOOPS)), None)
        if inner is not None and often[span] >= MANY:
            loops[inner] = nodes[-1] if isinstance(nodes[-1], _FUNCTIONS) else None
    for loop, function in loops.items():
        spans = {
            span: loop in nodes
            for span, nodes in around.items()
            if loop in nodes or function in nodes
        }
        yield _Loop(loop, function, spans)


def _executions(reading: Reading, spans: Mapping[Span, bool]) -> Iterator[list[Step]]:
    """Return the equations of each time that a loop ran.

    Between two of them its function made others: a helper's loop runs for each of its calls, and
    an inner loop for each iteration of the outer one.
    """
    flow = reading.flow
    running: dict[str, list[Step]] = defaultdict(list)
    for step in flow.steps.values():
        if step.span is None or step.span not in spans or not step.results:
            continue
        inside = flow.parent.get(step.path)
        place = inside.path if inside is not None else ""
        if spans[step.span]:
            running[place].append(step)
        elif ended := running.pop(place, None):
            yield ended
    yield from running.values()


def _rounds(reading: Reading, steps: Sequence[Step]) -> int:
    """Return how many iterations made the same equations; 0 where they differ.

    An iteration comes back to each of its places. Where it has one place alone, the rarest
    equation counts: others may be there several times.
    """
    visits: Counter[Span | None] = Counter()
    kinds: Counter[object] = Counter()
    before = None
    for step in steps:
        visits[step.span] += step.span != before
        before = step.span
        kinds[step.span, _kind(reading, step)] += 1
    counts = visits if max(visits.values()) > 1 else kinds
    rounds = min((count for count in counts.values() if count > 1), default=0)
    alike = sum(count for count in kinds.values() if count >= rounds - 2)
    return rounds if alike >= _ALIKE * len(steps) else 0


def _kind(reading: Reading, step: Step) -> object:
    """Return what two equations have in common that do the same with arrays of the same types."""
    operands, results = (
        tuple(reading.flow.value(number).text for number in numbers)
        for numbers in (step.operands, step.results)
    )
    parameters = tuple(item for item in step.parameters if item[0] not in _WHERE)
    return step.primitive, operands, results, parameters, tuple(map(_inner, step.bodies))


def _inner(body: Body) -> object:
    return tuple((step.primitive, tuple(map(_inner, step.bodies))) for step in body.steps)


def _iterated(loop: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Return the targets of a loop, each with what it takes its values from."""
    if isinstance(loop, ast.For):
        yield loop.target, loop.iter
    for clause in getattr(loop, "generators", ()):
        yield clause.target, clause.iter


def _is_of_axes(loop: ast.AST) -> bool:
    """Whether an iteration is of an axis: there are as many as the array has, which are few."""
    return any(_names_axes(part) for parts in _iterated(loop) for part in parts)


def _names_axes(values: ast.AST) -> bool:
    """Whether an expression reads `x.ndim`, `shape` and the like; `x.shape[0]` is a length."""
    match values:
        case ast.Subscript(slice=ast.Constant()):
            return False
        case ast.Name(id=name) | ast.Attribute(attr=name) if _AXES.fullmatch(name):
            return True
    return any(map(_names_axes, ast.iter_child_nodes(values)))


def _makes_shapes(loop: ast.AST) -> bool:
    """Whether a number that the loop counts is a length or an axis of what its iterations make."""
    names = {
        node.id
        for target, _ in _iterated(loop)
        for node in ast.walk(target)
        if isinstance(node, ast.Name)
    }
    lengths = [
        part
        for node in ast.walk(loop)
        if isinstance(node, ast.Call)
        for part in (
            *(node.args if _called(node) in _LENGTHS else ()),
            *(word.value for word in node.keywords if word.arg and _AXES.fullmatch(word.arg)),
        )
    ]
    return any(
        isinstance(node, ast.Name) and node.id in names
        for length in lengths
        for node in ast.walk(length)
    )


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_meant(function: ast.AST | None) -> bool:
    """Whether its author unrolls on purpose, and says so in the name of the function."""
    return "unroll" in getattr(function, "name", "")


def _is_of_an_example(reading: Reading, loop: _Loop) -> bool:
    """Whether the loop is over an array that stands for a list or a dictionary: its length is the example's alone."""
    arguments = getattr(loop.function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return False
    arrays = {reading.flow.values[number].said for number in reading.flow.inputs}
    return any(
        isinstance(values, ast.Name)
        and values.id == argument.arg
        and argument.arg in arrays
        and argument.annotation is not None
        and bool(_CONTAINERS.search(ast.unparse(argument.annotation)))
        for _, values in _iterated(loop.node)
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    )
