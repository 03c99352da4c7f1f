"""Keys that code outside of traces uses again: in each iteration of a loop, or in each call.

Found in the text: a call of `jax.random` in a Python loop with a variable, an attribute or an item
that the loop leaves as it is; and in a method with an attribute that no method replaces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.rule import NodeViolation
from jaxsight.rules.text.expressions import FunctionNode, call_operands, dotted, keyword, path_of
from jaxsight.rules.text.jitted import JittedCalls
from jaxsight.rules.text.python_loops import PythonLoop
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import Imports, blocks_of, written
from jaxsight.rules.wording import quoted
from jaxsight.text.names import bound_in

# Calls of `jax.random` in a text, and what may replace the keys that they are given.

_SHARES = frozenset(
    {
        "fold_in", "key", "PRNGKey", "key_data", "wrap_key_data", "clone", "key_impl", "rbg_key",
        "threefry2x32_key", "unsafe_rbg_key",
    }
)  # fmt: skip
"""Functions of `jax.random` that consume no key."""


def use_of(scope: NameScope, node: ast.AST) -> tuple[str, str] | None:
    """Return the function of `jax.random` that a node calls, and the key as it is written."""
    if not isinstance(node, ast.Call):
        return None
    package, _, function = scope.full(node.func).rpartition(".")
    if package != "jax.random" or function in _SHARES:
        return None
    path = path_of(node.args[0] if node.args else keyword(node, "key"))
    return (function, path) if path else None


def root_of(path: str) -> str:
    """Return the variable of a path."""
    return re.split(r"[.\[]", path)[0]


def handed(scope: NameScope, node: ast.AST) -> set[str]:
    """Return the variables that calls are given, or methods are called of.

    What they are bound to may be changed there.
    """
    names: set[str] = set()
    for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
        if scope.full(call.func).startswith(("jax.", "numpy.")):
            continue
        names |= {each.id for each in call_operands(call) if isinstance(each, ast.Name)}
        if isinstance(call.func, ast.Attribute):
            names.add(dotted(call.func).partition(".")[0])
    return names


def is_assigned(node: ast.AST, path: str) -> bool:
    """Whether a node assigns a part of a path, or an item that may be it."""
    return any(
        isinstance(inner, ast.Attribute | ast.Subscript)
        and isinstance(inner.ctx, ast.Store | ast.Del)
        and path.startswith(path_of(inner))
        for inner in ast.walk(node)
    )


# Keys that statements of a text use one after another, also by another name or in a container.
#
# Found for functions that are not traced, or not yet: in statements of one block, which follow each
# other whatever happens. What is assigned in between, or may be, is forgotten.

SPLIT_FIRST = "split it first: `key, subkey = jax.random.split(key)`"
SPLIT_ONCE = "split it once, into all keys that you need: `jax.random.split(key, n)`"


def in_functions(tree: ast.Module, imports: Imports) -> tuple[NodeViolation, ...]:
    """Return second uses of keys in the functions of a statement."""
    return tuple(
        violation
        for scope in scopes_of(tree, dict(imports))
        if scope.node is not None and not isinstance(scope.node, ast.Lambda)
        if not scope.name.rpartition(".")[2].startswith("test")
        for violation in in_block(scope, scope.node.body)
    )


def in_block(scope: NameScope, body: Sequence[ast.stmt]) -> Iterator[NodeViolation]:
    """Yield second uses of keys in statements that follow each other, and in blocks of them."""
    uses = Uses(scope)
    for statement in body:
        yield from uses.read(statement)


@dataclass(slots=True)
class Uses:
    """The keys that were used so far, as the names are bound now."""

    scope: NameScope
    first: dict[str, ast.Call] = field(default_factory=dict)
    """By key: the call that used it first."""
    same: dict[str, str] = field(default_factory=dict)
    """Names and items that are another one: `keys[0]` of `keys = [key, key]`."""

    def read(self, statement: ast.stmt) -> Iterator[NodeViolation]:
        """Yield the second uses of keys in a statement, and follow what it assigns."""
        if isinstance(statement, FunctionNode | ast.ClassDef):
            self._forget({statement.name})
            return
        blocks = [block for block in blocks_of(statement) if block]
        for block in blocks:
            yield from in_block(self.scope, block)
        for call in _calls(statement) if not blocks else ():
            used = use_of(self.scope, call)
            if used is None:
                continue
            before = self.first.setdefault(self.same.get(used[1], used[1]), call)
            if before is not call:
                yield from _again(self.scope, before, call)
        changed = handed(self.scope, statement)
        self._forget(
            set(bound_in(statement)),
            lambda path, root: path != root and (root in changed or is_assigned(statement, path)),
        )
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                for item, part in _parts(name, value):
                    if (path := path_of(part)) and root_of(path) != name:
                        self.same[item] = self.same.get(path, path)

    def _forget(
        self, names: set[str], also: Callable[[str, str], bool] = lambda path, root: False
    ) -> None:
        """Forget the keys of variables that are bound anew, and others by path and variable."""
        for path in [*self.first, *self.same, *self.same.values()]:
            if (root := root_of(path)) in names or also(path, root):
                self.first.pop(path, None)
                self.same = {
                    item: key for item, key in self.same.items() if path not in (item, key)
                }


def _parts(name: str, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield a name with its value, or the items of a list, a tuple or a dict with theirs."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from ((f"{name}[{at}]", part) for at, part in enumerate(parts))
        case ast.Dict(keys=keys, values=parts):
            for key, part in zip(keys, parts, strict=True):
                if isinstance(key, ast.Constant):
                    yield f"{name}[{key.value!r}]", part
        case _:
            yield name, value


_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
"""Expressions whose parts are evaluated later, or several times."""


def _calls(statement: ast.stmt) -> list[ast.Call]:
    """Return the calls that a statement certainly makes, in order."""
    calls: list[ast.Call] = []
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.IfExp(test=first) | ast.BoolOp(values=[first, *_]):
                waiting.append(first)
            case _ if not isinstance(node, _LATER):
                calls += [node] if isinstance(node, ast.Call) else []
                waiting += ast.iter_child_nodes(node)
    return sorted(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))


def _again(scope: NameScope, before: ast.Call, call: ast.Call) -> Iterator[NodeViolation]:
    """Yield the second use of a key, unless two calls shuffle arrays alike on purpose."""
    functions = [scope.full(each.func) for each in (before, call)]
    if set(functions) == {"jax.random.permutation"}:
        return
    splits = [function == "jax.random.split" for function in functions]
    others = [written(ast.Tuple(each.args[1:])) for each in (before, call)]
    yield NodeViolation(
        ast.copy_location(ast.Constant(None), call),
        reused(splits, equal=others[0] == others[1]),
        help=SPLIT_ONCE if all(splits) else SPLIT_FIRST,
        notes=(f"{quoted(written(before))} used the key first",),
    )


def reused(splits: Sequence[bool], *, equal: bool) -> str:
    """Return the message on a key that two calls consume, by which of them split it.

    Splits into different numbers of keys begin with the same keys by default
    (`jax_threefry_partitionable`), but not with every implementation.
    """
    if all(splits):
        return f"PRNG key split twice: the splits {'give the same' if equal else 'may share'} keys"
    if any(splits):
        return "PRNG key both drawn from and split: draws may repeat those of its subkeys"
    return "PRNG key reused: both calls draw from the same random bits"


def reused_in_loop(splits: bool) -> str:
    """Return the message on a key that each iteration of a loop consumes."""
    if splits:
        return "PRNG key split in every iteration of a loop: all give the same keys"
    return "PRNG key reused in every iteration of a loop: all draw the same numbers"


_ONCE = re.compile(
    r"_*(init|initialize|setup|set_up|setUp|build|create|make|prepare|load|reset|test|main|new|"
    r"post_init)(_|$)"
)
"""Names of functions that are called once for an object."""


def in_loop(scope: NameScope, loop: PythonLoop, __: JittedCalls) -> Iterator[NodeViolation]:
    """Yield uses of a key that a loop leaves as it is."""
    if loop.count is not None and loop.count < 2:
        return
    bound = set(bound_in(*ast.iter_child_nodes(loop.node)))
    changed = handed(scope, loop.node)
    last, always = loop.statements[-1] if loop.statements else (None, False)
    if always and isinstance(last, ast.Break | ast.Return):
        return
    for _, call, _ in loop.calls():
        if (used := use_of(scope, call)) is None:
            continue
        function, path = used
        root = root_of(path)
        if root in bound or is_assigned(loop.node, path) or (path != root and root in changed):
            continue
        yield NodeViolation(
            ast.copy_location(ast.Constant(None), call),
            reused_in_loop(function == "split"),
            help=f"replace it in each iteration: `{path}, subkey = jax.random.split({path})`",
            notes=(f"the loop does not change {quoted(path)}",),
        )


def in_methods(
    tree: ast.Module, imports: Imports, traced: frozenset[str]
) -> tuple[NodeViolation, ...]:
    """Return uses of an attribute that only `__init__` assigns, in other methods.

    Their data are the attribute, which something else in the module may assign.
    """
    return tuple(
        violation
        for scope in scopes_of(tree, dict(imports))
        if scope.itself and scope.name not in traced
        for violation in _in_method(scope, tree)
    )


def _in_method(scope: NameScope, tree: ast.Module) -> Iterator[NodeViolation]:
    """Yield uses of an attribute that only `__init__` assigns, in other methods."""
    own, owner = scope.name.rpartition(".")[2], scope.owner.rpartition(".")[2]
    classes = (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef))
    class_ = next((each for each in classes if each.name == owner), None)
    if _ONCE.match(own) or class_ is None or class_.bases or class_.decorator_list:
        return
    for node, _ in scope.nodes:
        used = use_of(scope, node)
        if used is None or not isinstance(node, ast.Call):
            continue
        function, path = used
        first, _, attribute = path.partition(".")
        if first != scope.itself or not attribute.isidentifier():
            continue
        if set(_stores(class_, attribute)) != {"__init__"}:
            continue
        what = "gives the same keys" if function == "split" else "draws the same numbers"
        yield NodeViolation(
            ast.copy_location(ast.Constant(None), node),
            f"PRNG key {quoted(path, most=24)} is never replaced: each call {what}",
            help=f"replace it in the method: `{path}, subkey = jax.random.split({path})`",
            notes=(f"only `__init__` assigns it, and {quoted(own)} may be called many times",),
            data=attribute,
            severity="warning",
        )


_SETTERS = ("setattr", "object.__setattr__")


def _stores(class_: ast.ClassDef, attribute: str) -> Iterator[str]:
    """Yield the methods that assign an attribute of `self`, or that something is done with."""
    for method in class_.body:
        if not isinstance(method, FunctionNode):
            continue
        for node in ast.walk(method):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()) if name == attribute:
                    yield method.name
                case ast.Call(func=called) if dotted(called) in _SETTERS:
                    yield "setattr"
