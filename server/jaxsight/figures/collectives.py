"""Collectives in words: what they move and over which axes, why, and how long that takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from jaxsight.figures.figures import AnyFigures, At, Figures
from jaxsight.figures.shardings import of_single_results, partitioner, sharded_type
from jaxsight.figures.summary import scope
from jaxsight.meshes.divided import divided_type
from jaxsight.targets.chips.links import LINKS
from jaxsight.targets.roofline import estimate
from jaxsight.text import units
from jaxsight.text.layout import cut
from jaxsight.text.units import count, some
from jaxsight.wire.kernel_graph import Collective, Graph, Kernel
from jaxsight.wire.kernel_work import HostTransfer

SIGN = "⇄"

_GROUPS = 4
"""Groups of devices that a description lists, a choice: the pattern shows in the first ones."""
_DEVICES = 16
"""Devices of a group that it lists, a choice: two servers of eight GPUs."""
_SHARDINGS = 3
"""Operations whose shardings a description lists, a choice: each is a line of a tooltip."""
_LONGEST = 60
"""Characters of a user's expression in a description, a choice: a line of a tooltip."""


def kernel_title(kernel: Kernel) -> str:
    """Return `⇄ all-reduce over data` for a collective, the description of another kernel."""
    if kernel.collective is None:
        return kernel.title
    return f"{SIGN} {kernel.title} {scope(kernel.collective)}".rstrip()


def collective_text(kernel: Kernel) -> str:
    """Return `all-reduce 32 MiB over data`, with the bytes on one device, and its runs."""
    if (collective := kernel.collective) is None:
        return kernel.title
    axes = f" {where}" if (where := scope(collective)) else ""
    times = f", {kernel.runs} times" if kernel.runs > 1 else ""
    inserted = ", inserted by the partitioner" if collective.inserted else ""
    return f"{collective.kind} {units.size(collective.bytes)}{axes}{times}{inserted}"


def runs(kernel: Kernel | HostTransfer, graph: Graph) -> str:
    """Return ` × 12` for what runs in a loop, ` × ?` if the number of iterations is unknown."""
    if any(graph.loops[index].trips is None for index in kernel.loops):
        return " × ?"
    return f" × {kernel.runs}" if kernel.runs > 1 else ""


def summed(kernels: Iterable[Kernel], graph: Graph) -> list[str]:
    """Return `2 all-gathers 64 MiB over model × 12` for each kind, scope and number of runs.

    Bytes are the sum of those on one device in one iteration.
    """
    groups: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for kernel in kernels:
        if (collective := kernel.collective) is not None:
            key = collective.kind, scope(collective), runs(kernel, graph)
            groups[key].append(collective.bytes)
    texts = []
    for (kind, where, times), sizes in groups.items():
        what = kind if len(sizes) == 1 else count(len(sizes), kind)
        texts.append(f"{what} {units.size(sum(sizes))} {where}".rstrip() + times)
    return texts


def place(kernels: Figures[At], kernel: Kernel) -> At | None:
    """Return where a collective is shown: its last equation, or the first that it is for."""
    at = kernels.ending(kernel)
    if at is None and kernel.feeds:
        at = kernels.place(kernel.feeds[0])
    return at


def line(kernels: AnyFigures, kernel: Kernel) -> int | None:
    """Return the line (from 1) at which a collective is shown."""
    at = place(kernels, kernel)
    return kernels.places.lines(at)[2] if at is not None else None


def described(kernels: AnyFigures, index: int) -> list[str]:
    """Return what is known about a collective, in prose: its data, its reason, time and groups."""
    kernel = kernels.graph.kernels[index]
    if (collective := kernel.collective) is None:
        return []
    operation = f" ({collective.reduction})" if collective.reduction else ""
    data = f"{units.size(collective.bytes)} on each device"
    times = runs(kernel, kernels.graph).replace(" × ", ", iterations: ")
    title = f"kernel {index + 1}: {collective.kind}{operation} {scope(collective)}".rstrip()
    return [
        f"{title}, {data}{times}",
        _reason(kernels, kernel, collective),
        *_operands(kernels, kernel, collective),
        time(kernels, kernel),
        *_groups(collective),
    ]


def _reason(kernels: AnyFigures, kernel: Kernel, collective: Collective) -> str:
    """Return who asked for a collective, and where."""
    paths = kernel.equations or kernel.feeds
    sources = dict.fromkeys(f"`{_short(kernels.source(path))}`" for path in paths)
    named = some(list(sources), _SHARDINGS)
    if not collective.inserted:
        return f"requested by {named or 'the program'}"
    who = f"inserted by the partitioner ({partitioner(kernels)})"
    return f"{who} for {named}" if named else who


def _operands(kernels: AnyFigures, kernel: Kernel, collective: Collective) -> Iterator[str]:
    """Yield the shardings of the operands and results of a collective's operations."""
    paths = set(kernel.equations or kernel.feeds)
    known = [each for path, each in of_single_results(kernels).items() if path in paths]
    for chosen in known[:_SHARDINGS]:
        result = f"`{sharded_type(chosen)}`"
        operands = " and ".join(
            f"`{divided_type(operand.type, operand.spec)}`" for operand in chosen.operands
        )
        before = {axis for operand in chosen.operands for axes in operand.spec for axis in axes}
        after = {axis for axes in chosen.spec for axis in axes}
        lost = [axis for axis in collective.axes if axis in before - after]
        verb = "divides" if len(lost) == 1 else "divide"
        why = f": {', '.join(lost)} {verb} operands, but not the result" if lost else ""
        yield f"from {operands} to {result}{why}" if operands else f"result {result}"


def time(kernels: AnyFigures, kernel: Kernel) -> str:
    """Return how long a collective takes by the roofline model, and whether it is overlapped."""
    seconds = estimate(kernel, kernels.target)
    amount = "time unknown"
    if seconds is not None:
        amount = f"{units.about(seconds)}{_links(kernels)} by the roofline model"
    overlaps = is_async(kernel)
    return f"{amount}, overlapped with other kernels" if overlaps else f"{amount}, not overlapped"


def is_async(kernel: Kernel) -> bool:
    """Return whether other kernels run between a collective's start and its end."""
    return kernel.collective is not None and kernel.collective.is_async


def _groups(collective: Collective) -> Iterator[str]:
    """Yield the first groups of devices, or pairs of source and target."""
    if not (groups := collective.groups):
        return
    is_permutation = collective.kind == "collective-permute"
    shown = [
        " → ".join(map(str, group))
        if is_permutation
        else f"{{{', '.join(map(str, group[:_DEVICES]))}{', …' if len(group) > _DEVICES else ''}}}"
        for group in groups
    ]
    what = "pairs" if is_permutation else "groups"
    yield f"{what} of devices: {some(shown, _GROUPS)}"


def _short(text: str) -> str:
    return cut(" ".join(text.replace("`", "'").split()), _LONGEST)


def communication_line(kernels: AnyFigures, moved: str) -> str:
    """Return `communication: 4 collectives, 68 MiB per device, ≈ 0.15 ms, 3 overlapped`.

    Empty without collectives. The time is a lower bound if it is unknown for some of them.

    Args:
        moved: the bytes on one device, in words.
    """
    graph, collectives = kernels.graph, kernels.graph.collectives
    if not collectives:
        return ""
    times = [estimate(kernel, kernels.target) for kernel in collectives]
    estimates = [seconds for seconds in times if seconds is not None]
    if graph.branches or not estimates:
        total = "time unknown"
    elif len(estimates) < len(times) or not graph.moved_known:
        total = f"≥ {units.time(sum(estimates))}{_links(kernels)}"
    else:
        total = f"{units.about(sum(estimates))}{_links(kernels)}"
    parts = [count(len(collectives), "collective"), f"{moved} per device", total]
    overlapped = sum(map(is_async, collectives))
    part = "all" if overlapped == len(collectives) else f"{overlapped}"
    parts.append(f"{part} overlapped with other kernels" if overlapped else "not overlapped")
    return f"communication: {', '.join(parts)}"


def _links(kernels: AnyFigures) -> str:
    """Return ` over NVLink`: the links that the estimates are of."""
    chip = kernels.target.chip
    links = LINKS.get(chip.name) if chip is not None else None
    return f" over {links.name}" if links is not None else ""


def rows(kernels: AnyFigures) -> list[Sequence[str]]:
    """Return a row for each collective: its kind, bytes, scope, time and line."""
    return [
        (
            collective.kind,
            f"{units.size(collective.bytes)}{runs(kernel, kernels.graph)}",
            scope(collective),
            "?" if (seconds := estimate(kernel, kernels.target)) is None else units.about(seconds),
            str(line(kernels, kernel) or ""),
        )
        for kernel in kernels.graph.collectives
        if (collective := kernel.collective) is not None
    ]
