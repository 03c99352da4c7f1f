"""What modules define and import, and where the names that an annotation uses are defined."""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.files import reading
from jaxsight.files.texts import MISSING, Version, stamp_of
from jaxsight.source.module import Module
from jaxsight.source.statements import tree_of
from jaxsight.text.parsing import module_in

_MODULES_KEPT = 4
_FILES_KEPT = 48
"""Modules, and files of libraries, whose definitions are kept: with fewer, more are parsed
again."""
_LARGEST = 400_000  # bytes of such a file, a choice: larger ones are generated
_DEEPEST = 5
"""Imports that are followed from a name to its definition, a choice: packages re-export names."""
_ALIAS = re.compile(r"(?:type )?[A-Za-z_]\w*(?:\s*:[^=\n]+)?\s*=[^=]")
_LONGEST_ALIAS = 800
"""Characters of an assignment that may be a type: longer ones are data."""
_HIGHEST = 8
"""Folders above a file that are searched for modules, a choice: each is a look at the disk."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions and imports of a module, by name."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    types: dict[str, ast.expr] = field(default_factory=dict)
    """What names are assigned that may be types: `Axes = int | Sequence[int]`."""
    aliases: dict[str, str] = field(default_factory=dict)
    """What imports bind: `jnp` is `jax.numpy`."""


@dataclass(frozen=True, slots=True)
class DefinedName:
    """The definition that a name of a module refers to, and the module that it is in."""

    node: ast.ClassDef | ast.FunctionDef | ast.expr
    source: Definitions

    @staticmethod
    def of(name: str, source: Definitions) -> DefinedName | None:
        """Return the definition of a name in a module."""
        node = source.classes.get(name) or source.types.get(name) or source.functions.get(name)
        return DefinedName(node, source) if node is not None else None


@functools.lru_cache(maxsize=_MODULES_KEPT)
def source_of(module: Module, package: str = "") -> Definitions:
    """Return what a module of the editor defines; relative imports start at `package`."""
    source = Definitions()
    for chunk in module.chunks:
        is_class = chunk.text.startswith(("class ", "@", "type "))
        is_type = len(chunk.text) < _LONGEST_ALIAS and _ALIAS.match(chunk.text)
        if chunk.broken is not None or not (
            chunk.statement.functions or is_class or is_type or chunk.name_effects.imports
        ):
            continue
        _collect(tree_of(chunk.text).body, source, package)
    return source


def _collect(body: Iterable[ast.stmt], source: Definitions, package: str) -> None:
    for node in body:
        match node:
            case ast.FunctionDef(name=name):
                source.functions[name] = node
            case ast.ClassDef(name=name):
                source.classes[name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                source.types[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                source.types[name] = value
            case ast.Import(names=imported):
                for alias in imported:
                    bound = alias.asname or alias.name.partition(".")[0]
                    source.aliases[bound] = alias.name if alias.asname else bound
            case ast.ImportFrom(module=origin, names=imported, level=level):
                parents = package.split(".") if package and level else []
                above = parents[: len(parents) - level + 1]
                base = ".".join([*above, *filter(None, [origin])])
                for alias in imported:
                    source.aliases[alias.asname or alias.name] = f"{base}.{alias.name}"
            case ast.If(body=inner) if "TYPE_CHECKING" in ast.unparse(node.test):
                _collect(inner, source, package)
            case _ if type(node).__name__ == "TypeAlias":
                source.types[node.name.id] = node.value  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=_FILES_KEPT)
def _read(path: str, package: str, changed: Version) -> Definitions:
    """Return what a file defines; `changed` is another one if it has changed."""
    source = Definitions()
    with contextlib.suppress(OSError, RecursionError):
        tree = module_in(reading.text(path, _LARGEST))
        _collect(tree.body if tree is not None else (), source, package)
    return source


class Library:
    """The modules that a file can import, found by their names in folders."""

    def __init__(self, path: str = "", python: str = "") -> None:
        """Search the folders around a file, and the packages of a Python environment."""
        self._parents = tuple(Path(path).parents)[:_HIGHEST] if path else ()
        self._python = python

    @functools.cached_property
    def _roots(self) -> tuple[Path, ...]:
        """The folders that modules are searched in."""
        around = Path(self._python).parents[1:2] if self._python else ()
        installed = [
            packages
            for folder in around
            for packages in (
                *folder.glob("lib/python3*/site-packages"),
                folder / "Lib/site-packages",
            )
        ]
        return *self._parents, *installed

    @property
    def package(self) -> str:
        """The package of the file: the folders with an `__init__.py` around it."""
        names: list[str] = []
        for folder in self._parents:
            if not (folder / "__init__.py").is_file():
                break
            names.append(folder.name)
        return ".".join(reversed(names))

    def find(self, dotted: str, depth: int = 0) -> DefinedName | None:
        """Return where a dotted name is defined."""
        module, _, name = dotted.rpartition(".")
        if not module or depth > _DEEPEST:
            return None
        if (source := self.module(module)) is None:
            return None
        if (definition := DefinedName.of(name, source)) is not None:
            return definition
        origin = source.aliases.get(name)
        return self.find(origin, depth + 1) if origin is not None else None

    def module(self, dotted: str) -> Definitions | None:
        """Return a module by its name; `None` if there is no file of it."""
        relative = Path(*dotted.split("."))
        top = relative.parts[0]
        for root in self._roots:
            if not (root / top).exists() and not (root / f"{top}.py").exists():
                continue
            for file, package in (
                (root / relative / "__init__.py", dotted),
                (root / relative.with_suffix(".py"), dotted.rpartition(".")[0]),
            ):
                if (changed := stamp_of(str(file))) != MISSING:
                    return _read(str(file), package, changed)
        return None


@dataclass(frozen=True, slots=True)
class ModuleScope:
    """What the names of a module mean, also those that it imports."""

    source: Definitions
    library: Library

    def find(self, written: str) -> DefinedName | None:
        """Return the definition of a name as the module writes it: `base.Params`."""
        root, _, rest = written.partition(".")
        if not rest and (definition := DefinedName.of(root, self.source)) is not None:
            return definition
        origin = self.source.aliases.get(root)
        definition = self.library.find(f"{origin}.{rest}" if rest else origin) if origin else None
        if definition is None and rest:
            outer, _, inner = written.rpartition(".")
            around = self.find(outer)
            match around:
                case DefinedName(ast.ClassDef() as node):
                    nested = [n for n in node.body if isinstance(n, ast.ClassDef)]
                    same = next((n for n in nested if n.name == inner), None)
                    same = same or around.source.classes.get(inner)
                    return DefinedName(same, around.source) if same is not None else None
        return definition

    def alias(self, module: str) -> str:
        """Return how the module writes another one; empty if it does not import that."""
        for alias, origin in self.source.aliases.items():
            if origin == module or (module == "jax.numpy" and origin.endswith("lax_numpy")):
                return alias
        package, _, name = module.rpartition(".")
        alias = self.alias(package) if package else ""
        return f"{alias}.{name}" if alias else ""
