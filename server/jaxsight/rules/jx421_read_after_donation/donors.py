"""Functions of a module that donate arguments, by the names that they are called by."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxsight.rules.text.expressions import dotted

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_JITS = frozenset({"jax.jit", "jit", "jax.pmap", "pmap", "pjit", "pjit.pjit"})
"""`nnx.jit` updates the objects that it is given, so they can be read afterwards."""


@dataclass(frozen=True, slots=True)
class Donor:
    """A function that donates arguments."""

    name: str
    """How it is called: `step`, `self.step`."""
    positions: frozenset[int]
    """The positions of the arguments that it donates."""
    keywords: frozenset[str]
    """Their names, where these are known."""


class Donors:
    """What donates in a module, and where it can be called by its name."""

    def __init__(self, trees: Sequence[ast.Module]) -> None:
        self._statements = [statement for tree in trees for statement in tree.body]
        self._signatures = {
            node.name: node
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, FUNCTIONS)
        }
        self.of_module = self._bound(self._statements, {})
        self._any = any(
            keyword.arg in ("donate_argnums", "donate_argnames")
            for tree in trees
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            for keyword in call.keywords
        )

    def __bool__(self) -> bool:
        return self._any

    def functions(self) -> Iterator[tuple[FunctionNode, dict[str, Donor]]]:
        """Yield each function with the donating functions that it can call by name."""
        yield from self._inside(self._statements, self.of_module)

    def _inside(
        self, body: Sequence[ast.stmt], visible: dict[str, Donor]
    ) -> Iterator[tuple[FunctionNode, dict[str, Donor]]]:
        for node in own(body):
            if isinstance(node, ast.ClassDef):
                yield from self._inside(node.body, visible | self._of_class(node))
            elif isinstance(node, FUNCTIONS):
                names = {node.arg for node in ast.walk(node.args) if isinstance(node, ast.arg)}
                outer = {key: donor for key, donor in visible.items() if key not in names}
                inner = self._bound(node.body, outer)
                yield node, inner
                yield from self._inside(node.body, inner)

    def _bound(self, body: Sequence[ast.stmt], outer: dict[str, Donor]) -> dict[str, Donor]:
        """Return what a scope can call: what it binds once, and what the outer scopes bind."""
        count: Counter[str] = Counter()
        bound: dict[str, Donor] = {}
        for node in own(body):
            for name in _binds(node):
                count[name] += 1
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    donor = self._decorated(node)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    donor = self.of_call(call, name)
                case _:
                    continue
            if donor is not None:
                bound[name] = donor
        inherited = {name: donor for name, donor in outer.items() if not count[name]}
        return inherited | {name: donor for name, donor in bound.items() if count[name] == 1}

    def _of_class(self, node: ast.ClassDef) -> dict[str, Donor]:
        """Return the methods that donate, and the attributes of `self` bound to such functions."""
        donors: dict[str, Donor] = {}
        count: Counter[str] = Counter()
        for method in own(node.body):
            if not isinstance(method, FUNCTIONS):
                continue
            count[f"self.{method.name}"] += 1
            donor = self._decorated(method)
            static = any(dotted(decorator) == "staticmethod" for decorator in method.decorator_list)
            if donor is not None:
                moved = donor.positions if static else {at - 1 for at in donor.positions}
                name = f"self.{method.name}"
                donors[name] = replace(donor, name=name, positions=frozenset(moved))
            for statement in own(method.body):
                if not isinstance(statement, ast.Assign):
                    continue
                for target in statement.targets:
                    if dotted(target).startswith("self."):
                        count[dotted(target)] += 1
                        assigned = (
                            self.of_call(statement.value, dotted(target))
                            if isinstance(statement.value, ast.Call)
                            else None
                        )
                        if assigned is not None:
                            donors[assigned.name] = assigned
        return {name: donor for name, donor in donors.items() if count[name] == 1}

    def _decorated(self, function: FunctionNode) -> Donor | None:
        """Return the donations of a function by its decorator `jax.jit(donate_argnums=…)`.

        Other decorators around it may change its arguments.
        """
        match [
            decorator
            for decorator in function.decorator_list
            if dotted(decorator) != "staticmethod"
        ]:
            case [ast.Call(func=called, args=arguments, keywords=keywords)]:
                if any(dotted(candidate) in _JITS for candidate in (called, *arguments[:1])):
                    return _donor(function.name, keywords, function)
        return None

    def of_call(self, call: ast.Call, name: str) -> Donor | None:
        """Return the function that `jax.jit(f, donate_argnums=…)` makes."""
        keywords = call.keywords
        if dotted(call.func) not in _JITS:
            match call.func:  # partial(jax.jit, donate_argnums=…)(f)
                case ast.Call(args=[jit], keywords=keywords) if dotted(jit) in _JITS:
                    pass
                case _:
                    return None
        if not call.args:
            return None
        signature: FunctionNode | ast.Lambda | None = None
        match call.args[0]:
            case ast.Lambda() as signature:
                pass
            case ast.Name(id=function):
                signature = self._signatures.get(function)
        return _donor(name, keywords, signature)


def _donor(
    name: str, keywords: Sequence[ast.keyword], signature: FunctionNode | ast.Lambda | None
) -> Donor | None:
    arguments_by_name = {keyword.arg: keyword.value for keyword in keywords}
    if not {"donate_argnums", "donate_argnames"} & arguments_by_name.keys():
        return None
    arguments = signature.args if signature is not None else None
    parameters = (
        [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        if arguments
        else []
    )
    positions, names = set[int](), set[str]()
    for value in _literals(arguments_by_name.get("donate_argnums")):
        if isinstance(value, int):
            positions.add(value if value >= 0 else value + len(parameters))
    for value in _literals(arguments_by_name.get("donate_argnames")):
        if isinstance(value, str):
            names.add(value)
    names |= {parameters[at] for at in positions if 0 <= at < len(parameters)}
    positions |= {parameters.index(name) for name in names if name in parameters}
    return Donor(name, frozenset(positions), frozenset(names)) if positions or names else None


def _literals(node: ast.expr | None) -> Iterable[object]:
    if node is None:
        return ()
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ()
    return value if isinstance(value, tuple | list | set) else (value,)


def own(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a scope, those in its loops and branches included."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        inner: list[ast.stmt] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                inner.append(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                inner += child.body
        waiting += reversed(inner)


def _binds(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement itself binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                yield alias.asname or alias.name.partition(".")[0]
            return
    parts = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    for part in parts:
        for child in ast.walk(part):
            if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
                yield child.id
