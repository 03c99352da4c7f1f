"""The templates of the generator: families of programs, by category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    """

    name: str
    category: str
    write: Write
    weight: int = 2


TEMPLATES: dict[str, Template] = {}


def template(name: str, category: str, weight: int = 2) -> Callable[[Write], Write]:
    """Register a function as the template `name` of `category`."""

    def registered(write: Write) -> Write:
        assert name not in TEMPLATES, f"two templates named {name}"
        TEMPLATES[name] = Template(name, category, write, weight)
        return write

    return registered


def of_category(category: str) -> list[Template]:
    """Return the templates of a category, by name."""
    return sorted(
        (each for each in TEMPLATES.values() if each.category == category), key=lambda it: it.name
    )
