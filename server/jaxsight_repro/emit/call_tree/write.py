"""Writes a tree of calls as a module."""

from __future__ import annotations

import ast
import contextlib
import dataclasses

import numpy as np

from jaxsight_repro.capturing.call_tree import records
from jaxsight_repro.emit.call_tree import steps
from jaxsight_repro.emit.call_tree.functions import Functions
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.jaxprs.base import import_modules, room_for_nesting
from jaxsight_source.module_text import module_lines
from jaxsight_source.options import SourceOptions
from jaxsight_source.text.names import identifier
from jaxsight_source.text.statements import define, names_read, return_
from jaxsight_source.writing.scope import Scope
from jaxsight_source.writing.writer import Writer


def write(tree: records.TrackedTree, name: str = "main") -> tuple[str, tuple[object, ...]]:
    """Write a tree of calls as a module that defines the function `name`.

    Returns:
        Its text, and the arguments of the call that was recorded: arrays, numbers, and tuples,
        lists and dictionaries of these.

    Raises:
        Unwritable: if a part of the tree has no public form, or is not known.
    """
    import_modules("jaxsight_source.rules")
    options = SourceOptions("pretty", user_names=False, fold=False)
    try:
        return _write(tree, name, options)
    except (KeyError, Unsourceable, Unwritable) as error:
        with contextlib.suppress(KeyError, Unsourceable, Unwritable):
            return _write(tree, name, dataclasses.replace(options, derivatives="primal"))
        if isinstance(error, Unwritable):
            raise
        raise Unwritable(tree.message, str(error)) from error


def _write(
    tree: records.TrackedTree, name: str, options: SourceOptions
) -> tuple[str, tuple[object, ...]]:
    writer = Writer(options)
    writer.names.keep(name)
    with room_for_nesting():
        scope = Scope.top(writer)
        functions = Functions(tree, writer)
        arguments = _Arguments(scope, functions)
        root = arguments.of_root()
        if isinstance(root, records.FailedStep):
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
    return text, tuple(parameters.values())


class _Arguments:
    """The arguments of the written function."""

    def __init__(self, scope: Scope, functions: Functions) -> None:
        self.arguments: dict[str, object] = {}
        self._scope = scope
        self._functions = functions
        self._tree = functions.tree

    def of_root(self) -> records.JaxCall | records.FailedStep:
        """Name the arguments of the outermost call, and the arrays that functions capture."""
        root = self._tree.root
        if isinstance(root, records.JaxCall):
            root = self._with_numbers(root)
        inner = root.inner if isinstance(root, records.JaxCall) else root.arguments
        equations = self._functions.equations
        used = set(equations.read_by(root))
        named: set[int] = set()
        bases = self._bases(root)
        for index, packed in enumerate((*inner.args, *inner.kwargs.values())):
            base = bases[index] if index < len(bases) else "x"
            for leaf in packed.leaves:
                if isinstance(leaf, records.Ref) and leaf not in named:
                    named.add(leaf)
                    self._name(leaf, base)
        for number in sorted(used - named):
            if number in self._tree.arrays:
                self._name(number, "captured")
        return root

    def _with_numbers(self, root: records.JaxCall) -> records.JaxCall:
        """Return the call with the Python numbers that are traced as arguments, too."""
        user = root.users[0] if root.users and root.outer is not None else None
        if user is None:
            return root

        def replaced(packed: records.Pytree, traced: records.Pytree | None) -> records.Pytree:
            if traced is None or traced.node != packed.node:
                return packed
            pairs = zip(packed.leaves, traced.leaves, strict=True)
            return records.Pytree(
                packed.node, tuple(self._numbered(leaf, other) for leaf, other in pairs)
            )

        traced = user.arguments
        args = tuple(map(replaced, root.inner.args, traced.args))
        kwargs = {
            name: replaced(packed, traced.kwargs.get(name))
            for name, packed in root.inner.kwargs.items()
        }
        if len(args) != len(root.inner.args):
            args = root.inner.args
        return dataclasses.replace(root, inner=records.Arguments(args, kwargs))

    def _numbered(self, leaf: records.Operand, traced: records.Operand) -> records.Operand:
        numeric = isinstance(leaf, records.PlainValue) and isinstance(
            leaf.value, (bool, int, float, complex, np.generic, np.ndarray)
        )
        if not numeric or not isinstance(traced, records.Ref):
            return leaf
        assert isinstance(leaf, records.PlainValue)
        number = -1 - len(self._tree.arrays)
        self._tree.arrays[number] = leaf.value
        return number

    def _bases(self, root: records.JaxCall | records.FailedStep) -> list[str]:
        """Return base names for the arguments: those of the function that gets them."""
        if isinstance(root, records.FailedStep) or root.outer is None:
            return []
        for leaf in root.outer.operands():
            if isinstance(leaf, records.FunctionRef):
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
