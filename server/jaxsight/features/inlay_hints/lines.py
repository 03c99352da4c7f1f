"""Hints at the ends of lines: fusion boundaries, what is moved, and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from jaxsight.features.inlay_hints.kind import (
    HintDocument,
    line_end,
    line_hints,
    of_programs,
)
from jaxsight.features.measuring.timing import last_times, row_words
from jaxsight.features.model import Hint
from jaxsight.figures import collectives, host_transfers
from jaxsight.figures.rows import sentence
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.text import units
from jaxsight.text.markdown import escaped, prose

BARRIER = "⊣"

_UNSAID = frozenset({"output", "XLA's choice"})
"""Reasons that are not fusion boundaries, or that are unknown."""
_SENTENCES = 12
"""Number of kernels that a tooltip describes: one paragraph each, about a screen of them."""


@of_programs
def barriers(shown: HintDocument, kernels: LocatedFigures) -> Iterator[Hint]:
    """Yield a hint for each line on which kernels of a function end."""
    unsaid = _UNSAID | {"collective"} if shown.wanted.collectives else _UNSAID
    every = kernels.graph.kernels
    ending = [index for index, kernel in enumerate(every) if kernel.ends_because not in unsaid]
    return line_hints(
        shown,
        kernels,
        BARRIER,
        [(kernels.ending(every[index]), index) for index in ending],
        lambda ended: _reasons(kernels, ended),
        lambda index: prose(sentence(kernels, index)),
        _SENTENCES,
    )


def _reasons(kernels: LocatedFigures, ended: Sequence[int]) -> list[str]:
    """Return the reasons of fusion boundaries on a line, each once: `fft` and `layout change`.

    If several kernels have one of them: `ends 7 kernels: reduction × 4` and `matmul × 3`.
    """
    counts = Counter(kernels.reason(kernels.graph.kernels[index]) for index in ended)
    if len(counts) in (1, len(ended)):
        return list(counts)
    common = [
        f"{reason} × {count}" if count > 1 else reason for reason, count in counts.most_common()
    ]
    return [f"ends {len(ended)} kernels: {common[0]}", *common[1:]]


# Collectives, and transfers between host and device, at the end of the lines that they are for.


_DESCRIBED = 5
"""Number of collectives or transfers that a tooltip describes: each takes several lines."""


@of_programs
def moved(shown: HintDocument, kernels: LocatedFigures) -> Iterator[Hint]:
    """Yield the hints of collectives."""
    every, graph = kernels.graph.kernels, kernels.graph

    def described(index: int) -> str:
        title, *facts = collectives.described(kernels, index)
        return "\n".join([prose(title), "", *(f"* {prose(fact)}" for fact in facts)])

    return line_hints(
        shown,
        kernels,
        collectives.SIGN,
        [
            (collectives.place(kernels, kernel), index)
            for index, kernel in enumerate(every)
            if kernel.collective is not None
        ],
        lambda indices: collectives.summed((every[index] for index in indices), graph),
        described,
        _DESCRIBED,
        escaped(f"{kernels.compiled.devices} devices of {kernels.target.title}"),
    )


@of_programs
def transfers(shown: HintDocument, kernels: LocatedFigures) -> Iterator[Hint]:
    """Yield the hints of transfers between host and device."""
    offloads = kernels.graph.offloads
    return line_hints(
        shown,
        kernels,
        host_transfers.SIGN,
        [(host_transfers.place(kernels, transfer), transfer) for transfer in offloads],
        lambda transfers: host_transfers.summed(kernels.graph, transfers),
        lambda transfer: prose(host_transfers.sentence(kernels, transfer)),
        _DESCRIBED,
        escaped(kernels.target.title),
    )


# The share of each line in the time of the device, of functions that the user had measured.


@of_programs
def measured(shown: HintDocument, kernels: LocatedFigures) -> Iterator[Hint]:
    """Yield a hint for each line that the device worked for, stale ones of an older text."""
    known = last_times(shown.engine, kernels.view, kernels.target, kernels)
    times = known.at_lines if known is not None else None
    if known is None or times is None:
        return
    shares, module = times.shares, kernels.view.module
    yield from line_hints(
        shown,
        times.kernels,
        units.MEASURED,
        [(line_end(module, at - 1), at) for at in shares if at <= len(module.lines)],
        lambda at: [units.percent(sum(shares[line] for line in at))],
        lambda line: "\n".join(
            f"* {prose(row_words(times, row))}"
            for row in [row for row in times.rows if line in row.lines][:_SENTENCES]
        ),
        1,
        escaped(f"{known.headline}; {kernels.target.title}"),
    )


# The time of lines in the profile that is open.


_LEAST = 0.005
"""The least share of the time that is shown at a line, a choice: less is not worth a look."""


def profiled(shown: HintDocument) -> Iterator[Hint]:
    """Yield the share of each line that was not edited since the run."""
    profiles, module = shown.engine.profiles, shown.document.module
    found = profiles.of_file(shown.document.path)
    if found is None or profiles.opened is None:
        return
    profile = profiles.opened.profile
    whole = profile.kernel_seconds
    for line, share in found.moved(module.lines):
        if not whole or share.seconds < _LEAST * whole or not 0 <= line < len(module.lines):
            continue
        time = units.time(share.seconds)
        part = units.percent(share.seconds / whole)
        calls, kernels = units.count(share.calls, "call"), units.count(share.kernels, "kernel")
        facts = (
            f"{part} of the time in kernels: {time} in {calls} of {kernels}",
            f"profile of the run {profile.run}" if profile.run else "profile of a run",
        )
        label = f"{units.MEASURED} {part}"
        yield Hint(line_end(module, line), label, "\n\n".join(map(prose, facts)))
