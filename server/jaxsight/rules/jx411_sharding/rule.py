"""JX411: shardings do not match, or the compiler communicates where the program does not ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.failure_text import first_paragraph, jax_page
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import cut
from jaxsight.text.units import size
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX411",
    "sharding",
    "Mismatched shardings, or implicit communication.",
    severity="warning",
)

_COLLECTIVES = frozenset(
    {"psum", "psum2", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant",
     "reduce_scatter", "all_to_all", "ppermute", "pbroadcast", "sharding_constraint", "reshard",
     "pgather", "ragged_all_to_all", "all_gather_reduced", "unreduced_psum"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImplicitCollective:
    """A collective that the compiler inserted."""

    kind: str
    """`all-gather`."""
    bytes: int
    """The size of its results."""


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize errors about the specs of `shard_map`, and about explicit shardings."""
    message = failure.message
    sharded = "shard_map" in message and ("spec" in message or "divisible" in message)
    typed = (
        failure.type.rpartition(".")[2] in ("ShardingTypeError",)
        or "sharding mismatch" in message.lower()
    )
    if not (sharded or typed):
        return None
    problem = "specs of `shard_map` do not fit" if sharded else "shardings do not match"
    return Violation(problem, notes=(first_paragraph(message),), url=jax_page(failure))


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the collectives of the target's program at equations that ask for none."""
    if view.compiled is None:
        return
    reported: set[str] = set()
    for kernel in view.compiled.graph.kernels:
        if kernel.kind != "collective":
            continue
        paths = [path for path in kernel.equations if path in view.flow.steps]
        if any(view.flow.steps[path].primitive in _COLLECTIVES for path in paths):
            continue
        at = next(
            (path for path in (kernel.ends_at, *reversed(paths)) if path in view.flow.steps), ""
        )
        if not at or at in reported:
            continue
        reported.add(at)
        yield Violation(
            f"implicit {cut(kernel.what, 30)} ({size(kernel.bytes_out)}) reconciles shardings",
            at,
            help="constrain the layout with `jax.lax.with_sharding_constraint`",
            notes=("the compiler inserted it: the program has no collective here",),
            data=ImplicitCollective(kernel.what, kernel.bytes_out),
        )
