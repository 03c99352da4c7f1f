"""Keys that statements of a text use one after another, also by another name or in a container.

Found for functions that are not traced, or not yet: in statements of one block, which follow each
other whatever happens. What is assigned in between, or may be, is forgotten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.jx403_key_reuse.key_uses import handed, is_assigned, path_of, root_of, use_of
from jaxsight.rules.text.expressions import FunctionNode
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import Imports, blocks_of, written
from jaxsight.rules.violation import NodeViolation
from jaxsight.rules.wording import quoted
from jaxsight.text.names import bound_in

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
            before = self.first.setdefault(self._key(used[1]), call)
            if before is not call and not _together(self.scope, before, call):
                yield _violation(self.scope, before, call)
        changed = handed(self.scope, statement)
        for path in [*self.first, *self.same, *self.same.values()]:
            root = root_of(path)
            if path != root and (root in changed or is_assigned(statement, path)):
                self._drop(path)
        self._forget(set(bound_in(statement)))
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                for item, part in _parts(name, value):
                    if (path := path_of(part)) and root_of(path) != name:
                        self.same[item] = self._key(path)

    def _key(self, path: str) -> str:
        return self.same.get(path, path)

    def _forget(self, names: set[str]) -> None:
        for path in [*self.first, *self.same, *self.same.values()]:
            if root_of(path) in names:
                self._drop(path)

    def _drop(self, path: str) -> None:
        self.first.pop(path, None)
        self.same = {item: key for item, key in self.same.items() if item != path and key != path}


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
            case (
                ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp()
            ):
                continue
            case ast.IfExp(test=first) | ast.BoolOp(values=[first, *_]):
                waiting.append(first)
                continue
            case ast.Call():
                calls.append(node)
        waiting += ast.iter_child_nodes(node)
    return sorted(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))


def _together(scope: NameScope, before: ast.Call, call: ast.Call) -> bool:
    """Whether two calls shuffle arrays in the same order on purpose."""
    return scope.full(before.func) == scope.full(call.func) == "jax.random.permutation"


def _violation(scope: NameScope, before: ast.Call, call: ast.Call) -> NodeViolation:
    splits = [scope.full(each.func) == "jax.random.split" for each in (before, call)]
    if all(splits):
        equal = written(ast.Tuple(before.args[1:])) == written(ast.Tuple(call.args[1:]))
        message = (
            f"PRNG key split twice: the splits {'give the same' if equal else 'may share'} keys"
        )
    elif any(splits):
        message = "PRNG key both drawn from and split: draws may repeat those of its subkeys"
    else:
        message = "PRNG key reused: both calls draw from the same random bits"
    return NodeViolation(
        ast.copy_location(ast.Constant(None), call),
        message,
        help=SPLIT_ONCE if all(splits) else SPLIT_FIRST,
        notes=(f"{quoted(written(before))} used the key first",),
    )
