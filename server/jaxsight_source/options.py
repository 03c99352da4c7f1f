"""The options of `sourcerize`.

This module uses only the standard library: processes that never import JAX choose options, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

Style = Literal["lax", "pretty"]
STYLES: tuple[Style, ...] = get_args(Style)

Constants = Literal["inline", "npz", "argument"]

Derivatives = Literal["exact", "first", "primal"]
DERIVATIVES: tuple[Derivatives, ...] = get_args(Derivatives)

DEEPEST_RULES = 3
"""The depth of nested derivative rules up to which they are traced, compared and written. Rules of
some functions (`odeint`) nest without end, each larger than the one around it."""

_CHOICES: dict[str, tuple[str | None, ...]] = {
    "style": STYLES,
    "constants": (*get_args(Constants), None),
    "derivatives": (*DERIVATIVES, None),
}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How to write a function as source.

    The command, the editor, the settings, notebooks and repros take their options from here.

    Raises:
        ValueError: if a choice is invalid.
    """

    style: Style = "lax"
    """`"lax"` spells each equation with `jax.lax`, `"pretty"` as people would write it."""
    name: str = ""
    """The written function's name; by default, the original's."""
    constants: Constants | None = "inline"
    """Where irregular arrays are kept: `"inline"` embeds them in the text, compressed, up to 1 MiB;
    `"npz"` reads them from a file next to the module, which `Source.save` writes; `"argument"`
    makes them arguments, which `Source.passed` holds. `None`: in the text if they fit, else as
    arguments."""
    shapes: bool = False
    """Add a comment with dtype and shape to each line."""
    sources: bool = False
    """Add the user's source as a comment wherever its line changes."""
    inline: bool = False
    """Inline jitted functions. The jaxpr is then the same except for these calls."""
    scopes: bool = False
    """Add `jax.named_scope` around equations that were traced under one."""
    derivatives: Derivatives | None = "exact"
    """Which rules of `custom_jvp` and `custom_vjp` functions are written: `"exact"` those of three
    orders, `"first"` those of one, and `"primal"` none: calls of such functions are inlined, so the
    written function returns the same values but does not keep the original's derivatives. `None`:
    as a setting says, else `"exact"`."""
    run: bool = True
    """Also run the text and the original, if the program is small and has no effects: eagerly,
    under `jit` and under `grad`. `Source.proofs` lists the checks."""

    user_names: bool = True
    """Whether values have the names of the user's variables."""
    fold: bool = True
    """Whether equal runs of equations become helper functions and loops (pretty style only)."""

    @property
    def orders(self) -> int:
        """The number of orders of derivative rules that are written and compared."""
        return 1 if self.derivatives in ("first", "primal") else DEEPEST_RULES

    @property
    def folds(self) -> bool:
        """Whether equal runs are folded with these options.

        Comments with shapes, and scopes, differ from one run to the next.
        """
        return self.fold and self.style == "pretty" and not (self.shapes or self.scopes)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (chosen := getattr(self, name)) not in choices:
                expected = ", ".join(repr(choice) for choice in choices if choice is not None)
                raise ValueError(f"{name} must be one of {expected}, not {chosen!r}")


class SourceKeywords(TypedDict, total=False):
    """The same options as keywords of `sourcerize`, for type checkers."""

    style: Style
    name: str
    constants: Constants | None
    shapes: bool
    sources: bool
    inline: bool
    scopes: bool
    derivatives: Derivatives | None
    run: bool


ProgramLanguage = Literal["python", "stablehlo", "hlo", "jaxpr", "graph"]


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program in a language."""

    text: str
    name: str
    source: str
    """What the file contains, such as `StableHLO text`."""
    equations: int
    proofs: tuple[str, ...] = ()
    """How Python was proved: `Source.proofs`."""
    not_run: str = ""
    opaque: tuple[str, ...] = ()
    """Targets of calls that the program only names."""
    links: tuple[tuple[int, int], ...] = ()
    """Pairs of a line of the text and a line of the file that it comes from, from 0."""
