"""JX411: shardings do not match, or the compiler communicates where the program does not."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.exceptions import first_paragraph, jax_page
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Failure
from jaxsight.units import size

RULE = Rule(
    "JX411",
    "sharding",
    "Shardings do not match, or the compiler communicates on its own.",
    severity="warning",
)

_COLLECTIVES = frozenset(
    {"psum", "psum2", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant", "reduce_scatter", "all_to_all", "ppermute",
     "pbroadcast", "sharding_constraint", "reshard", "pgather", "ragged_all_to_all", "all_gather_reduced", "unreduced_psum"}
)  # fmt: skip


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognises the errors of `shard_map` on specs, and of explicit shardings."""
    message = failure.message
    sharded = "shard_map" in message and ("spec" in message or "divisible" in message)
    typed = (
        failure.type.rpartition(".")[2] in ("ShardingTypeError",)
        or "sharding mismatch" in message.lower()
    )
    if not (sharded or typed):
        return None
    return Noticed(first_paragraph(message), url=jax_page(failure))


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each collective of the target's program at an equation that asks for none."""
    if reading.compiled is None:
        return
    told: set[str] = set()
    for kernel in reading.compiled.graph.kernels:
        if kernel.kind != "collective":
            continue
        paths = [path for path in kernel.equations if path in reading.flow.steps]
        if any(reading.flow.steps[path].primitive in _COLLECTIVES for path in paths):
            continue
        at = next(
            (path for path in (kernel.ends_at, *reversed(paths)) if path in reading.flow.steps), ""
        )
        if not at or at in told:
            continue
        told.add(at)
        yield Noticed(
            f"The compiler put a collective ({kernel.what}, {size(kernel.bytes_out)}) at {reading.quoted(at)}, where the program has none, to "
            "make shardings fit: say where the data shall lie with `jax.lax.with_sharding_constraint`.",
            at,
        )
