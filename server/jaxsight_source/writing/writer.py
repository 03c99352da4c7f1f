"""A module that is being written: what all of its functions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxsight_source.compat.jaxpr_types import Equation, Var
from jaxsight_source.compat.parameters.sources import is_derivative
from jaxsight_source.errors import TooLong
from jaxsight_source.folding.tokens import EquationNumbers
from jaxsight_source.options import SourceOptions
from jaxsight_source.text.names import ModuleNames, identifier, suggested
from jaxsight_source.text.paths import Path
from jaxsight_source.writing.constant_pool import ConstantPool, PassedValues
from jaxsight_source.writing.proofs import Proofs
from jaxsight_source.writing.results import primitive_name
from jaxsight_source.writing.shared_functions import SharedFunctions
from jaxsight_source.writing.user_names import Fits, user_names

NameOf = Callable[[Var], "str | None"]
"""Returns the user's name for a variable, or None if unknown."""


@dataclass(frozen=True, slots=True)
class Original:
    """What is known of the function that is written."""

    size: int = 0
    """The number of equations of its program."""
    most: int | None = None
    """The maximum number of equations written, including those of rules."""
    name_of: NameOf | None = None
    """Returns the user's name for a variable, if tracing recorded names."""
    fits: Fits | None = None
    """Returns whether a user's expression had values of a type, if tracing recorded types."""


@dataclass(slots=True)
class Folds:
    """What is known of equal runs of equations, and of the values that they read."""

    numbers: EquationNumbers = field(default_factory=EquationNumbers)
    """The numbers of the equations."""
    parameters: dict[int, Any] = field(default_factory=dict)
    """The parameters of helper functions, by the family's id."""
    paths: dict[int, Path] = field(default_factory=dict)
    """The paths that read parts of the main function's arguments, by the variable's id."""
    sizes: dict[tuple[object, ...], int] = field(default_factory=dict)
    """The minimum lengths of lists, by the paths that read them."""
    handles: dict[str, str] = field(default_factory=dict)
    """Base names for the elements of a list of functions, by the list's name."""


class Writer:
    """The parts of a module: constants, shared functions, names, and proved expressions."""

    def __init__(self, options: SourceOptions, original: Original | None = None) -> None:
        self.options = options
        self.original = original or Original()
        self.folds = Folds()
        self.names = ModuleNames()
        self.passed = PassedValues(self.names)
        self.constants = ConstantPool(options.constants or "inline", self.names, self.passed)
        self.functions = SharedFunctions(self.names, options.orders)
        self.proofs = Proofs(options.style)
        self.bound: list[str] = []
        """Names of the primitives that are written with `bind`, once for each equation."""
        self.equations = 0
        """The number of equations written; those of a shared function count once."""
        self.user_names: dict[int, str] = {}
        """The user's names, by the variable's id."""
        self.derivative = False
        """Whether the program, or a part of it, is a derivative."""
        self.backward = False
        """Whether the current equations compute cotangents, which have no names of the user's."""

    def find_user_names(self, equations: Sequence[Equation], live: Sequence[Equation]) -> None:
        """Record the user's names for the results of `live`, which are some of the equations."""
        for index, names in self._names_found(equations, live).items():
            pairs = zip(live[index].outvars, names, strict=False)
            self.user_names.update((id(var), name) for var, name in pairs)

    def _names_found(
        self, equations: Sequence[Equation], live: Sequence[Equation]
    ) -> dict[int, Sequence[str]]:
        """Return the user's names for results of equations, by position in `live`."""
        if not self.options.user_names:
            return {}
        self.derivative = self.derivative or any(map(is_derivative, equations))
        recorded: dict[int, Sequence[str]] = {}
        if self.original.name_of is not None:
            for index, equation in enumerate(live):
                names = [self.original.name_of(var) for var in equation.outvars]
                if any(names):
                    other = suggested(primitive_name(equation))
                    recorded[index] = [identifier(name) if name else other for name in names]
        if recorded or self.backward:
            return recorded
        positions = {id(equation): index for index, equation in enumerate(live)}
        named = user_names(equations, derivative=self.derivative, fits=self.original.fits)
        return {
            positions[id(equations[index])]: names
            for index, names in named.items()
            if id(equations[index]) in positions
        }

    def bound_length(self) -> None:
        """Raise `TooLong` for a text that grows far beyond its program."""
        most = self.original.most
        if most is not None and self.equations > most:
            written = f"more than {most:,} equations to write"
            raise TooLong(written, self.original.size, self.options.derivatives)
