"""What the classes of a module and of its imports look like: fields, arguments, subclasses."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from jaxsight.examples.proposals.annotated import kind_of
from jaxsight.examples.proposals.kinds import Kind
from jaxsight.examples.proposals.sources import DefinedName, ModuleScope
from jaxsight.text.names import with_defaults, words

_NOT_A_FIELD = re.compile(r"\b(?:ClassVar|InitVar)\b")
_HIGHEST = 3
"""Classes above a class that are searched for fields, a choice: higher ones rarely have any."""
_LIKE = (
    ("init update", "optax", "GradientTransformation"),
    (
        "log_prob sample mean batch_shape event_shape event_dim support",
        "numpyro.distributions",
        "Distribution",
    ),
    ("apply_gradients apply_fn params", "flax.training", "train_state.TrainState"),
    ("apply_gradients apply_fn params", "flax.training.train_state", "TrainState"),
)
"""Attributes of objects of libraries that parameters without annotation are likely to be."""


_TRAIN_STATE = (
    "CLASS.create(apply_fn=lambda variables, x, *args, **kwargs: x * variables['params']['w'],"
    " params={'w': NUMPY.ones(())}, tx=__import__('optax').sgd(0.1))"
)
USUAL = {
    "Scope": ("", "CLASS({}, {'params': KEY}, mutable=True)"),
    "GradientTransformation": ("optax", "PREFIX.scale(-0.1)"),
    "GradientTransformationExtraArgs": ("optax", "PREFIX.sgd(0.1)"),
    "Distribution": ("numpyro.distributions", "PREFIX.Normal(0.0, 1.0)"),
    "Module": ("flax.nnx", "PREFIX.Linear(8, 8, rngs=PREFIX.Rngs(0))"),
    "Linear": ("flax.nnx", "PREFIX.Linear(8, 8, rngs=PREFIX.Rngs(0))"),
    "Optimizer": (
        "flax.nnx",
        "PREFIX.Optimizer(PREFIX.Linear(8, 8, rngs=PREFIX.Rngs(0)), optax.sgd(0.1))",
    ),
    "TrainState": ("", _TRAIN_STATE),
    "AbstractLinearOperator": ("lineax", "PREFIX.MatrixLinearOperator(NUMPY.eye(8))"),
    "NamedArray": ("", "CLASS.wrap(NUMPY.ones((4, 8)))"),
    "AbstractTerm": ("diffrax", "PREFIX.ODETerm(lambda t, y, args: y)"),
}
"""How objects of a library's classes are usually made, by the name of the class.

The first of a pair is the module of `PREFIX`; a class of any module of that name has none.
"""
MODULES = {
    "flax.linen": "PREFIX.Dense(8)",
    "flax.nnx": USUAL["Module"][1],
    "equinox": "PREFIX.nn.Linear(8, 8, key=KEY)",
}
"""How a module of neural networks is made, by the library of the class `Module`."""


@dataclass(frozen=True, slots=True)
class RequiredArgument:
    """An argument that making an object requires."""

    name: str
    annotation: str


def like(name: str, attributes: set[str], names: ModuleScope) -> str:
    """Return the class of the module, or imported, that has these attributes and suits a name.

    A name suits a class if it is the class's name in lower case, as `scope` is for `Scope`.
    """
    wanted = name.replace("_", "").lower()
    own = names.source.classes
    imported = [alias for alias in names.source.aliases if alias[:1].isupper()]
    for candidate in (*own, *imported):
        if candidate.strip("_").lower() == wanted:
            return candidate
    for known, module, library_class in _LIKE:
        if attributes and attributes <= {*words(known)} and (alias := names.alias(module)):
            return f"{alias}.{library_class}"
    return with_members(attributes, names)


def with_members(attributes: Collection[str], names: ModuleScope) -> str:
    """Return the class of the module that has these attributes, and the fewest others."""
    wanted = set(attributes)
    suited = {
        name: members
        for name, node in names.source.classes.items()
        if wanted and wanted <= (members := members_of(node))
    }
    return min(suited, key=lambda name: len(suited[name]), default="")


def callable_module(names: ModuleScope) -> str:
    """Return the last module of Equinox or NNX in the file that can be called, or nothing."""
    called = [
        name
        for name, node in names.source.classes.items()
        if any(re.fullmatch(r"(?:eqx|nnx|equinox)\.Module", ast.unparse(b)) for b in node.bases)
        and any(isinstance(s, ast.FunctionDef) and s.name == "__call__" for s in node.body)
    ]
    return called[-1] if called else ""


def implementing(protocol: ast.ClassDef, names: ModuleScope) -> Iterator[str]:
    """Yield the classes of the module that have the methods of a protocol."""
    wanted = members_of(protocol)
    if wanted and any("Protocol" in ast.unparse(base) for base in protocol.bases):
        for name, node in names.source.classes.items():
            if node is not protocol and wanted <= members_of(node):
                yield name


def members_of(node: ast.ClassDef) -> set[str]:
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


def first_member(node: ast.ClassDef) -> str:
    """Return the first member of an enumeration; empty for other classes."""
    if not any(re.search(r"(?:Enum|Flag)$", ast.unparse(base)) for base in node.bases):
        return ""
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                return name
    return ""


def is_abstract(node: ast.ClassDef) -> bool:
    return (
        bool(re.match(r"_?(?:Abstract|Base)", node.name))
        or any(base.rpartition(".")[2] in ("ABC", "Protocol") for base in _bases(node))
        or any(
            "abstractmethod" in ast.unparse(decorator)
            for method in _methods(node)
            for decorator in method.decorator_list
        )
    )


def has_functions(node: ast.ClassDef) -> bool:
    """Return whether fields of a class are functions, which other functions make."""
    return any(
        kind_of(ast.unparse(statement.annotation)).kind is Kind.FUNCTION
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    )


def is_unfinished(node: ast.ClassDef) -> bool:
    """Return whether the body of a method is only to raise `NotImplementedError`."""
    return any(
        isinstance(method.body[-1], ast.Raise)
        and "NotImplementedError" in ast.unparse(method.body[-1])
        for method in _methods(node)
    )


def takes_any(node: ast.ClassDef) -> bool:
    """Return whether the constructor has `*args`."""
    return any(m.name == "__init__" and m.args.vararg is not None for m in _methods(node))


def methods_of(node: ast.ClassDef | None) -> dict[str, ast.FunctionDef]:
    """Return the methods of a class that take `self`, by name."""
    return {m.name: m for m in _methods(node) if not m.decorator_list} if node is not None else {}


def attributes_of(node: ast.ClassDef | None) -> dict[str, ast.expr]:
    """Return what `__init__` and `setup` assign to the attributes of `self`, by name."""
    makers = [m for m in _methods(node) if m.name in ("__init__", "setup")] if node else []
    return {
        target.attr: statement.value
        for maker in makers
        for statement in maker.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Attribute)
    }


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    return (statement for statement in node.body if isinstance(statement, ast.FunctionDef))


def _bases(node: ast.ClassDef) -> list[str]:
    """Return the names of the bases of a class: `Generic` for `Generic[T]`."""
    return [ast.unparse(base).partition("[")[0] for base in node.bases]


def inherits(definition: DefinedName, name: str, names: ModuleScope, depth: int = 0) -> bool:
    """Return whether a class has a base of this name."""
    node = definition.node
    if not isinstance(node, ast.ClassDef) or depth > _HIGHEST:
        return False
    return any(
        written.rpartition(".")[2] == name
        or (
            (above := ModuleScope(definition.source, names.library).find(written)) is not None
            and inherits(above, name, names, depth + 1)
        )
        for written in _bases(node)
    )


def arguments_of(
    definition: DefinedName, names: ModuleScope, depth: int = 0
) -> Iterator[RequiredArgument]:
    """Yield the arguments that making an object needs: of `__init__`, or its fields."""
    node = definition.node
    if not isinstance(node, ast.ClassDef):
        return
    for method in _methods(node):
        if method.name == "__init__":
            yield from required(method.args, 1)
            return
    given: set[str] = set()
    defaults = {
        s.target.id
        for s in node.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and _has_default(s.value)
    }
    for written in _bases(node):
        above = ModuleScope(definition.source, names.library).find(written)
        if above is not None and depth < _HIGHEST and above.node is not node:
            for argument in arguments_of(above, names, depth + 1):
                given.add(argument.name)
                if argument.name not in defaults:
                    yield argument
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind):
                text = ast.unparse(kind)
                is_field = name not in given and not _NOT_A_FIELD.search(text)
                if is_field and name not in defaults:
                    yield RequiredArgument(name, text)


def required(arguments: ast.arguments, skipped: int) -> Iterator[RequiredArgument]:
    """Yield the parameters without a default."""
    for argument, default in with_defaults(arguments)[skipped:]:
        annotation = argument.annotation
        if default is None:
            written = ast.unparse(annotation) if annotation is not None else ""
            yield RequiredArgument(argument.arg, written)


def _has_default(value: ast.expr | None) -> bool:
    match value:
        case None:
            return False
        case ast.Call(func=func, keywords=keywords) if ast.unparse(func).endswith("field"):
            named = {keyword.arg for keyword in keywords}
            return bool(named & {"default", "default_factory", "init"})
    return True
