"""What is known of a parameter, a constructor's argument, a field, or an item of a tuple."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property

from jaxsight.examples.proposals import classes, names
from jaxsight.examples.proposals.annotated import is_optional, kind_in
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.kinds import Kind, What
from jaxsight.examples.proposals.proposal import Guess
from jaxsight.examples.proposals.prose import Described
from jaxsight.examples.proposals.sources import ModuleScope
from jaxsight.text.names import words

_PLAIN = frozenset(
    words(
        """
        get pop setdefault items keys values append extend insert index count format split join
        startswith endswith tolist addressable_shards block_until_ready get_value replace to
        """
    )
)
"""Methods that dicts, lists, strings and arrays have."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known outside of a parameter."""

    names: ModuleScope
    parameters: frozenset[str] = frozenset()
    """The names of all parameters."""
    kinds: dict[str, What] = field(default_factory=dict)
    """The kinds of the parameters that were decided."""
    examples: dict[str, Guess] = field(default_factory=dict)
    """The examples that were written."""

    @property
    def numpy(self) -> str:
        """How the module writes `jax.numpy`, or NumPy."""
        return self.names.alias("jax.numpy") or self.names.alias("numpy")

    @property
    def key(self) -> str:
        """An expression of a key; empty if the module imports nothing that makes one."""
        if random := self.names.alias("jax.random"):
            return f"{random}.key(0)"
        numpy = self.names.alias("jax.numpy")
        return f"{numpy}.zeros(2, {numpy}.uint32)" if numpy else ""


@dataclass(frozen=True)
class Clues:
    """The evidence about one parameter; `table.ROWS` reads it."""

    name: str
    around: Surroundings
    annotation: str = ""
    scope: ModuleScope | None = None
    """The module of the annotation, if it is another one."""
    uses: Evidence = field(default_factory=lambda: Evidence(""))
    said: Described = field(default_factory=Described)
    static: bool = False
    """A `jax.jit` makes it static, or a trace failed because it is not."""
    is_argument: bool = False
    """It is an argument of a constructor."""
    prefix: str = ""
    """What the name of the constructor's class has before its last dot."""

    @cached_property
    def annotated(self) -> What:
        """The kind that the annotation names."""
        return kind_in(self.annotation, self.scope or self.around.names)

    def named(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a pattern of `names` matches the whole name."""
        return pattern.fullmatch(self.name) is not None

    def is_annotated(self, *kinds: Kind) -> bool:
        return self.annotated.kind in kinds

    @property
    def is_optional(self) -> bool:
        return is_optional(self.annotation)

    @property
    def is_array(self) -> bool:
        """It is used as an array, or annotated as one."""
        return self.uses.array > 0 or self.is_annotated(Kind.ARRAY)

    @property
    def is_used(self) -> bool:
        """The body uses it in some way."""
        uses = self.uses
        return bool(self.has_rank or uses.array or uses.number or uses.tree or uses.integer)

    @property
    def has_axes(self) -> bool:
        """It is indexed, or used as an index."""
        return self.uses.shape.find().least > 0 or self.uses.integer

    @property
    def has_rank(self) -> bool:
        """Something is known of its rank."""
        root = self.uses.shape.find()
        return root.rank is not None or root.least > 0 or root.likely is not None

    @property
    def is_shapeless(self) -> bool:
        """Nothing shows that it has several axes."""
        few = self.uses.shape.find().least <= 1 and not self.uses.integer
        return few and not self.is_annotated(Kind.ARRAY)

    @property
    def is_plain(self) -> bool:
        """It is neither an array nor used in arithmetic."""
        return not self.uses.array and not self.uses.number

    @property
    def by_name(self) -> bool:
        """Neither the body nor the annotation says that it is an array."""
        return not self.uses.array and not self.is_annotated(Kind.ARRAY, Kind.SCALAR)

    @property
    def is_scalar_by_name(self) -> bool:
        """It has a name of scalars, and is hardly used as an array."""
        count = self.is_annotated(Kind.ARRAY) and self.named(names.COUNT)
        return self.uses.array <= 1 and (self.named(names.SCALAR) or count)

    @property
    def has_methods(self) -> bool:
        """It is asked for methods that arrays and pytrees do not have."""
        uses = self.uses
        if uses.array or uses.keys or uses.tree or uses.sequence or _PLAIN & uses.attributes:
            return False
        return any(facts.called is not None for facts in uses.members.values())

    @property
    def is_program(self) -> bool:
        """It is a model in a module that imports NumPyro."""
        if self.uses.called or self.uses.array or not self.named(names.MODEL):
            return False
        return bool(self.around.names.alias("numpyro"))

    @cached_property
    def is_class(self) -> bool:
        """The annotation is a class whose definition is known, or how its objects are made."""
        written = self.annotated.detail
        if written.rpartition(".")[2] in classes.USUAL:
            return True
        definition = (self.scope or self.around.names).find(written)
        return definition is not None and isinstance(definition.node, ast.ClassDef)

    @cached_property
    def like(self) -> str:
        """The class that has the attributes which the parameter is asked for."""
        asked = self.uses.attributes
        return classes.like(self.name, asked, self.around.names) if asked else ""

    @cached_property
    def record(self) -> str:
        """The class of the module that has the fields which the parameter is asked for."""
        asked = {a for a, facts in self.uses.members.items() if facts.called is None}
        one = asked and self.uses.attributes == asked and self.name == "state"
        return classes.with_members(asked, self.around.names) if len(asked) > 1 or one else ""

    @cached_property
    def module(self) -> str:
        """The module of the file that a `model` is likely to be."""
        if not self.named(names.MODEL_OBJECT) or self.uses.array:
            return ""
        return classes.callable_module(self.around.names)
