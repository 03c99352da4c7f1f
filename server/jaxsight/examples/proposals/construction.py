"""Write expressions that make objects of a class, of the module or imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from jaxsight.examples.annotations import example_of
from jaxsight.examples.notation.values import Array
from jaxsight.examples.proposals import names
from jaxsight.examples.proposals.functions import function
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.sources import Definition, Names

_DEEPEST = 2
_MOST_BESIDE = 120
"""Names that are looked up to find the subclasses of a class."""
_MOST = 4
_DICT = re.compile(r"(?:\w+\.)*\w*(?:[dD]ict|Mapping|Params)")
_NOT_A_FIELD = re.compile(r"\b(?:ClassVar|InitVar)\b")
_ABSTRACT = re.compile(r"(?:Abstract|Base)\w*$|ABC$|Protocol$")
_SIZE = "8"


@dataclass(frozen=True, slots=True)
class Builder:
    """Writes expressions that the module can evaluate."""

    names: Names
    members: dict[str, Evidence] = field(default_factory=dict)
    """What is known of the fields of the object that is made."""

    def expressions(
        self, written: str, members: Mapping[str, Evidence] | None = None
    ) -> tuple[str, ...]:
        """Return expressions such as `Linear(8, 8, key=jax.random.key(0))`, the best first.

        `members` is what the uses of the object's attributes show.
        """
        self.members.clear()
        self.members.update(members or {})
        made = list(self._made(written, 0))
        best = sorted(made, key=lambda pair: pair[0])
        return tuple(dict.fromkeys(text for _, text in best))[:_MOST] or (f"{written}()",)

    def _made(self, written: str, depth: int) -> Iterator[tuple[int, str]]:
        """Yield expressions with their costs: arguments, and values that are not known."""
        definition = self.names.find(written)
        if definition is None:
            if usual := self._usual(written, written.rpartition(".")[2]):
                yield 0, usual
            return
        if not isinstance(definition.node, ast.ClassDef):
            return
        node = definition.node
        is_plain = any("NamedTuple" in ast.unparse(base) for base in node.bases)
        usual = self._usual(written, node.name)
        if usual and not (is_plain and usual.startswith(f"{written}.")):
            yield -9, usual
        if member := _member(node):
            yield 0, f"{written}.{member}"
            return
        if not self._is_abstract(definition):
            cost, constructed = self._constructed(written, definition, depth)
            yield cost + (20 if _is_unfinished(node) else 0), constructed
        if depth > 1:
            return
        if self._is_abstract(definition) or _has_functions(node) or _is_unfinished(node):
            yield from self._by_functions(written, node.name)
            yield from self._by_subclasses(written, node.name, depth)
            for other in self._implementing(node):
                if (implementing := self.names.find(other)) is not None:
                    yield self._constructed(other, implementing, depth + 1)

    def _usual(self, written: str, name: str) -> str:
        """Return how objects of a library's class are usually made; empty if that is not known."""
        prefix = written.rpartition(".")[0]
        origin = self.names.module(prefix) if prefix else ""
        if name == "Module" and origin in names.MODULES:
            module, usual = origin, names.MODULES[origin]
        elif name in names.CONSTRUCTED:
            module, usual = names.CONSTRUCTED[name]
        else:
            return ""
        if module and origin != module:
            prefix = self._alias(module)
        values = {
            "PREFIX": prefix,
            "CLASS": written,
            "KEY": self._key(),
            "NUMPY": self._alias("jax.numpy"),
        }
        needed = {value for value in values if value in usual}
        if not all(values[value] for value in needed):
            return ""
        for value in needed:
            usual = usual.replace(value, values[value])
        return usual

    def _alias(self, module: str) -> str:
        """Return how the module writes another one; empty if it does not import that."""
        for alias, origin in self.names.source.aliases.items():
            if origin == module:
                return alias
        package, _, name = module.rpartition(".")
        alias = self._alias(package) if package else ""
        return f"{alias}.{name}" if alias else ""

    def _is_abstract(self, definition: Definition) -> bool:
        node = definition.node
        assert isinstance(node, ast.ClassDef)
        bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
        return (
            bool(re.match(r"_?(?:Abstract|Base)", node.name))
            or any(base.rpartition(".")[2] in ("ABC", "Protocol") for base in bases)
            or any(
                "abstractmethod" in ast.unparse(decorator)
                for method in node.body
                if isinstance(method, ast.FunctionDef)
                for decorator in method.decorator_list
            )
        )

    def _constructed(self, written: str, definition: Definition, depth: int) -> tuple[int, str]:
        assert isinstance(definition.node, ast.ClassDef)
        needed = list(self._needed(definition, 0))
        around = Names(definition.source, self.names.library)
        values = [
            (self._member(name, kind, around) if not depth else "")
            or self._value(name, kind, written, depth, around)
            for name, kind in needed
        ]
        cost = len(values) + 9 * values.count("None") - sum(".ones(" in v for v in values)
        cost += 5 * any(
            isinstance(s, ast.FunctionDef) and s.name == "__init__" and s.args.vararg is not None
            for s in definition.node.body
        )
        written_out = ", ".join(f"{n}={v}" for (n, _), v in zip(needed, values, strict=True))
        return cost, f"{written}({written_out})"

    def _member(self, name: str, annotation: str, around: Names) -> str:
        """Return an array for a field by the uses of it; empty if they show nothing."""
        facts, numpy = self.members.get(name), self._alias("jax.numpy")
        if facts is None or not numpy or self._kind(annotation, around, 0) not in ("array", ""):
            return ""
        shape = facts.shape.find()
        rank = shape.rank if shape.rank is not None else shape.likely
        if facts.keys or facts.tree or facts.called is not None:
            return ""
        if rank is None and not facts.integer:
            return ""
        sizes = ", ".join([_SIZE] * (1 if rank is None else rank))
        dtype = ", dtype=int" if facts.integer else ""
        return f"{numpy}.ones(({sizes}{',' if sizes == _SIZE else ''}){dtype})"

    def _by_functions(self, written: str, name: str) -> Iterator[tuple[int, str]]:
        """Yield calls of functions that return such an object."""
        for maker, node in self.names.functions_beside(written).items():
            if node.returns is None or maker.rpartition(".")[2].startswith("_"):
                continue
            returned = ast.unparse(node.returns).strip("'\"").rpartition(".")[2]
            if returned != name:
                continue
            needed = list(_parameters(node.args, 0))
            values = [self._value(n, kind, written, 1, self.names) for n, kind in needed]
            is_generator = any(isinstance(n, ast.Yield) for n in ast.walk(node))
            if "None" not in values and not is_generator:
                inside = ", ".join(f"{n}={v}" for (n, _), v in zip(needed, values, strict=True))
                yield 1 + len(values), f"{maker}({inside})"

    def _by_subclasses(self, written: str, name: str, depth: int) -> Iterator[tuple[int, str]]:
        for other, origin in islice(self.names.beside(written), _MOST_BESIDE):
            if other == written:
                continue
            library = self.names.library
            definition = library.find(origin) if origin else self.names.find(other)
            if (
                definition is not None
                and isinstance(definition.node, ast.ClassDef)
                and not self._is_abstract(definition)
                and not definition.node.name.startswith("_")
                and self._inherits(definition, name, 0)
            ):
                cost, made = self._constructed(other, definition, depth + 1)
                is_usual = definition.node.name.startswith(("Auto", "Default"))
                yield (0 if is_usual else cost + 1), made

    def _inherits(self, definition: Definition, name: str, depth: int) -> bool:
        node = definition.node
        if not isinstance(node, ast.ClassDef) or depth > 3:
            return False
        for base in node.bases:
            written = ast.unparse(base).partition("[")[0]
            if written.rpartition(".")[2] == name:
                return True
            above = Names(definition.source, self.names.library).find(written)
            if above is not None and self._inherits(above, name, depth + 1):
                return True
        return False

    def _needed(self, definition: Definition, depth: int) -> Iterator[tuple[str, str]]:
        """Yield the arguments that making an object needs, with their annotations."""
        node = definition.node
        if not isinstance(node, ast.ClassDef):
            return
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                yield from _parameters(statement.args, 1)
                return
        given: set[str] = set()
        for base in node.bases:
            written = ast.unparse(base).partition("[")[0]
            above = Names(definition.source, self.names.library).find(written)
            if above is not None and depth < 3 and above.node is not node:
                for name, annotation in self._needed(above, depth + 1):
                    given.add(name)
                    if not _is_given(node, name):
                        yield name, annotation
        for statement in node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                    text = ast.unparse(kind)
                    is_field = name not in given and not _NOT_A_FIELD.search(text)
                    if is_field and not _has_default(value):
                        yield name, text

    def _value(self, name: str, annotation: str, written: str, depth: int, around: Names) -> str:
        """Return an argument.

        `written` is the name of the class or function that takes it, and `around` its module.
        """
        by_origin = {origin: alias for alias, origin in self.names.source.aliases.items()}
        numpy = self._alias("jax.numpy")
        kind = self._kind(annotation, around, 0)
        declared = example_of(annotation.partition(" |")[0]) if annotation else None
        if isinstance(declared, Array) and numpy:
            return _array(numpy, declared)
        if kind.startswith("class "):
            if depth >= _DEEPEST:
                return "None"
            prefix = written.rpartition(".")[0]
            for other in (kind.removeprefix("class "), f"{prefix}.{kind.removeprefix('class ')}"):
                made = sorted(self._made(other, depth + 1))
                if made:
                    return made[0][1]
        if "ShapeDtypeStruct" in annotation and numpy and "jax" in by_origin:
            jax = by_origin["jax"]
            return f"{jax}.ShapeDtypeStruct(({_SIZE},), {numpy}.float32)"
        if kind == "tree" and numpy and _DICT.match(annotation):
            return f"{{'w': {numpy}.ones((4, 8)), 'b': {numpy}.ones(8)}}"
        if name == "rngs" and "flax.nnx" in by_origin:
            return f"{by_origin['flax.nnx']}.Rngs(0)"
        if names.KEY.fullmatch(name):
            return self._key() or "None"
        if "None" in annotation or annotation.startswith(("Optional", "typing.Optional")):
            return "None"
        if names.STEP.fullmatch(name):
            return "0.5"
        if kind == "array" and numpy and names.SCALAR.fullmatch(name):
            return f"{numpy}.asarray(0.5)"
        if kind == "array" and numpy and names.COUNT.fullmatch(name):
            return f"{numpy}.asarray(2)"
        if kind == "array" and numpy:
            return f"{numpy}.ones(({_SIZE}, {_SIZE}))"
        if kind == "literal 2" or names.COUNT.fullmatch(name):
            return "2" if "head" in name or "layer" in name or "depth" in name else _SIZE
        if kind.startswith("literal "):
            return kind.removeprefix("literal ")
        if kind == "callable" or names.FUNCTION.fullmatch(name):
            return function(name, Evidence(name), annotation)
        if kind == "shape":
            return f"({_SIZE}, {_SIZE})"
        if kind == "scalar" and numpy and "float" not in annotation:
            return f"{numpy}.asarray(0.5)"
        if kind == "scalar" or names.SCALAR.fullmatch(name):
            return "0.5"
        if kind == "dtype" and numpy:
            return f"{numpy}.float32"
        if numpy and kind in ("tree", ""):
            return f"{numpy}.ones({_SIZE})" if annotation else f"{numpy}.ones(({_SIZE}, {_SIZE}))"
        return "None"

    def _key(self) -> str:
        """Return an expression of a key; empty if the module does not import `jax`."""
        by_origin = {origin: alias for alias, origin in self.names.source.aliases.items()}
        if "jax.random" in by_origin:
            return f"{by_origin['jax.random']}.key(0)"
        if "jax" in by_origin:
            return f"{by_origin['jax']}.random.key(0)"
        numpy = by_origin.get("jax.numpy", "")
        return f"{numpy}.zeros(2, {numpy}.uint32)" if numpy else ""

    def kind_of(self, annotation: str | None) -> str:
        """Return the kind of an annotation in a word, with the definitions of its names."""
        return self._kind(annotation, self.names, 0)

    def _kind(self, annotation: str | None, around: Names, depth: int) -> str:
        kind = names.kind_of(annotation)
        if not kind.startswith("class ") or depth > _DEEPEST:
            return kind
        definition = around.find(kind.removeprefix("class "))
        if definition is None:
            return kind
        match definition.node:
            case ast.ClassDef():
                return kind
            case ast.FunctionDef():
                return ""
            case ast.Call(func=func, args=[_, *rest]):
                called = ast.unparse(func).rpartition(".")[2]
                if called == "NewType" and rest:
                    text = ast.unparse(rest[0])
                    return self._kind(text, Names(definition.source, around.library), depth + 1)
                return ""
            case ast.expr() as value:
                text = ast.unparse(value)
                return self._kind(text, Names(definition.source, around.library), depth + 1)

    def like(self, name: str, attributes: set[str]) -> str:
        """Return the class of the module, or imported, that has these attributes and suits a name.

        A name suits a class if it is the class's name in lower case, as `scope` is for `Scope`.
        """
        wanted = name.replace("_", "").lower()
        own = self.names.source.classes
        imported = [alias for alias in self.names.source.aliases if alias[:1].isupper()]
        for candidate in (*own, *imported):
            if candidate.strip("_").lower() == wanted:
                return candidate
        by_origin = {origin: alias for alias, origin in self.names.source.aliases.items()}
        for known, module, library_class in names.LIKE:
            if attributes and attributes <= known and module in by_origin:
                return f"{by_origin[module]}.{library_class}"
        suited = [
            candidate
            for candidate, node in own.items()
            if attributes and attributes <= _members(node)
        ]
        return min(suited, key=lambda c: len(_members(own[c])), default="")

    def with_fields(self, attributes: set[str]) -> str:
        """Return the class of the module that has these attributes, and the fewest others."""
        suited = [
            n for n, node in self.names.source.classes.items() if attributes <= _members(node)
        ]
        return min(suited, key=lambda n: len(_members(self.names.source.classes[n])), default="")

    def key(self) -> str:
        """Return an expression of a key; empty if the module does not import `jax`."""
        return self._key()

    def _implementing(self, protocol: ast.ClassDef) -> Iterator[str]:
        """Yield the classes of the module that have the methods of a protocol."""
        wanted = _members(protocol)
        if wanted and any("Protocol" in ast.unparse(base) for base in protocol.bases):
            for name, node in self.names.source.classes.items():
                if node is not protocol and wanted <= _members(node):
                    yield name


def _array(numpy: str, declared: Array) -> str:
    shape = ", ".join([_SIZE] * len(declared.shape))
    dtype = "" if declared.dtype == "float32" else f", dtype={declared.dtype!r}"
    if not declared.shape:
        return f"{numpy}.ones((){dtype})"
    return f"{numpy}.ones(({shape}{',' if len(declared.shape) == 1 else ''}){dtype})"


def _members(node: ast.ClassDef) -> set[str]:
    """Return the names of the fields and methods of a class."""
    members: set[str] = set()
    for statement in node.body:
        match statement:
            case ast.FunctionDef(name=name) if name != "__init__":
                members.add(name)
            case ast.FunctionDef():
                for inner in ast.walk(statement):
                    match inner:
                        case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Store()):
                            members.add(attr)
            case ast.AnnAssign(target=ast.Name(id=name)):
                members.add(name)
    return members


def _member(node: ast.ClassDef) -> str:
    """Return the first member of an enumeration; empty for other classes."""
    if not any(re.search(r"(?:Enum|Flag)$", ast.unparse(base)) for base in node.bases):
        return ""
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                return name
    return ""


def _has_functions(node: ast.ClassDef) -> bool:
    """Return whether fields of a class are functions, which other functions make."""
    return any(
        names.kind_of(ast.unparse(statement.annotation)) == "callable"
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    )


def _is_unfinished(node: ast.ClassDef) -> bool:
    """Return whether the body of a method is only to raise `NotImplementedError`."""
    return any(
        isinstance(method, ast.FunctionDef)
        and isinstance(method.body[-1], ast.Raise)
        and "NotImplementedError" in ast.unparse(method.body[-1])
        for method in node.body
    )


def _has_default(value: ast.expr | None) -> bool:
    match value:
        case None:
            return False
        case ast.Call(func=func, keywords=keywords) if ast.unparse(func).endswith("field"):
            named = {keyword.arg for keyword in keywords}
            return bool(named & {"default", "default_factory", "init"})
    return True


def _is_given(node: ast.ClassDef, name: str) -> bool:
    """Return whether a class gives a field of its base a value."""
    return any(
        isinstance(s, ast.AnnAssign)
        and isinstance(s.target, ast.Name)
        and s.target.id == name
        and _has_default(s.value)
        for s in node.body
    )


def _parameters(arguments: ast.arguments, skipped: int) -> Iterator[tuple[str, str]]:
    """Yield the parameters without a default, with their annotations."""
    every = [*arguments.posonlyargs, *arguments.args]
    needed: Sequence[ast.arg] = every[: len(every) - len(arguments.defaults)][skipped:]
    keyword_only = [
        argument
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    for argument in (*needed, *keyword_only):
        annotation = argument.annotation
        yield argument.arg, ast.unparse(annotation) if annotation is not None else ""
