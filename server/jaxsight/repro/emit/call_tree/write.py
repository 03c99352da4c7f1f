"""Writes a tree of calls as a module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxsight.interpreters.depth import room_for_nesting
from jaxsight.repro.capture.call_tree.records import (
    Call,
    FunctionRef,
    Ref,
    Tree,
)
from jaxsight.repro.emit.call_tree.functions import Functions
from jaxsight.sourcerizer import rules
from jaxsight.sourcerizer.errors import Unwritable
from jaxsight.sourcerizer.module_text import module_lines
from jaxsight.sourcerizer.options import Options
from jaxsight.sourcerizer.text.exprs import Atom
from jaxsight.sourcerizer.text.name_uses import names_read
from jaxsight.sourcerizer.text.names import identifier
from jaxsight.sourcerizer.text.statements import Function, Return
from jaxsight.sourcerizer.writing.scope import Scope
from jaxsight.sourcerizer.writing.writer import Writer


@dataclass(frozen=True, slots=True)
class Written:
    """A module that defines a function, and the arguments of the call that was recorded."""

    text: str
    arguments: tuple[Any, ...]
    """Arrays, numbers, and tuples, lists and dictionaries of these."""


def write(tree: Tree, name: str = "main") -> Written:
    """Write a tree of calls as a module that defines the function `name`.

    Raises:
        Unwritable: if a part of the tree has no public form, or is not known.
    """
    rules.register()
    writer = Writer(Options("pretty", user_names=False, fold=False))
    writer.names.keep(name)
    with room_for_nesting():
        scope = Scope.top(writer)
        functions = Functions(tree, writer)
        arguments = _Arguments(scope, functions)
        call = arguments.of_root()
        scope.body.append(Return(functions.call(scope, call)))
        read = set(names_read(scope.body))
        parameters = {
            parameter: argument
            for parameter, argument in arguments.arguments.items()
            if parameter in read
        }
        main = Function(name, tuple(parameters), scope.body)
        lines = module_lines(writer, [*functions.stand_ins.statements(), main], name)
    text = "\n".join(line.text for line in lines) + "\n"
    return Written(text, tuple(parameters.values()))


class _Arguments:
    """The arguments of the written function."""

    def __init__(self, scope: Scope, functions: Functions) -> None:
        self.arguments: dict[str, Any] = {}
        self._scope = scope
        self._functions = functions
        self._tree = functions.tree

    def of_root(self) -> Call:
        """Name the arguments of the outermost call, and the arrays that functions capture."""
        root = self._tree.root
        equations = self._functions.equations
        used = set(equations.read_by(root))
        named: set[int] = set()
        bases = self._bases(root)
        for index, packed in enumerate((*root.inner.args, *root.inner.kwargs.values())):
            base = bases[index] if index < len(bases) else "x"
            for leaf in packed.leaves:
                if isinstance(leaf, Ref) and leaf.number not in named:
                    named.add(leaf.number)
                    self._name(leaf.number, base)
        for number in sorted(used - named):
            if number in self._tree.arrays:
                self._name(number, "captured")
        return root

    def _bases(self, root: Call) -> list[str]:
        """Return base names for the arguments: those of the function that gets them."""
        if root.outer is None:
            return []
        for leaf in root.outer.operands():
            if isinstance(leaf, FunctionRef):
                parameters = self._tree.functions[leaf.number].parameters
                return [identifier(name.strip("*="), "x") for name in parameters]
        return []

    def _name(self, number: int, base: str) -> None:
        array = self._tree.arrays.get(number)
        if array is None:
            raise Unwritable(number, "the array is not in memory any more")
        name = self._scope.names.fresh(base)
        self._scope.write(self._functions.equations.variable(number), Atom(name))
        self.arguments[name] = array
