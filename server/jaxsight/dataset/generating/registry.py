"""The templates of the generator: families of programs, by category."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TypeAlias

from jaxsight.dataset.generating.writer import Writer

Write: TypeAlias = Callable[[Writer], None]


@dataclass(frozen=True, slots=True)
class Template:
    """A family of programs.

    Attributes:
        name: identifies the family.
        category: one of `spec.CATEGORIES`.
        write: writes one of its programs.
        weight: how often it is chosen, relative to the others of its category.
        names: those that its lines assign to, which no other value of a program may have.
    """

    name: str
    category: str
    write: Write
    weight: int = 2
    names: frozenset[str] = frozenset()


TEMPLATES: dict[str, Template] = {}


def template(name: str, category: str, weight: int = 2) -> Callable[[Write], Write]:
    """Register a function as the template `name` of `category`."""

    def registered(write: Write) -> Write:
        assert name not in TEMPLATES, f"two templates named {name}"
        names = frozenset(_assigned(write))
        TEMPLATES[name] = Template(name, category, write, weight, names)
        return write

    return registered


_TARGETS = re.compile(r"\(?([a-z_]\w*(?:, [a-z_]\w*)*)\)? = ")


def _assigned(write: Write) -> Iterator[str]:
    """Return the names that the lines in the text of a template assign to."""
    assert isinstance(write, FunctionType)
    codes = [write.__code__]
    for code in codes:
        for name in code.co_names:
            helper = write.__globals__.get(name)
            if isinstance(helper, FunctionType) and helper.__module__ == write.__module__:
                codes += [helper.__code__] if helper.__code__ not in codes else []
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                codes.append(constant)
            elif isinstance(constant, str) and (match := _TARGETS.match(constant)):
                yield from match[1].split(", ")


def of_category(category: str) -> list[Template]:
    """Return the templates of a category, by name."""
    return sorted(
        (each for each in TEMPLATES.values() if each.category == category), key=lambda it: it.name
    )
