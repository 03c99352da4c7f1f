"""Python expressions as small trees, so that rules need not place brackets or line breaks.

An expression never names a variable of the program being written: `Slot(0)` is the equation's first
operand, and the writer fills the slots. `layout` formats expressions; the prover resolves their
names.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Atom:
    """Text that is never broken: a name, a number, an attribute chain."""

    text: str
    module: str = field(default="", compare=False, repr=False)
    """The module to import for the name, unless a written module always imports it."""

    def dot(self, name: str) -> Atom:
        """Return an attribute of the name."""
        return Atom(f"{self.text}.{name}", self.module)


@dataclass(frozen=True, slots=True)
class Slot:
    """The `index`-th operand of the equation being spelled."""

    index: int


@dataclass(frozen=True, slots=True)
class Keyword:
    """`name=value` in a call."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Pair:
    """`key: value` in a dictionary."""

    key: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Star:
    """`*value` in a call or a sequence."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Call:
    """`function(items)`."""

    function: Expr
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """`value[items]`; slices such as `1:` are atoms."""

    value: Expr
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """`value.name`."""

    value: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Sequence_:
    """A tuple `(…)`, list `[…]` or dictionary `{…}`, by its opening bracket."""

    bracket: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Each:
    """`body for target in values`, in the brackets of a sequence or call."""

    body: Expr | Pair
    target: str
    values: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    """`left operator right`."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Unary:
    """`operator value`, such as `-x`."""

    operator: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Lambda:
    """`lambda parameters: body`."""

    parameters: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Choice:
    """`single if absent is None else total`."""

    single: Expr
    absent: Expr
    total: Expr


@dataclass(frozen=True, slots=True)
class Once:
    """An argument without operands that is written once in a module, under a name like `base`."""

    base: str
    value: Expr


Expr: TypeAlias = (
    Atom
    | Slot
    | Call
    | Index
    | Attribute
    | Sequence_
    | Binary
    | Unary
    | Lambda
    | Choice
    | Star
    | Once
)
Item: TypeAlias = "Expr | Keyword | Pair | Each"

NONE = Atom("None")


def call(function: str | Expr, *arguments: Item, **keywords: Expr) -> Call:
    """Return a call; keywords come last, in the order given."""
    named = tuple(Keyword(name, value) for name, value in keywords.items())
    return Call(Atom(function) if isinstance(function, str) else function, (*arguments, *named))


def tuple_(elements: Iterable[Item]) -> Sequence_:
    return Sequence_("(", tuple(elements))


def list_(elements: Iterable[Item]) -> Sequence_:
    return Sequence_("[", tuple(elements))


def dict_(pairs: Iterable[tuple[Expr, Expr]]) -> Sequence_:
    return Sequence_("{", tuple(Pair(key, value) for key, value in pairs))


def keywords(values: Mapping[str, Expr]) -> tuple[Keyword, ...]:
    """Return keyword arguments; the caller checks that their names are valid identifiers."""
    return tuple(Keyword(name, value) for name, value in values.items())


def is_identifier(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


_FIRSTS = frozenset("-0123456789ijnTF")
"""The first characters of numbers, which most names do not have."""

_NUMBER = re.compile(r"-?\d|-?(jnp\.)?(inf|nan)\b|(True|False)$")


def is_number(expr: object) -> bool:
    """Return whether an expression is a Python number, or one with a NumPy dtype."""
    match expr:
        case Atom(text):
            return text[0] in _FIRSTS and _NUMBER.match(text) is not None
        case Call(Atom(text), (inner,)):
            return text == "complex" or (text.startswith(("np.", "jnp.")) and is_number(inner))
        case _:
            return False


def uses_python(expr: object) -> bool:
    """Return whether an expression has operators, methods or indices.

    Their meaning depends on the types of the values.
    """
    match expr:
        case Binary() | Unary() | Index() | Attribute():
            return True
        case Call(function, items):
            return uses_python(function) or any(map(uses_python, items))
        case Sequence_(_, items):
            return any(map(uses_python, items))
        case Keyword(_, value) | Star(value) | Lambda(_, value) | Pair(_, value):
            return uses_python(value)
        case Choice():
            return True
        case _:
            return False


_PARTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Keyword: lambda expr: (expr.value,),
    Star: lambda expr: (expr.value,),
    Unary: lambda expr: (expr.value,),
    Attribute: lambda expr: (expr.value,),
    Pair: lambda expr: (expr.key, expr.value),
    Call: lambda expr: (expr.function, *expr.items),
    Index: lambda expr: (expr.value, *expr.items),
    Sequence_: lambda expr: tuple(expr.items),
    Binary: lambda expr: (expr.left, expr.right),
    Each: lambda expr: (expr.values, expr.body),
}


def parts_of(expr: object) -> tuple[Any, ...]:
    """Return the parts of an expression that Python evaluates before the expression, in order."""
    parts = _PARTS.get(type(expr))
    return parts(expr) if parts is not None else ()


def modules_in(expr: object) -> set[str]:
    """Return the modules to import for the names in an expression."""
    if isinstance(expr, Atom):
        return {expr.module} if expr.module else set()
    return set().union(*map(modules_in, _later(expr) or parts_of(expr)))


def _later(expr: object) -> tuple[object, ...]:
    """Return the parts of an expression that are not evaluated where it is."""
    match expr:
        case Lambda(_, inside) | Once(_, inside):
            return (inside,)
        case Choice(single, absent, total):
            return (single, absent, total)
        case _:
            return ()


def with_parts(expr: Any, parts: tuple[Any, ...]) -> Any:
    """Return an expression with other parts."""
    match expr:
        case Keyword(name):
            return Keyword(name, *parts)
        case Attribute(_, name):
            return Attribute(parts[0], name)
        case Unary(operator) | Binary(operator):
            return type(expr)(operator, *parts)
        case Star() | Pair():
            return type(expr)(*parts)
        case Call() | Index():
            return type(expr)(parts[0], parts[1:])
        case Sequence_(bracket):
            return Sequence_(bracket, parts)
        case Each(_, target):
            return Each(parts[1], target, parts[0])
        case _:
            return expr


def mapped(expr: Any, change: Callable[[Any], Any]) -> Any:
    """Return `expr` with each of its parts changed; `expr` itself if no part changes."""
    parts = _later(expr) or parts_of(expr)
    changed = tuple([change(part) for part in parts])
    if all(part is before for part, before in zip(changed, parts, strict=True)):
        return expr
    match expr:
        case Lambda(parameters):
            return Lambda(parameters, *changed)
        case Once(base):
            return Once(base, *changed)
        case Choice():
            return Choice(*changed)
        case _:
            return with_parts(expr, changed)


def rebuilt(expr: Any, leaf: Callable[[Atom | Slot], Expr]) -> Any:
    """Return `expr` with each atom and slot replaced by the result of `leaf`."""
    if type(expr) is Atom or type(expr) is Slot:
        return leaf(expr)
    return mapped(expr, lambda part: rebuilt(part, leaf))


def fill(expr: Any, slots: Sequence[Expr]) -> Any:
    """Return `expr` with each slot replaced."""
    kind = type(expr)  # the common kinds first: this runs for every equation
    if kind is Slot:
        return slots[expr.index]
    if kind is Atom:
        return expr
    if kind is Call and type(expr.function) is Atom:
        return Call(expr.function, tuple([fill(argument, slots) for argument in expr.items]))
    return mapped(expr, lambda part: fill(part, slots))


def without_once(expr: Any, named: Callable[[Once], Expr]) -> Any:
    """Return `expr` with each part that is written once replaced by its name."""
    return named(expr) if type(expr) is Once else mapped(expr, lambda e: without_once(e, named))


def quoted(text: str) -> str:
    """Return a string literal, in double quotes as formatters write it."""
    shown = repr(text)
    if shown.startswith("'") and '"' not in text:
        return '"' + shown[1:-1].replace("\\'", "'") + '"'
    return shown
