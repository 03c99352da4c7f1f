"""JX422: XLA replicates an array on every device to change its sharding."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.module_names import constrained, meshes
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import LAUNCHED, MOVED, STORED, Proof, Rule, Violation

RULE = Rule(__name__, "Resharding replicates an array on every device.", severity="warning")


@dataclass(frozen=True, slots=True)
class Resharding:
    """The shardings before and after, as HLO prints them."""

    source: str
    target: str


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield each array that the partitioner reports to be resharded through a replica.

    XLA logs this as an involuntary full rematerialization (`spmd_partitioner.cc`).
    """
    for each in view.on_target.rematerialized:
        if each.equation not in view.flow.steps:
            continue
        yield Violation(
            f"resharding replicates {each.type} on every device",
            each.equation,
            help="reshard in steps: move one mesh axis at a time with "
            "`jax.lax.with_sharding_constraint`",
            notes=(
                f"from `{each.source}` to `{each.target}`",
                "XLA calls this an involuntary full rematerialization",
            ),
            data=Resharding(each.source, each.target),
        )


# The fix: reshard in two steps.

_DIMENSION = re.compile(r"\{([^{}]*)\}")
_AXIS = re.compile(r"'(\w+)'")


@RULE.fixes(
    "the array resharded in two steps",
    Proof.COMMUNICATED,
    trades=frozenset({LAUNCHED, MOVED, STORED}),
)
def candidates(context: FixContext, resharding: Resharding) -> Iterator[Candidate]:
    """Yield constraints to shardings that have some axes moved, and others not yet."""
    value = next(context.find(ast.expr), None)
    if not isinstance(value, ast.expr):
        return
    for spec in _between(_dimensions(resharding.source), _dimensions(resharding.target)):
        for mesh in meshes(context):
            text = constrained(context, context.text(value), mesh, spec)
            edits = (context.replace(value, text), *context.jax_import())
            yield Candidate(f"Reshard in two steps, over `P({spec})`", edits)


def _dimensions(sharding: str) -> list[list[str]]:
    """Return the axes of each dimension of `{mesh['x'=4], [{'x'}, {}]}`."""
    listed = sharding.partition("], [")[2]
    return [_AXIS.findall(dimension) for dimension in _DIMENSION.findall(listed)]


def _between(source: list[list[str]], target: list[list[str]]) -> Iterator[str]:
    """Yield the specs with each axis where it is in one of two shardings of an array."""
    if len(source) != len(target):
        return
    axes = list(dict.fromkeys(axis for axes in (*source, *target) for axis in axes))
    for moved in product((False, True), repeat=len(axes)):
        done = dict(zip(axes, moved, strict=True))
        spec = [
            [axis for axis in before if not done[axis]] + [axis for axis in after if done[axis]]
            for before, after in zip(source, target, strict=True)
        ]
        if spec not in (source, target):
            yield ", ".join(map(_entry, spec))


def _entry(axes: list[str]) -> str:
    """Return the axes of a dimension as `P` takes them."""
    if len(axes) == 1:
        return f'"{axes[0]}"'
    return f"({', '.join(f'{chr(34)}{axis}{chr(34)}' for axis in axes)})" if axes else "None"
