"""JX411: shardings do not match, or the compiler communicates where the program does not ask."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.meshes.divided import divided_type, inserted_reshards, shape_of
from jaxsight.rules.failure_text import first_paragraph, jax_page
from jaxsight.rules.program.steps import elements
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import maker_of, stripped
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.text.units import size
from jaxsight.wire.kernel_graph import Collective
from jaxsight.wire.meshes import Chosen, Divided
from jaxsight.wire.observations import Failure
from jaxsight.wire.primitives import ELEMENTWISE

RULE = Rule(
    "JX411",
    "sharding",
    "Mismatched shardings, or implicit communication.",
    severity="warning",
    unless="JX422",
)

_COLLECTIVES = frozenset(
    {"psum", "psum2", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant",
     "reduce_scatter", "all_to_all", "ppermute", "pbroadcast", "sharding_constraint", "reshard",
     "pgather", "ragged_all_to_all", "all_gather_reduced", "unreduced_psum"}
)  # fmt: skip

_REPLICATED = re.compile(
    r"(?P<which>out_specs\S*) is (?P<spec>P(?:artitionSpec)?\([^\n]*?\)) which implies that the "
    r"corresponding output value is replicated across mesh ax[ei]s (?P<axes>[^\n]+?), but could"
)
_LONG_SPEC = re.compile(
    r"is (?P<spec>P(?:artitionSpec)?\([^\n]*?\)) which has length (?P<length>\d+), but [^\n]*?has "
    r"rank (?P<rank>\d+)"
)
_RESHARD = "divide the operands alike before: `jax.sharding.reshard(x, spec)`"
_UNEVEN = "axis sizes that are not evenly divisible"


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize errors about the specs of `shard_map`, and about explicit shardings.

    Axes that do not divide an argument are JX427's.
    """
    message = failure.message
    sharded = "shard_map" in message and "spec" in message and _UNEVEN not in message
    typed = (
        failure.type.rpartition(".")[2] == "ShardingTypeError"
        or "sharding mismatch" in message.lower()
    )
    if not (sharded or typed):
        return None
    problem, help = "shardings do not match", _RESHARD
    if sharded:
        problem, help = _of_specs(message)
    return Violation(problem, help=help, notes=(first_paragraph(message),), url=jax_page(failure))


def _of_specs(message: str) -> tuple[str, str]:
    """Return what is wrong with the specs of a `shard_map`, and what to do."""
    if (replicated := _REPLICATED.search(message)) is not None:
        axes = ", ".join(re.findall(r"\w+", replicated["axes"]))
        spec = _short_spec(replicated["spec"])
        name = axes.partition(",")[0]
        return (
            f"`{replicated['which']}` {spec} of `shard_map` needs results equal over `{axes}`",
            (
                f'reduce over the axis in the body, as `jax.lax.psum(x, "{name}")`, or divide the '
                f'result: `P("{name}")`; pass `check_vma=False` only if the results are equal'
            ),
        )
    if (long := _LONG_SPEC.search(message)) is not None:
        axes = {"0": "no axis", "1": "one axis"}.get(long["rank"], f"{long['rank']} axes")
        return (
            (
                f"spec {_short_spec(long['spec'])} of `shard_map` has {long['length']} entries for "
                f"{axes}"
            ),
            "write at most one entry for each axis of the array",
        )
    if "does not match the specs of the input" in message:
        return "specs of `shard_map` differ from how the input is divided", _RESHARD
    return "specs of `shard_map` do not fit", "write one spec for each argument and each result"


def _short_spec(spec: str) -> str:
    return quoted(spec.replace("PartitionSpec", "P").replace("'", '"'), most=30)


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the collectives that only change shardings, where the program asks for none.

    Sums over divided dimensions are not reported, nor are gathers of parameters for products:
    both are what the shardings of the inputs ask for.
    """
    reported: set[str] = set()
    for kernel, collective in inserted_reshards(view.on_target):
        paths = [path for path in (kernel.equations or kernel.feeds) if path in view.flow.steps]
        if any(view.flow.steps[path].primitive in _COLLECTIVES for path in paths):
            continue
        for path in reversed(paths):
            known = view.shardings.get(path)
            operand = _resharded(view, path, known, collective) if known is not None else None
            if known is None or operand is None or path in reported:
                continue
            reported.add(path)
            before = divided_type(operand.type, operand.spec)
            after = divided_type(known.type, known.spec)
            yield Violation(
                f"implicit {collective.kind} ({size(collective.bytes)} per device) over "
                f"{', '.join(collective.axes)} changes a sharding",
                path,
                help="constrain the operand or the result with `jax.lax.with_sharding_constraint`",
                notes=(
                    f"an operand is `{before}`, the result `{after}`",
                    "the partitioner inserted it: the program has no collective here",
                ),
            )
            break


def _resharded(
    view: ProgramView, path: str, known: Chosen, collective: Collective
) -> Divided | None:
    """Return the operand that a collective changes the sharding of; `None` if it is not certain.

    It is divided over all axes of the collective, and the result has it divided otherwise.
    """
    step = view.flow.steps[path]
    for operand in known.operands:
        over = {axis for axes in operand.spec for axis in axes}
        if not collective.axes or not over.issuperset(collective.axes):
            continue
        same_shape = shape_of(operand.type) == shape_of(known.type)
        if same_shape and operand.spec == known.spec:
            continue
        values = [
            number
            for number in step.operands
            if view.flow.value(number).shape == shape_of(operand.type)
        ]
        if not values:
            continue
        if step.primitive in ELEMENTWISE and not _disagrees(operand, known):
            continue
        kept = {axis for axes in known.spec for axis in axes}
        if step.primitive not in ELEMENTWISE and not kept.isdisjoint(collective.axes):
            continue  # another operand may be the one that is moved
        if step.primitive not in ELEMENTWISE and any(_is_placed(view, each) for each in values):
            continue
        if any(_is_small_input(view, each) for each in values):
            continue
        return operand
    return None


def _disagrees(operand: Divided, known: Chosen) -> bool:
    """Return whether another operand of an elementwise operation is divided otherwise.

    If all agree, the sharding of the result is asked for by what reads it.
    """
    return shape_of(operand.type) == shape_of(known.type) and any(
        other.spec != operand.spec and shape_of(other.type) == shape_of(operand.type)
        for other in known.operands
    )


def _is_placed(view: ProgramView, number: int) -> bool:
    """Return whether a value is an input, or one whose sharding the program sets itself."""
    maker = maker_of(view.flow, number)
    return maker is None or maker.primitive in _COLLECTIVES | {"optimization_barrier"}


def _is_small_input(view: ProgramView, number: int) -> bool:
    """Return whether a value is broadcast from an input, such as the bias of a layer."""
    inner = stripped(view.flow, number)
    is_input = view.flow.made_by(inner) is None
    return is_input and elements(view.flow.value(inner)) < elements(view.flow.value(number))
