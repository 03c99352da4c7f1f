"""The shardings of a program's parameters and results, by their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxsight.wire.meshes import Chosen


def of_parameters(shardings: Iterable[Chosen], names: Sequence[str]) -> list[tuple[str, Chosen]]:
    """Return the shardings of parameters, each with its name; `names` has those of all."""
    return _named(shardings, "parameter", names)


def of_results(shardings: Iterable[Chosen], names: Sequence[str]) -> list[tuple[str, Chosen]]:
    """Return the shardings of results, each with its name; `names` has those of all."""
    return _named(shardings, "output", names)


def _named(shardings: Iterable[Chosen], end: str, names: Sequence[str]) -> list[tuple[str, Chosen]]:
    chosen = {}
    for sharding in shardings:
        what, _, index = sharding.equation.partition(" ")
        if what == end and index.isdecimal():
            chosen[int(index)] = sharding
    return [
        (names[index] if index < len(names) else f"{end} {index}", sharding)
        for index, sharding in sorted(chosen.items())
    ]
