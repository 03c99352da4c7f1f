"""Which calls of a module return before their results are computed.

JAX dispatches compiled functions and the functions of `jax.numpy` asynchronously
(https://docs.jax.dev/en/latest/async_dispatch.html). Only what is certain in the text counts: names
that are bound to nothing but transformed functions.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxsight.rules.text.expressions import FunctionNode, dotted, name_of
from jaxsight.rules.text.statements import Imports, full_name, own_statements
from jaxsight.rules.text.transformations import (
    MAKE_FUNCTIONS,
    handed_in,
    is_partial,
    of_decorator,
    transformation,
)
from jaxsight.text.names import bound_by, bound_in_scope, parameters_of

WAITS = frozenset(
    {
        "block_until_ready", "device_get", "effects_barrier", "item", "tolist", "asnumpy",
        "__array__", "tobytes", "process_allgather", "sync_global_devices",
    }
)  # fmt: skip
"""Functions and methods that return when values are there."""
_WAITING = re.compile(r"sync|wait|block|barrier|ready|join|flush|drain|result|fetch")
"""Names of functions that may wait for what was dispatched."""
_LIBRARY = re.compile(
    r"jax\.(numpy|lax|nn(?!\.initializers)|scipy|image|random)\.([\w.]*\.)?([a-z]\w*)"
)
_MAKES = re.compile(
    r"(as|from|frombuffer)?array|(zeros|ones|full|empty)(_like)?|a?range|linspace|logspace|eye|"
    r"identity|key|PRNGKey|split|fold_in|clone|wrap_key_data|key_data|key_impl|copy|"
    r"shape|ndim|size|dtype|result_type|issubdtype|isdtype|iinfo|finfo|promote_types|can_cast|"
    r"u?int\d+|b?float\d+\w*|complex\d+|bool_|set_printoptions|save|savez|load|axis_size|"
    r"broadcast_shapes|stop_gradient|\w*(shard|constraint|initializers?|precision)\w*"
)
"""Functions of these modules that make or describe arrays, and are seldom what is measured."""


@dataclass(frozen=True, slots=True)
class DispatchFacts:
    """What a statement says, whatever the rest of its module says."""

    bound: tuple[str, ...]
    """The module's names that it binds, once for each time; attributes of them too."""
    dispatching: tuple[str, ...]
    """Those of them that it binds to functions that dispatch, once for each time."""
    renamed: tuple[tuple[str, str], ...]
    """Names that it binds to what other names stand for, perhaps with some of the arguments."""
    waiting: frozenset[str]
    """The functions in it that wait for values somewhere."""
    handed: tuple[tuple[str, int | str, str], ...]
    """Functions that are given a function: the parameter, and the name of what is given.

    The name is empty for an expression that makes a function which dispatches.
    """
    traced: frozenset[str]
    """Names of functions that are given to transformations."""


def facts_of(tree: ast.Module, imported: Imports) -> DispatchFacts:
    """Return what a statement says about functions that dispatch."""
    scope = DispatchScope(dict(imported))
    bindings = list(_bindings(tree.body, scope))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    functions = [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]
    own = {
        name
        for function in functions
        for name in (*parameters_of(function.args), *bound_in_scope(*function.body))
    }
    return DispatchFacts(
        (*bound_in_scope(*tree.body), *(name for name, _ in bindings if "." in name)),
        tuple(name for name, value in bindings if value is None),
        tuple((name, value) for name, value in bindings if value),
        frozenset(function.name for function in functions if _waits(function)),
        (
            *(each for call in calls for each in _handed(call, scope) if each[2] not in own),
            *(each for function in functions for each in _decorating(function, scope)),
        ),
        frozenset(
            name
            for call in calls
            for handed in handed_in(call, scope.imports)
            if (name := dotted(handed.function))
        ),
    )


def _bindings(body: Sequence[ast.stmt], scope: DispatchScope) -> Iterator[tuple[str, str | None]]:
    """Yield names and attributes that statements bind, each with the name of what it stands for.

    `None` stands for a function that dispatches, an empty name for what is not known.
    """
    for node in own_statements(body):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                dispatches = _is_decorated(node, scope)
                yield name, None if dispatches else _returned_call(node)
            case ast.Assign(targets=targets, value=value):
                stands_for: str | None = dotted(value)
                match value:
                    case _ if scope.is_function(value):
                        stands_for = None
                        yield from _in_place_of_itself(node, body)
                    case ast.Call(func=function, args=[first, *_]):
                        given = is_partial(function, scope.imports)
                        stands_for = dotted(first) if given else ""
                yield from ((name, stands_for) for name in map(dotted, targets) if name)


def _in_place_of_itself(node: ast.Assign, body: Sequence[ast.stmt]) -> Iterator[tuple[str, None]]:
    """Yield the name of `f = jax.jit(f)`, where the function before it is not to be had after."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=inner), *_])):
            if name == inner and any(node is statement for statement in body):
                yield name, None


def _returned(function: FunctionNode) -> list[ast.expr]:
    """Return what a function itself returns, without those inside of it."""
    returns = (node for node in own_statements(function.body) if isinstance(node, ast.Return))
    return [node.value for node in returns if node.value is not None]


def _returned_call(function: FunctionNode) -> str:
    """Return what an ordinary function returns the result of: `step` for `return step(x)`."""
    match function, _returned(function):
        case ast.FunctionDef(decorator_list=[]), [ast.Call(func=called)]:
            name = dotted(called)
            own = {*parameters_of(function.args), *bound_in_scope(*function.body)}
            return "" if name.partition(".")[0] in own or _waits(function) else name
        case _:
            return ""


def _handed(call: ast.Call, scope: DispatchScope) -> Iterator[tuple[str, int | str, str]]:
    if not isinstance(call.func, ast.Name):
        return
    given: list[tuple[int | str, ast.expr]] = list(enumerate(call.args))
    given += ((word.arg or "", word.value) for word in call.keywords)
    for at, value in given:
        if scope.is_function(value):
            yield call.func.id, at, ""
        elif name := dotted(value):
            yield call.func.id, at, name


def _decorating(function: FunctionNode, scope: DispatchScope) -> Iterator[tuple[str, int, str]]:
    """Yield the decorators around one that makes a function dispatch."""
    for outer, inner in zip(function.decorator_list, function.decorator_list[1:], strict=False):
        if isinstance(outer, ast.Name) and scope.decorates(inner):
            yield outer.id, 0, ""


def _waits(function: FunctionNode) -> bool:
    return any(
        name_of(node) in WAITS or dotted(node.func) in ("float", "np.asarray", "np.array")
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    )


@dataclass(frozen=True, slots=True)
class DispatchScope:
    """What is known of the names that code in a scope can use."""

    imports: Mapping[str, str]
    functions: frozenset[str] = frozenset()
    """Functions that dispatch, by dotted names."""
    waiting: frozenset[str] = frozenset()
    """Functions that may wait for values."""
    local: frozenset[str] = frozenset()
    """Names of functions, which hide imports."""

    def inside(self, function: FunctionNode, dispatching: frozenset[str]) -> DispatchScope:
        """Return the scope of a function's body; some of its parameters are such functions."""
        parameters = frozenset(parameters_of(function.args))
        bound = Counter(bound_in_scope(*function.body))
        statements = own_statements(function.body)
        imports = (node for node in statements if isinstance(node, ast.Import | ast.ImportFrom))
        imported = {name for node in imports for alias in node.names for name in bound_by(alias)}
        hidden = parameters - {"self"} | (bound.keys() - imported)
        outer = frozenset(name for name in self.functions if name.partition(".")[0] not in hidden)
        scope = replace(
            self,
            functions=outer | {name for name in dispatching if not bound[name]},
            local=self.local | hidden,
        )
        bindings = list(_bindings(function.body, scope))
        bound.update(name for name, _ in bindings if "." in name)
        made = Counter(
            name for name, value in bindings if value is None or value in scope.functions
        )
        own = {name for name, count in made.items() if bound[name] == count}
        return replace(scope, functions=scope.functions | own)

    def of_class(self, node: ast.ClassDef) -> DispatchScope:
        """Return the scope of a class's methods: `self.step` may be a function that dispatches."""
        count: Counter[str] = Counter()
        made: Counter[str] = Counter()
        for method in own_statements(node.body):
            if not isinstance(method, FunctionNode):
                continue
            decorated = [(method.name, None)] if _is_decorated(method, self) else []
            bindings = [
                (name.removeprefix("self."), value)
                for name, value in _bindings(method.body, self)
                if name.startswith("self.")
            ]
            count.update([method.name, *(name for name, _ in bindings)])
            made.update(name for name, value in [*decorated, *bindings] if value is None)
        own = {f"self.{name}" for name, times in made.items() if count[name] == times}
        return replace(self, functions=self.functions | own)

    def full(self, node: ast.expr) -> str:
        """Return the full name of an expression; nothing for what functions bind."""
        name = dotted(node)
        return full_name(name, self.imports) if name.partition(".")[0] not in self.local else ""

    def decorates(self, decorator: ast.expr) -> bool:
        """Whether a decorator makes a function dispatch: `@jax.jit`, `@partial(jax.jit, …)`."""
        if of_decorator(decorator, self.imports) is None:
            return False
        names = (part for part in ast.walk(decorator) if isinstance(part, ast.Name | ast.Attribute))
        return any(transformation(name, self.imports) in MAKE_FUNCTIONS for name in names)

    def is_function(self, node: ast.expr) -> bool:
        """Whether an expression is a function that returns before its results are computed."""
        match node:
            case ast.Name() | ast.Attribute():
                return dotted(node) in self.functions
            case ast.Call(func=ast.Attribute(value=lowered, attr="compile"), args=[]):
                return isinstance(lowered, ast.Call) and name_of(lowered) == "lower"
            case ast.Call(func=function, args=[first, *_]):
                made_by = transformation(function, self.imports)
                if made_by in MAKE_FUNCTIONS:
                    return not made_by.startswith("flax.nnx.")  # it may return nothing
                if isinstance(function, ast.Call) and is_partial(function.func, self.imports):
                    return self.decorates(function)
                return is_partial(function, self.imports) and self.is_function(first)
            case _:
                return False

    def is_library(self, call: ast.Call) -> bool:
        """Whether a call computes an array with a function of JAX's libraries."""
        match = _LIBRARY.fullmatch(self.full(call.func))
        return match is not None and _MAKES.fullmatch(match[3]) is None

    def dispatches(self, call: ast.Call) -> bool:
        """Whether a call returns before its result is computed."""
        return self.is_function(call.func) or self.is_library(call)

    def may_wait(self, call: ast.Call) -> bool:
        """Whether a call may wait for all that was dispatched, by its name."""
        name = name_of(call)
        return name in WAITS or name in self.waiting or _WAITING.search(name) is not None


def _is_decorated(function: FunctionNode, scope: DispatchScope) -> bool:
    """Whether a decorator makes a function dispatch, and it returns something.

    Those of `nnx.jit` may only update what they are given.
    """
    first = function.decorator_list[:1]
    return any(map(scope.decorates, first)) and bool(_returned(function))


def of_module(facts: Sequence[DispatchFacts], imports: Mapping[str, str]) -> DispatchScope:
    """Return the scope of the module itself."""
    bound = Counter(name for fact in facts for name in fact.bound)
    made = Counter(name for fact in facts for name in fact.dispatching)
    renamed = [pair for fact in facts for pair in fact.renamed]
    functions = {name for name, count in made.items() if bound[name] == count}
    functions |= {name for name, value in renamed if value in functions and bound[name] == 1}
    waiting = frozenset(name for fact in facts for name in fact.waiting)
    return DispatchScope(imports, frozenset(functions), waiting)


def dispatching_parameters(
    function: FunctionNode, facts: Sequence[DispatchFacts], scope: DispatchScope
) -> frozenset[str]:
    """Return the parameters of a function that calls in the module give functions that dispatch."""
    positional = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    names = frozenset(parameters_of(function.args))
    found = set()
    for fact in facts:
        for callee, at, given in fact.handed:
            if callee == function.name and (not given or given in scope.functions):
                if isinstance(at, str):
                    found.add(at)
                elif at < len(positional):
                    found.add(positional[at])
    return frozenset(found & names)
