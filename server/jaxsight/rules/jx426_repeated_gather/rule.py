"""JX426: a program gathers the same value twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import size
from jaxsight.wire.primitives import MOVES

RULE = Rule(__name__, "The same value is gathered twice.", severity="warning")
_GATHERS = frozenset({"all_gather", "all_gather_invariant", "all_gather_reduced"})
_WHOLE = MOVES - {"slice", "split", "stack", "unstack"}
"""Primitives whose result has all elements of their operand, and no other ones."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield each gather of what the program gathered before over the same axes.

    Only the program's own gathers count, which XLA has not merged. Bodies of `jax.checkpoint` have
    values of their own: to gather again in the backward pass is what they are for.
    """
    if view.on_target.devices < 2:
        return
    gathered: dict[tuple[int, tuple[str, ...]], list[str]] = defaultdict(list)
    known: set[str] = set()
    for kernel in view.on_target.graph.kernels:
        collective = kernel.collective
        if collective is None or collective.inserted or collective.kind != "all-gather":
            continue
        paths = [
            path
            for path in kernel.equations
            if (step := view.flow.steps.get(path)) is not None
            and step.primitive in _GATHERS
            and not step.backward
        ]
        if len(kernel.outputs) < len(paths) or "remat" in kernel.name:
            continue  # XLA merged some of them (HloCSE), or repeats one (HloRematerialization)
        for path in paths:
            step = view.flow.steps[path]
            if path not in known and len(step.operands) == 1:
                known.add(path)
                source = view.flow.before(step.operands[0], _WHOLE)
                gathered[source, collective.axes].append(path)
    for (_, axes), found in gathered.items():
        first, *others = sorted(found, key=list(view.flow.steps).index)
        for path in others:
            bytes = view.flow.value(view.flow.steps[path].results[0]).bytes
            yield Violation(
                f"gathers the same value a second time: {size(bytes)}"
                + (f" over {', '.join(axes)}" if axes else ""),
                path,
                help=f"gather it once, and compute both from the result of {view.quoted(first)}",
                notes=(
                    "the gathers differ in dtype or dimension, so that XLA does not merge them",
                ),
                related=((first, "the first gather"),),
            )
