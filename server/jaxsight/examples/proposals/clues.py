"""What is known of a parameter, a constructor's argument, a field, or an item of a tuple."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property

from jaxsight.examples.annotations import example_of
from jaxsight.examples.proposals.annotated import is_optional, kind_in
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.kinds import Kind, What
from jaxsight.examples.proposals.prose import Described
from jaxsight.examples.proposals.sources import ModuleScope


@dataclass(frozen=True)
class Clues:
    """The evidence about one parameter; `table.ROWS` reads it."""

    name: str
    names: ModuleScope
    """The names of the function's module, which evaluates expressions."""
    siblings: frozenset[str] = frozenset()
    """The names of all parameters."""
    annotation: str = ""
    scope: ModuleScope | None = None
    """The module of the annotation, if it is another one."""
    uses: Evidence = field(default_factory=lambda: Evidence(""))
    said: Described = field(default_factory=Described)
    static: bool = False
    """A `jax.jit` makes it static."""
    is_argument: bool = False
    """It is an argument of a constructor."""
    prefix: str = ""
    """What the name of the constructor's class has before its last dot."""

    @property
    def numpy(self) -> str:
        """How the module writes `jax.numpy`, or NumPy."""
        return self.names.alias("jax.numpy") or self.names.alias("numpy")

    @cached_property
    def annotated(self) -> What:
        """The kind that the annotation names."""
        return kind_in(self.annotation, self.scope or self.names)

    def named(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a pattern of `names` matches the whole name."""
        return pattern.fullmatch(self.name) is not None

    def is_annotated(self, *kinds: Kind) -> bool:
        return self.annotated.kind in kinds

    @property
    def is_unneeded(self) -> bool:
        """It is an argument that may be `None`, of which nothing else is known."""
        uses = self.uses
        is_used = self.has_rank or uses.array or uses.number or uses.integer
        return self.is_argument and is_optional(self.annotation) and not is_used

    @property
    def has_axes(self) -> bool:
        """It is indexed, or used as an index."""
        return self.uses.shape.find().least > 0 or self.uses.integer

    @property
    def has_rank(self) -> bool:
        """The body, the docstring or the annotation tells its rank."""
        root = self.uses.shape.find()
        is_told = root.rank is not None or root.likely is not None
        return is_told or example_of(self.annotation) is not None

    @cached_property
    def is_class(self) -> bool:
        """The annotation is a class whose definition is known."""
        definition = (self.scope or self.names).find(self.annotated.detail)
        return definition is not None and isinstance(definition.node, ast.ClassDef)
