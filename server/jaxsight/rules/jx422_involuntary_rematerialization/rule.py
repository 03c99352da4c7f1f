"""JX422: XLA replicates an array on every device to change its sharding."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation

RULE = Rule(__name__, "Resharding replicates an array on every device.", severity="warning")


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
        )
