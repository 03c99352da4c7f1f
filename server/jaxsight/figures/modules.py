"""A function's kernels by the functions and modules that their equations were created in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from jaxsight.figures.figures import AnyFigures
from jaxsight.targets.roofline import together
from jaxsight.text import units
from jaxsight.text.inert import one_line

FEW = 20
"""AnyFigures that a table lists, a choice: a screen. Programs with more are summed up by module."""

Scope = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """AnyFigures of a scope: their indices, and sums over all their launches in one run.

    `bytes` are read and written, each input once; `seconds` is an estimate, `None` if that of one
    of the kernels is unknown.
    """

    scope: Scope
    kernels: tuple[int, ...]
    bytes: int
    seconds: float | None


def groups(kernels: AnyFigures, most: int) -> list[KernelGroup]:
    """Return at most about `most` groups, as deep as that allows, in the order of first launch.

    The first level is not cut further. AnyFigures of the function itself have an empty scope.
    """
    scopes = _scopes(kernels)
    deepest = max(map(len, scopes), default=0)
    cut = scopes
    for depth in range(deepest, 0, -1):
        cut = [scope[:depth] for scope in scopes]
        if len(set(cut)) <= most:
            break
    by_scope: dict[Scope, list[int]] = {}
    for index, scope in enumerate(cut):
        by_scope.setdefault(scope, []).append(index)
    return [_group(kernels, scope, indices) for scope, indices in by_scope.items()]


def runs(kernels: AnyFigures) -> list[KernelGroup]:
    """Return the runs of successive kernels of one scope, in the order of launches."""
    numbered = groupby(enumerate(_scopes(kernels)), key=lambda pair: pair[1])
    return [_group(kernels, scope, [index for index, _ in pairs]) for scope, pairs in numbered]


def _scopes(kernels: AnyFigures) -> list[Scope]:
    return [kernels.scope(kernel) for kernel in kernels.graph.kernels]


def _group(kernels: AnyFigures, scope: Scope, indices: Sequence[int]) -> KernelGroup:
    chosen = [kernels.graph.kernels[index] for index in indices]
    moved = sum(kernel.runs * (kernel.bytes_in + kernel.bytes_out) for kernel in chosen)
    return KernelGroup(scope, tuple(indices), moved, together(chosen, kernels.target))


def title(group: KernelGroup, function: str) -> str:
    """Return `loss/model/blocks[3]/attn`; the function's name for its own kernels."""
    return one_line("/".join(group.scope) or function)


def figures(group: KernelGroup) -> list[str]:
    """Return `12 kernels`, `4 MiB` and, where it is known, `≈ 3.6 µs`."""
    words = [units.count(len(group.kernels), "kernel"), units.size(group.bytes)]
    if group.seconds is not None and group.seconds >= units.SHORTEST:
        words.append(units.about(group.seconds))
    return words


def summary(kernels: AnyFigures, function: str, most: int) -> Iterator[str]:
    """Yield `loss/model/blocks[3]/attn: 12 kernels, 4 MiB` for each group of a large program.

    Yields nothing for a small one, and for one whose kernels all belong to the same group.
    """
    if kernels.graph.kernel_count <= FEW:
        return
    by_module = groups(kernels, most)
    if len(by_module) > 1:
        for group in by_module:
            yield f"{title(group, function)}: {', '.join(figures(group))}"
