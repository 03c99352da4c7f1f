"""Writes a tree of calls as a module."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
from dataclasses import dataclass

import numpy as np

from jaxsight_repro.capturing.call_tree.records import (
    Arguments,
    FailedStep,
    FunctionRef,
    JaxCall,
    Operand,
    PlainValue,
    Pytree,
    Ref,
    TrackedTree,
)
from jaxsight_repro.emit.call_tree import steps
from jaxsight_repro.emit.call_tree.functions import Functions
from jaxsight_source import rules
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.jaxprs.depth import room_for_nesting
from jaxsight_source.module_text import module_lines
from jaxsight_source.options import SourceOptions
from jaxsight_source.text.names import identifier
from jaxsight_source.text.statements import define, return_
from jaxsight_source.text.walks import names_read
from jaxsight_source.writing.scope import Scope
from jaxsight_source.writing.writer import Writer


@dataclass(frozen=True, slots=True)
class WrittenModule:
    """A module that defines a function, and the arguments of the call that was recorded."""

    text: str
    arguments: tuple[object, ...]
    """Arrays, numbers, and tuples, lists and dictionaries of these."""


def write(tree: TrackedTree, name: str = "main") -> WrittenModule:
    """Write a tree of calls as a module that defines the function `name`.

    Raises:
        Unwritable: if a part of the tree has no public form, or is not known.
    """
    rules.register()
    options = SourceOptions("pretty", user_names=False, fold=False)
    try:
        return _write(tree, name, options)
    except (KeyError, Unsourceable, Unwritable) as error:
        with contextlib.suppress(KeyError, Unsourceable, Unwritable):
            return _write(tree, name, dataclasses.replace(options, derivatives="primal"))
        if isinstance(error, Unwritable):
            raise
        raise Unwritable(tree.message, str(error)) from error


def _write(tree: TrackedTree, name: str, options: SourceOptions) -> WrittenModule:
    writer = Writer(options)
    writer.names.keep(name)
    with room_for_nesting():
        scope = Scope.top(writer)
        functions = Functions(tree, writer)
        arguments = _Arguments(scope, functions)
        root = arguments.of_root()
        if isinstance(root, FailedStep):
            scope.body.append(steps.step(functions, scope, root))
            steps.return_last(scope.body)
        else:
            scope.body.append(return_(functions.call(scope, root)))
        if writer.passed.placeholders:
            why = writer.passed.placeholders[0].why
            raise Unwritable(writer.passed.placeholders[0].name, why)
        read = set(names_read(scope.body))
        parameters = {
            parameter: argument
            for parameter, argument in arguments.arguments.items()
            if parameter in read
        }
        main = define(name, tuple(parameters), scope.body)
        writer.functions.statements[:0] = functions.stand_ins.statements()
        lines = module_lines(writer, [main], name)
    text = "\n".join(line.text for line in lines) + "\n"
    return WrittenModule(text, tuple(parameters.values()))


class _Arguments:
    """The arguments of the written function."""

    def __init__(self, scope: Scope, functions: Functions) -> None:
        self.arguments: dict[str, object] = {}
        self._scope = scope
        self._functions = functions
        self._tree = functions.tree

    def of_root(self) -> JaxCall | FailedStep:
        """Name the arguments of the outermost call, and the arrays that functions capture."""
        root = self._tree.root
        if isinstance(root, JaxCall):
            root = self._with_numbers(root)
        inner = root.inner if isinstance(root, JaxCall) else root.arguments
        equations = self._functions.equations
        used = set(equations.read_by(root))
        named: set[int] = set()
        bases = self._bases(root)
        for index, packed in enumerate((*inner.args, *inner.kwargs.values())):
            base = bases[index] if index < len(bases) else "x"
            for leaf in packed.leaves:
                if isinstance(leaf, Ref) and leaf not in named:
                    named.add(leaf)
                    self._name(leaf, base)
        for number in sorted(used - named):
            if number in self._tree.arrays:
                self._name(number, "captured")
        return root

    def _with_numbers(self, root: JaxCall) -> JaxCall:
        """Return the call with the Python numbers that are traced as arguments, too."""
        user = root.users[0] if root.users and root.outer is not None else None
        if user is None:
            return root

        def replaced(packed: Pytree, traced: Pytree | None) -> Pytree:
            if traced is None or traced.node != packed.node:
                return packed
            pairs = zip(packed.leaves, traced.leaves, strict=True)
            return Pytree(packed.node, tuple(self._numbered(leaf, other) for leaf, other in pairs))

        traced = user.arguments
        args = tuple(map(replaced, root.inner.args, traced.args))
        kwargs = {
            name: replaced(packed, traced.kwargs.get(name))
            for name, packed in root.inner.kwargs.items()
        }
        if len(args) != len(root.inner.args):
            args = root.inner.args
        return dataclasses.replace(root, inner=Arguments(args, kwargs))

    def _numbered(self, leaf: Operand, traced: Operand) -> Operand:
        numeric = isinstance(leaf, PlainValue) and isinstance(
            leaf.value, (bool, int, float, complex, np.generic, np.ndarray)
        )
        if not numeric or not isinstance(traced, Ref):
            return leaf
        assert isinstance(leaf, PlainValue)
        number = -1 - len(self._tree.arrays)
        self._tree.arrays[number] = leaf.value
        return number

    def _bases(self, root: JaxCall | FailedStep) -> list[str]:
        """Return base names for the arguments: those of the function that gets them."""
        if isinstance(root, FailedStep) or root.outer is None:
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
        self._scope.write(self._functions.equations.variable(number), ast.Name(name))
        self._functions.parameters[self._scope].add(name)
        self.arguments[name] = array
