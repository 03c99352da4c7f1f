"""JX460: the processes of a job trace different programs, and then wait for each other."""

# Longer than most rules: what decides is followed through the names and functions of a file.

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.rule import Decides, DifferingPrograms, NodeViolation, Rule, Violation
from jaxsight.rules.text.expressions import FunctionNode, dotted, name_of
from jaxsight.rules.wording import quoted, short

# The branch or loop that decides which program a process traces.

_INDEX = {
    *("process_index", "process_count", "process_indices", "host_id", "host_ids", "host_count"),
    *("local_devices", "local_device_count"),
}
_RUN = {
    *("time", "time_ns", "perf_counter", "monotonic", "now", "today", "uuid1", "uuid4"),
    *("getpid", "gethostname", "getenv", "open", "read_text", "read_bytes", "exists", "is_file"),
    *("listdir", "iterdir", "glob", "rglob", "scandir", "random", "randint", "choice", "uniform"),
    *("shuffle", "sample", "normal", "randn", "rand", "default_rng", "id"),
}
"""Functions whose results differ between two runs."""
_SETS = {"set", "frozenset", "union", "intersection", "difference", "symmetric_difference"}
_UNORDERED = {"sorted", "len", "min", "max", "any", "all"}
"""Functions whose results do not depend on the order of a set."""
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_ROUNDS = 5
"""Assignments through which a value is followed, a choice."""


def deciding(differing: DifferingPrograms) -> ast.expr | None:
    """Return the condition of the branch, or what the loop runs over; `None` if it is not seen.

    It is around the expression that is traced differently, or leaves the function before it, or is
    around a call of its function. Without one, return the part of the expression that differs.
    """
    source = _Source(differing.tree, differing.decides)
    around = list(_around(differing.tree, differing.at))
    for outer, inner in reversed(list(zip([differing.tree, *around], around, strict=False))):
        for decision in _decisions(inner):
            if source.is_in(decision):
                return decision
        for before in _before(outer, inner):
            leaves = any(isinstance(node, _EXITS) for node in ast.walk(before))
            if isinstance(before, ast.If) and leaves and source.is_in(before.test):
                return before.test
    functions = {node.name for node in around if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(differing.tree):
        for decision in _decisions(node):
            if source.is_in(decision) and not functions.isdisjoint(_names(node)):
                return decision
    for node in around:
        if isinstance(node, ast.expr) and (node.lineno, node.col_offset) == differing.at:
            return source.part(node)
    return None


class _Source:
    """The values of a file that depend on what decides."""

    def __init__(self, tree: ast.AST, decides: Decides) -> None:
        self._decides = decides
        self._named: set[str] = set()
        for _ in range(_ROUNDS):
            before = len(self._named)
            for node in ast.walk(tree):
                self._named.update(self._named_by(node))
            if len(self._named) == before:
                break

    def is_in(self, expression: ast.AST) -> bool:
        """Return whether an expression depends on what decides."""
        return any(map(self._is, self._parts(expression)))

    def part(self, expression: ast.AST) -> ast.expr | None:
        """Return the first part of an expression that depends on what decides."""
        parts = (node for node in self._parts(expression) if isinstance(node, ast.expr))
        return next(filter(self._is, parts), None)

    def _is(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._named
            case ast.Attribute(attr=name):
                by_index = self._decides is Decides.INDEX and name in _INDEX
                by_run = self._decides is Decides.RUN and name == "environ"
                return by_index or by_run or f".{name}" in self._named
            case ast.Set() | ast.SetComp():
                return self._decides is Decides.HASH_SEED
            case ast.Call():
                makes = {Decides.INDEX: _INDEX, Decides.HASH_SEED: _SETS, Decides.RUN: _RUN}
                of_key = dotted(node.func).startswith("jax.random.")
                return name_of(node) in makes[self._decides] and not of_key
            case _:
                return False

    def _parts(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield an expression and its parts; of sets only where their order matters."""
        if self._decides is Decides.HASH_SEED:
            if isinstance(node, ast.Call) and name_of(node) in _UNORDERED:
                return
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                return
        yield node
        for child in ast.iter_child_nodes(node):
            yield from self._parts(child)

    def _named_by(self, node: ast.AST) -> Iterator[str]:
        """Yield the names and attributes that a statement gives to what depends on it."""
        match node:
            case ast.Assign(targets=targets, value=value) if self.is_in(value):
                yield from (name for target in targets for name in _stored(target))
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ) if self.is_in(value):
                yield from _stored(target)
            case ast.FunctionDef(name=name):
                returned = (each.value for each in ast.walk(node) if isinstance(each, ast.Return))
                if any(value is not None and self.is_in(value) for value in returned):
                    yield name
            case _:
                pass


def _stored(target: ast.expr) -> Iterator[str]:
    """Yield the names of a target, and its attributes with a dot."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(attr=name):
            yield f".{name}"
        case ast.Tuple(elts=items) | ast.List(elts=items):
            for item in items:
                yield from _stored(item)
        case _:
            pass


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _decisions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what decides whether and how often the parts of a node run."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test
        case ast.For(iter=values) | ast.AsyncFor(iter=values):
            yield values
        case ast.Match(subject=subject):
            yield subject
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from (each.iter for each in node.generators)
            yield from (test for each in node.generators for test in each.ifs)
        case _:
            pass


def _before(node: ast.AST, inner: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements before one in the same block, the nearest first."""
    if isinstance(node, ast.Module):
        return
    for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and inner in block:
            yield from reversed(block[: block.index(inner)])


def _around(node: ast.AST, at: tuple[int, int]) -> Iterator[ast.AST]:
    """Yield the nodes around a place, outermost first."""
    for child in ast.iter_child_nodes(node):
        if _holds(child, at):
            yield child
            yield from _around(child, at)
            return


def _holds(node: ast.AST, at: tuple[int, int]) -> bool:
    line = getattr(node, "lineno", None)
    if line is None:
        return any(_holds(child, at) for child in ast.iter_child_nodes(node))
    if isinstance(node, FunctionNode):
        line = min((line, *(each.lineno for each in node.decorator_list)))
    end = (getattr(node, "end_lineno", None) or line, getattr(node, "end_col_offset", None) or 0)
    return (line, getattr(node, "col_offset", 0)) <= at < end


RULE = Rule(
    __name__, "Processes of a job trace different programs.", severity="warning", unless="JX414"
)


_MOST = 34
"""Characters of an expression in the message, next to 66 others."""
_HELP = {
    Decides.INDEX: "make the same calls in each process: test the process only to print or save, "
    "and use `jax.lax.axis_index` for what differs between devices",
    Decides.RUN: "let one process decide (`multihost_utils.broadcast_one_to_all`), or pass the "
    "value as an argument",
}
_BY = {
    Decides.INDEX: "{} depends on the process",
    Decides.HASH_SEED: "the order of {} differs",
    Decides.RUN: "{} differs between runs",
}
_UNNAMED = {
    Decides.INDEX: "process {1} traces another program than process 0",
    Decides.HASH_SEED: "processes trace different programs: the order of a set differs",
    Decides.RUN: "processes trace different programs: the same code traces another one each time",
}
_SEEN = {
    Decides.INDEX: "traced as processes 0 and {1} of {0}",
    Decides.HASH_SEED: "traced with two hash seeds, as two processes have them",
    Decides.RUN: "traced twice as the same process with the same hash seed",
}


@RULE.explains_processes
def explain(differing: DifferingPrograms) -> NodeViolation | Violation:
    """Name the branch, the set or the value that decides which program is traced."""
    decides, numbers = differing.decides, (differing.processes, differing.process)
    difference = "captured arrays differ"
    if differing.primitive:
        difference = f"their programs differ from `{differing.primitive}` on"
    notes = (
        f"{_SEEN[decides].format(*numbers)}: {difference}",
        "processes wait for each other while compiling and in collectives, so the job hangs",
    )
    node = deciding(differing)
    if node is None:
        message = _UNNAMED[decides].format(*numbers)
        return Violation(message, help=_help(decides, ""), notes=notes)
    text = ast.unparse(node)
    named = _BY[decides].format(quoted(text, most=_MOST))
    message = f"processes trace different programs: {named}"
    return NodeViolation(node, message, help=_help(decides, text), notes=notes)


def _help(decides: Decides, text: str) -> str:
    return _HELP.get(decides, f"iterate in the same order everywhere: `sorted({short(text)})`")
