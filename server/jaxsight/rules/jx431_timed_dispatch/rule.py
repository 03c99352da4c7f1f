"""JX431: a clock is read before what it times is computed, because nothing waits for the result.

JAX dispatches compiled functions and the functions of `jax.numpy` asynchronously
(https://docs.jax.dev/en/latest/async_dispatch.html). Found in the text of the module: between two
readings of a clock, and in what `timeit` runs. What may wait counts as waiting.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.rule import ModuleViolation, NodeViolation, Proof, Rule
from jaxsight.rules.text.expressions import dotted, keyword, name_of
from jaxsight.rules.text.jitted import JittedCalls, jit_of, jitted_module
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import Statement, blocks_of, imports_of, own_statements, written
from jaxsight.rules.wording import quoted
from jaxsight.text.magics import is_timed, timed_by_magics
from jaxsight.text.names import bound_in, read_in
from jaxsight.text.parsing import parse

RULE = Rule(
    __name__,
    "Clock is read before the timed computation has finished.",
    severity="warning",
    word="jax",
)

_CLOCK = re.compile(
    r"(time|timeit|datetime)\.(\w+\.)?(time|perf_counter|monotonic|default_timer|now|utcnow)(_ns)?"
)
_TIMEIT = re.compile(r"timeit\.(timeit|repeat|Timer)")
_LIBRARY = re.compile(
    r"jax\.(numpy|lax)\.(dot|vdot|matmul|einsum|tensordot|inner|outer|sort|argsort|cumsum|convolve|sum|"
    r"mean|var|std|max|min|prod|exp|log|sin|cos|tanh|sqrt|conv\w*|scan|fori_loop|while_loop)|"
    r"jax\.((numpy|scipy)\.(linalg|fft|signal|special)|nn|lax\.linalg|image)\.\w+"
)
"""Functions that compute, which are more often what is measured than those that make arrays."""
_WAITS = re.compile(
    r"item|tolist|asnumpy|__array__|tobytes|device_get|"
    r".*(sync|wait|block|barrier|ready|join|flush|drain|result|fetch|gather).*"
)
"""Names of functions that return when values are there, or may."""
_MAY_WAIT = re.compile(r"\bnp\.|numpy\.|block_until_ready|device_get")
"""What functions are given that wait for each part: `jax.tree.map(np.asarray, y)`."""
_SILENT = re.compile(
    r"isinstance|type|id|len|hasattr|callable|range|enumerate|zip|getattr|iter|next|t(qdm|range)|partial|"
    r"append(left)?|add|insert|extend|sum|mean|max|min|reshape|astype|dot|transpose|ravel|flatten|squeeze|"
    r"std|var|prod|any|all|arg\w+|cumsum|clip|round|set|get|take|copy\w*|items|keys|values|_?replace"
)
"""Functions, and methods of arrays and containers, that wait for no value."""
_STATIC = frozenset({"shape", "dtype", "ndim", "size", "nbytes", "sharding", "len", "isinstance"})
_ABOUT_DISPATCH = re.compile(
    r"(?i)(?<![a-z])(compil(e(?!d)|ing|ation)|trac(e(?!d)|ing)|lower(ing)?(?![a-z])|jitting|warm|cold|"
    r"dispatch|enqueu|async|overhead|launch|first)"
)
"""Words of those who measure something else than the computation."""

_What = Literal["clock", "compiled", "library", "wait", "call", ""]
"""`call` is one of something unknown; it is empty for what neither computes nor waits."""
_Blocks = tuple[tuple[ast.AST, int], ...]
"""The blocks around a statement: the compound one, and which of its blocks."""


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield what is dispatched last before a clock is read, unless something may wait for it.

    Functions that JAX traces are skipped: a clock in a trace measures the trace.
    """
    imports = imports_of(statements)
    clocks = [name for name, full in imports if re.match(r"(time|timeit|datetime)\b", full)]
    reads_clock = re.compile(rf"\b(?:{'|'.join(clocks)})\b" if clocks else "(?!)")
    if not any(is_timed(each.text) or reads_clock.search(each.text) for each in statements):
        return
    trees = [parse(each.text) for each in statements]  # those of the same text share their own
    number_of = {node: number for number, tree in enumerate(trees) for node in ast.walk(tree)}
    body = [node for tree in trees for node in tree.body]
    calls = JittedCalls(jitted_module(statements))
    scopes = scopes_of(ast.Module(body, []), dict(imports))
    runs = [(scopes[0], timed) for timed in timed_by_magics(trees)]
    found: list[NodeViolation] = []
    for scope in scopes:
        own = getattr(scope.node, "body", body)
        if isinstance(own, list) and not calls.is_traced(scope):
            found += _Timeline(scope, calls, own).unawaited()
        runs += (run for node, _ in scope.nodes for run in _run_by_timeit(node, scope))
    found += (last for run in runs for last in _Timeline(run[0], calls, run[1]).last())
    yield from (ModuleViolation(number_of[each.node], each) for each in found)


def _run_by_timeit(node: ast.AST, scope: NameScope) -> Iterator[tuple[NameScope, list[ast.stmt]]]:
    """Yield the scope and the statements that `timeit` runs."""
    if isinstance(node, ast.Call) and _TIMEIT.fullmatch(scope.full(node.func)):
        match node.args[0] if node.args else keyword(node, "stmt"):
            case ast.Lambda(body=value) as function if function in scope.lambdas:
                yield scope.lambdas[function], [ast.Expr(value)]
            case ast.Name(id=name) if name in scope.functions:
                yield scope.functions[name], getattr(scope.functions[name].node, "body", [])


class _Moment(NamedTuple):
    what: _What
    node: ast.AST
    blocks: _Blocks
    statement: ast.stmt


class _Timeline:
    """What happens in a scope, in the order in which Python evaluates it."""

    def __init__(self, scope: NameScope, calls: JittedCalls, body: Sequence[ast.stmt]) -> None:
        self._scope, self._calls, self._body = scope, calls, body
        self._all: list[_Moment] = []
        self._clocks: dict[str, list[int]] = {}
        """By the name that a time is bound to, the moments at which it was read."""
        self._elapsed: list[tuple[ast.AST, ast.stmt, int, int]] = []
        self._results: set[str] = set()
        """Names and attributes that may hold results that are not computed yet."""
        bound = [_bound(inner) for each in body for inner in ast.walk(each)]
        for targets, value in bound * 3:  # through up to three names in loops
            if value is not None and self._holds(value):
                parts = {dotted(part) for each in targets for part in ast.walk(each)}
                self._results |= parts - {"self", ""}
        self._run(body, ())

    def unawaited(self) -> Iterator[NodeViolation]:
        """Yield what is dispatched last between two readings of a clock and not waited for."""
        found: dict[ast.AST, NodeViolation | None] = {}
        for node, statement, start, stop in self._elapsed:
            around, at_stop = self._all[start].blocks, self._all[stop].blocks
            if at_stop[: len(around)] == around and not self._wait_in(at_stop[len(around) :]):
                for last in self.last(start + 1, stop, around):
                    is_else = last.node not in found and self._is_about_else(node, statement)
                    found.setdefault(last.node, None if is_else else last)
        yield from filter(None, found.values())

    def last(
        self, start: int = 0, stop: int | None = None, around: _Blocks = ()
    ) -> Iterator[NodeViolation]:
        """Yield what is dispatched last in the scope, or between moments, and not waited for."""
        between = self._all[start:stop]
        after = takewhile(lambda moment: moment.what != "wait", reversed(between))
        last = next((each for each in after if each.what in ("compiled", "library")), None)
        whats = {moment.what for moment in between}
        blocks = [block for block in last.blocks if block not in around] if last else []
        is_else = "call" in whats and "compiled" not in whats  # which may be what is measured
        if last is None or is_else or self._wait_in(blocks):
            return
        whole = _bound(last.statement)[1] or getattr(last.statement, "value", None)
        clocks = [each.statement for each in self._all if each.what == "clock"]
        node: Any = last.node if last.statement in clocks else whole or last.node
        wait = quoted(f"jax.block_until_ready({written(node)})", most=80)
        yield NodeViolation(
            node,
            f"{quoted(written(node))} is timed without waiting for its result",
            help=f"wait before the clock is read: {wait}",
            notes=("the call returns once the computation is dispatched, before it has finished",),
            data=sum(isinstance(block[0], ast.For | ast.While) for block in blocks),
        )

    def _wait_in(self, blocks: Iterable[tuple[ast.AST, int]]) -> bool:
        """Whether something waits in one of some blocks that are no branches."""
        waits = {block for each in self._all if each.what == "wait" for block in each.blocks}
        some = ast.If | ast.With | ast.Try | ast.Match
        return any(at == 0 and (of, at) in waits and not isinstance(of, some) for of, at in blocks)

    def _is_about_else(self, elapsed: ast.AST, statement: ast.stmt) -> bool:
        """Whether words around a measurement say that it is not about the computation."""
        is_simple = not hasattr(statement, "body")
        names = set(bound_in(statement)) if is_simple else set()
        texts = [self._scope.name, written(statement if is_simple else elapsed)]
        order = list(own_statements(self._body))
        after = order[order.index(statement) + 1 :]
        until = takewhile(lambda each: names.isdisjoint(bound_in(each)), after)
        simple = (each for each in until if not hasattr(each, "body"))
        texts += (written(each) for each in simple if not names.isdisjoint(read_in(each)))
        return any(map(_ABOUT_DISPATCH.search, texts))

    def _holds(self, node: ast.AST) -> bool:
        """Whether an expression may be, or hold, a result that is not computed yet."""
        match node:
            case ast.Constant() | ast.Lambda() | ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return False
            case ast.Name() | ast.Attribute() if dotted(node) in self._results:
                return True
            case ast.Call() if self._dispatched(node):
                return True
            case ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name)) if name in _STATIC:
                return False
        return any(map(self._holds, ast.iter_child_nodes(node)))

    def _dispatched(self, call: ast.Call) -> _What:
        """Return what a call dispatches, if it returns before its result is computed."""
        found = self._calls.called(self._scope, call)
        jitted = next(jit_of(call.func, self._scope.imports), None) if found is None else found[1]
        if jitted is not None:
            return "compiled" if jitted.how.library == "jax" else ""  # nnx's may return nothing
        return "library" if _LIBRARY.fullmatch(self._scope.full(call.func)) else ""

    def _run(self, body: Sequence[ast.stmt], blocks: _Blocks) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            inside = (*blocks, (node, 0)) if isinstance(node, ast.While) else blocks
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr | ast.withitem):
                    self._evaluate(child, node, inside)
            if isinstance(node, ast.If | ast.While | ast.Assert) and self._holds(node.test):
                self._all.append(_Moment("wait", node, inside, node))
            for number, block in enumerate(blocks_of(node)):
                self._run(block, (*blocks, (node, number)))
            if isinstance(node, ast.With) and not re.match(r"with (jax|open)\b", written(node)):
                self._all.append(_Moment("wait", node, blocks, node))  # when it is left, perhaps
            targets, value = _bound(node)
            for name in map(dotted, targets):
                if self._all and self._all[-1].what == "clock" and self._all[-1].node is value:
                    self._clocks.setdefault(name, []).append(len(self._all) - 1)
                else:
                    self._clocks.pop(name, None)

    def _evaluate(self, node: ast.AST, statement: ast.stmt, blocks: _Blocks) -> None:
        """Add the moments of an expression, those of its parts first."""
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            blocks = (*blocks, (node, 0))
        for child in ast.iter_child_nodes(node):
            self._evaluate(child, statement, blocks)
        what: _What = ""
        match node:
            case ast.Call():
                what = self._kind(node)
            case ast.BinOp(op=ast.Sub(), left=left, right=right):
                stop = self._reading(left, len(self._all))
                if stop is not None and (start := self._reading(right, stop)) is not None:
                    self._elapsed.append((node, statement, start, stop))
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                what = "wait"
            case ast.IfExp(test=part) | ast.Subscript(slice=part) | ast.FormattedValue(value=part):
                what = "wait" if self._holds(part) else ""
        if what:
            self._all.append(_Moment(what, node, blocks, statement))

    def _reading(self, node: ast.expr, before: int) -> int | None:
        """Return the moment at which a time was read last before another one."""
        moments = enumerate(self._all)
        itself = [at for at, each in moments if each.what == "clock" and each.node is node]
        readings = itself or self._clocks.get(dotted(node), [])
        return next((at for at in reversed(readings) if at < before), None)

    def _kind(self, call: ast.Call) -> _What:
        full, name = self._scope.full(call.func), name_of(call)
        if what := "clock" if _CLOCK.fullmatch(full) else self._dispatched(call):
            return what
        given = [*call.args, *(word.value for word in call.keywords)]
        may_wait = _WAITS.fullmatch(name) or _MAY_WAIT.search(" ".join(map(written, given)))
        is_silent = full.startswith(("jax.", "time.")) or _SILENT.fullmatch(name)
        if may_wait or (not is_silent and any(map(self._holds, (call.func, *given)))):
            return "wait"
        return "" if is_silent or name in ("print", "float", "int", "bool") else "call"


def _bound(node: ast.AST) -> tuple[list[ast.expr], ast.expr | None]:
    """Return what a node binds, or appends to, and the expression that it is made from."""
    match node:
        case ast.Call(func=ast.Attribute(value=target, attr="append"), args=[value]):
            return [target], value
        case ast.Assign(targets=targets, value=value):
            return targets, value
        case ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
            return [node.target], node.value
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            return [target], value
    return [], None


# The fix: wait for the result before the clock is read.


@RULE.fixes(
    "`jax.block_until_ready(f(x))`, or of what a loop carries after the loop", Proof.WRITTEN
)
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield a wait after the loop that carries the result, else one around what is dispatched.

    A loop that carries its result, as a training loop does, dispatches an iteration while the
    device computes the one before. A wait in each iteration would end that.
    """
    depth, node = context.finding.data, context.node
    if not isinstance(depth, int) or not isinstance(node, ast.expr):
        return
    wait = f"{context.imports.get('jax', 'jax')}.block_until_ready"
    loops = [each for each in context.ancestors(node) if isinstance(each, ast.For | ast.While)]
    statement = context.statement(node)
    if depth and isinstance(statement, ast.Assign) and statement.value is node:
        loop = loops[depth - 1]
        read = set(read_in(node))
        carried = next((name for name in bound_in(*statement.targets) if name in read), "")
        if carried and context.is_alone(loop):
            line = f"{wait}({carried})"
            edits = (*context.jax_import(), context.after(loop, line))
            yield Candidate(f"Wait after the loop: `{line}`", edits)
    edit = context.replace(node, f"{wait}({context.text(node)})")
    yield Candidate(f"Wait with `{wait}`", (*context.jax_import(), edit))
