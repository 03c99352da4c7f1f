"""A proposal that could not be traced, and its error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.examples.proposals.inference import Inferred
from jaxsight.examples.proposals.proposal import ArrayGuess, ExpressionGuess, Guess, Proposal
from jaxsight.wire.observations import Failure


@dataclass(frozen=True, slots=True)
class Wrong:
    """A proposal that could not be traced, and why.

    `blamed` are the parameters that the failing expression uses, directly or through variables.
    """

    inferred: Inferred
    proposal: Proposal
    failure: Failure
    blamed: tuple[str, ...]
    expression: str

    @property
    def message(self) -> str:
        return self.failure.message

    @property
    def arrays(self) -> Iterator[tuple[str, ArrayGuess]]:
        """The blamed parameters that are arrays."""
        for name in self.blamed:
            guess = self.proposal.examples.get(name)
            if isinstance(guess, ArrayGuess):
                yield name, guess

    def is_a(self, *types: str) -> bool:
        """Return whether the exception or a base of it has one of these names."""
        kinds = {self.failure.type, *self.failure.bases}
        return any(name.rpartition(".")[2] in types for name in kinds)

    def having(self, name: str, guess: Guess) -> Proposal:
        """Return the proposal with another example."""
        return self.proposal.with_example(name, guess)

    @property
    def usual(self) -> ArrayGuess:
        """An array of the proposal, or the usual one."""
        arrays = (g for g in self.proposal.examples.values() if isinstance(g, ArrayGuess))
        return next(arrays, ArrayGuess((4, 8)))


def is_lambda(guess: Guess) -> bool:
    return isinstance(guess, ExpressionGuess) and guess.source.startswith("lambda")
