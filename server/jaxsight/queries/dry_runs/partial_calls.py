"""Calls in dry runs of which some arguments are not known."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.wire.messages.inputs import DryCall


@dataclass(frozen=True, slots=True)
class PartialCall:
    """A call of a function that has only some of its arguments: data were not loaded.

    An example set with this `dry_call` needs examples of the `unknown` parameters alone.
    """

    function: str
    dry_call: DryCall
    label: str
    known: tuple[tuple[str, str], ...]
    """The types of the known arguments, by parameter, for people."""
    unknown: tuple[str, ...]
    fed: tuple[str, ...] = ()
    """Types of the arrays that the programs pass to models: unknown data may be like them."""
    sizes: tuple[tuple[str, str, int], ...] = ()
    """The names of unknown sizes of the known arguments, the code that they are from, and their
    numbers."""
