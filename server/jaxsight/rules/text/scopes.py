"""The scope of a function: its names, who binds them, and what its values are made from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.statements import full_name

Source = tuple[str, str]
"""A function and its parameter; an empty parameter for arrays that the function computes."""
Sources = frozenset[Source]

NOTHING: Sources = frozenset()

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

MAPS = frozenset(
    {
        "jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map", "map", "jax.tree.map_with_path",
        "jax.tree_util.tree_map_with_path", "functools.reduce", "jax.tree.reduce",
    }
)  # fmt: skip
"""Functions that call their first argument on the others."""
Node = tuple[ast.AST, tuple[ast.AST, ...]]


@dataclass(eq=False, slots=True)
class NameScope:
    """A function, or the module (`node` is `None`)."""

    name: str
    """`Model.step`, `outer.<locals>.inner`; empty for the module."""
    node: FunctionNode | None
    parent: NameScope | None
    owner: str
    """The class that a method is of, by its name; empty otherwise."""
    parameters: tuple[str, ...]
    imports: Mapping[str, str]
    origins: Callable[[NameScope, ast.expr], Sources] = field(init=False)
    bound: set[str] = field(default_factory=set)
    declared: dict[str, str] = field(default_factory=dict)
    """Names that are `global` or `nonlocal`."""
    functions: dict[str, NameScope] = field(default_factory=dict)
    """Functions defined in it, by name."""
    lambdas: dict[ast.Lambda, NameScope] = field(default_factory=dict)
    aliases: dict[str, ast.expr] = field(default_factory=dict)
    """Names that are bound once, to calls: `step = jax.jit(f)`."""
    nodes: list[Node] = field(default_factory=list)
    """Its nodes without those of inner functions, each with the conditions and `with` around it."""

    @property
    def itself(self) -> str:
        """What a method calls its object; empty for others."""
        first = self.parameters[:1]
        return first[0] if self.owner and first and first[0] in ("self", "cls") else ""

    def enclosing(self) -> Iterator[NameScope]:
        """Yield the scope and those around it, the module's last."""
        scope: NameScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def holder(self, name: str) -> NameScope:
        """Return the scope that binds a name; the module's for globals, builtins and imports."""
        *functions, module = self.enclosing()
        if self.declared.get(name) == "global":
            return module
        binding = (s for s in functions if name in s.bound and name not in s.declared)
        return next(binding, module)

    def full(self, node: ast.expr) -> str:
        """Return the full name that an expression has; nothing for what is bound in functions."""
        name = dotted(node)
        if not name:
            return ""
        is_local = self.holder(name.partition(".")[0]).node is not None
        return "" if is_local else full_name(name, self.imports)

    def sources(self, node: ast.expr) -> Sources:
        """Return what an expression's value is made from."""
        return self.origins(self, node)
