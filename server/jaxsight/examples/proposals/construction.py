"""Write expressions that make objects of a class, of the module or imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from jaxsight.examples.proposals import classes
from jaxsight.examples.proposals.classes import RequiredArgument
from jaxsight.examples.proposals.clues import Clues, Surroundings
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.sources import DefinedName, Definitions, ModuleScope

_DEEPEST = 2
"""Objects that are made for the arguments of others."""
_MOST_BESIDE = 120
"""Names that are looked up to find the subclasses of a class."""
_MOST = 4

Made = tuple[int, str]
"""An expression, after its cost: arguments, and values that are not known."""


@dataclass(frozen=True, slots=True)
class Builder:
    """Writes expressions that the module can evaluate; `value` writes an argument."""

    around: Surroundings
    value: Callable[[Clues, int], str]
    """Takes what is known of an argument, and how deep the object is in others."""
    members: Mapping[str, Evidence]
    """What is known of the fields of the object that is made."""

    def expressions(self, written: str, depth: int = 0) -> tuple[str, ...]:
        """Return expressions such as `Linear(8, 8, key=jax.random.key(0))`, the best first."""
        best = sorted(self._made(written, depth), key=lambda pair: pair[0])
        return tuple(dict.fromkeys(text for _, text in best))[:_MOST]

    @property
    def _names(self) -> ModuleScope:
        return self.around.names

    def _made(self, written: str, depth: int) -> Iterator[Made]:
        definition = self._names.find(written)
        if definition is None:
            if usual := self._usual(written, written.rpartition(".")[2]):
                yield 0, usual
            return
        node = definition.node
        if not isinstance(node, ast.ClassDef):
            return
        usual = self._usual(written, node.name)
        is_plain = any("NamedTuple" in ast.unparse(base) for base in node.bases)
        if usual and not (is_plain and usual.startswith(f"{written}.")):
            yield -9, usual
        if member := classes.first_member(node):
            yield 0, f"{written}.{member}"
            return
        is_abstract, is_unfinished = classes.is_abstract(node), classes.is_unfinished(node)
        if not is_abstract:
            cost, constructed = self._constructed(written, definition, depth)
            yield cost + (20 if is_unfinished else 0), constructed
        if depth < _DEEPEST and (is_abstract or is_unfinished or classes.has_functions(node)):
            yield from self._by_functions(written, node.name)
            yield from self._by_subclasses(written, node.name, depth)
            for other in classes.implementing(node, self._names):
                if (implementing := self._names.find(other)) is not None:
                    yield self._constructed(other, implementing, depth + 1)

    def _usual(self, written: str, name: str) -> str:
        """Return how objects of a library's class are usually made; empty if that is not known."""
        prefix = written.rpartition(".")[0]
        origin = self._names.module(prefix) if prefix else ""
        if name == "Module" and origin in classes.MODULES:
            module, usual = origin, classes.MODULES[origin]
        elif name in classes.USUAL:
            module, usual = classes.USUAL[name]
        else:
            return ""
        if module and origin != module:
            prefix = self._names.alias(module)
        values = {
            "PREFIX": prefix,
            "CLASS": written,
            "KEY": self.around.key,
            "NUMPY": self._names.alias("jax.numpy"),
        }
        for value, text in values.items():
            if value in usual and not text:
                return ""
            usual = usual.replace(value, text)
        return usual

    def _constructed(self, written: str, definition: DefinedName, depth: int) -> Made:
        assert isinstance(definition.node, ast.ClassDef)
        needed = classes.arguments_of(definition, self._names)
        values, call = self._call(written, needed, definition.source, depth)
        cost = len(values) + 9 * values.count("None") - sum(".ones(" in v for v in values)
        return cost + 5 * classes.takes_any(definition.node), call

    def _call(
        self, written: str, needed: Iterable[RequiredArgument], source: Definitions, depth: int
    ) -> tuple[list[str], str]:
        """Return the arguments of a call of a class or function, and the call."""
        scope = ModuleScope(source, self._names.library)
        members = self.members if not depth else {}
        values: dict[str, str] = {}
        for argument in needed:
            clues = Clues(
                argument.name,
                self.around,
                argument.annotation,
                scope,
                members.get(argument.name, Evidence(argument.name)),
                is_argument=True,
                prefix=written.rpartition(".")[0],
            )
            values[argument.name] = self.value(clues, depth)
        inside = ", ".join(f"{name}={value}" for name, value in values.items())
        return list(values.values()), f"{written}({inside})"

    def _by_functions(self, written: str, name: str) -> Iterator[Made]:
        """Yield calls of functions that return such an object."""
        for maker, node in self._names.functions_beside(written).items():
            returned = ast.unparse(node.returns) if node.returns is not None else ""
            is_maker = returned.strip("'\"").rpartition(".")[2] == name
            if not is_maker or maker.rpartition(".")[2].startswith("_"):
                continue
            needed = classes.required(node.args, 0)
            values, call = self._call(maker, needed, self._names.source, 1)
            is_generator = any(isinstance(n, ast.Yield) for n in ast.walk(node))
            if "None" not in values and not is_generator:
                yield 1 + len(values), call

    def _by_subclasses(self, written: str, name: str, depth: int) -> Iterator[Made]:
        library = self._names.library
        for other, origin in islice(self._names.beside(written), _MOST_BESIDE):
            definition = library.find(origin) if origin else self._names.find(other)
            if (
                other != written
                and definition is not None
                and isinstance(definition.node, ast.ClassDef)
                and not definition.node.name.startswith("_")
                and not classes.is_abstract(definition.node)
                and classes.inherits(definition, name, self._names)
            ):
                cost, made = self._constructed(other, definition, depth + 1)
                is_usual = re.match(r"Auto|Default", definition.node.name)
                yield (0 if is_usual else cost + 1), made
