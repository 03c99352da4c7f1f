"""JX411: shardings do not match, or the compiler communicates where the program does not ask."""

# Longer than most rules: errors of `shard_map`, errors of explicit types, and collectives of
# compiled programs.

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.meshes.divided import divided_type, inserted_reshards, shape_of
from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.failure_text import first_paragraph
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import quoted
from jaxsight.text.inert import words
from jaxsight.text.units import size
from jaxsight.wire.kernel_graph import Collective
from jaxsight.wire.meshes import Chosen, Divided
from jaxsight.wire.primitives import ELEMENTWISE

RULE = Rule(
    __name__, "Mismatched shardings, or implicit communication.", severity="warning", unless="JX422"
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
_AUTO = (
    "make the mesh with `axis_types=(jax.sharding.AxisType.Auto,)` for each axis, so that the "
    "compiler divides"
)
_EXPLICIT = (
    "axes of this mesh are explicit, as newer releases of JAX make them unless `axis_types=` is "
    "given: shardings are then part of types"
)
_UNEVEN = "axis sizes that are not evenly divisible"


ERRORS = ErrorTable(
    RULE,
    "ValueError",
    "TypeError",
    "AssertionError",
    "RuntimeError",
    auto=_AUTO,
    explicit=_EXPLICIT,
)


@ERRORS.explains(
    r"in_specs passed to shard_map: (?P<spec>P\([^\n]*?\)) does not match the specs of the input: "
    r"(?P<given>P\([^\n]*?\)) for arg"
)
def of_input(error: Matched) -> Violation:
    spec, given = _short_spec(error["spec"]), _short_spec(error["given"])
    reshard = f"`jax.sharding.reshard(x, {spec.strip('`')})`"
    return Violation(
        f"`shard_map` needs an input divided as {spec}, but it is {given}",
        help=f"divide it before: {reshard}; or {_AUTO}",
        notes=(_EXPLICIT,),
    )


ERRORS.table(r"""
`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`\. The
        array sharding: (?P<given>P\([^\n]*?\)) did not match the sharding provided:
        (?P<spec>P\([^\n]*?\))\.
    constraint {spec:q30} is only checked here, and the array is {given:q30}
    help: change the sharding with `jax.sharding.reshard(x, spec)`, or {auto}
    note: {explicit}
The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the
        mesh\. Got spec=(?P<spec>P\([^\n]*?\)) and
    constraint {spec:q30} names an axis of the mesh that is explicit
    help: change the sharding with `jax.sharding.reshard(x, spec)`, or {auto}
    note: {explicit}
with_sharding_constraint requires a non-empty mesh in context
    {expression:q} has a spec, but no mesh is set
    help: pass `jax.NamedSharding(mesh, spec)`, or set the mesh around it: `with
        jax.set_mesh(mesh):`
Resource axis: (?P<axis>\w+) of (?P<spec>P\([^\n]*?\)) is not found in mesh: \((?P<axes>[^)]*?),?\)
    spec {spec:q30} names the axis {axis:q20}, which the mesh does not have
    help: use an axis of the mesh: {axes}
shard_map (?P<which>in_specs|out_specs) argument must refer to an axis marked as manual
        \(frozenset\(\{(?P<axes>[^}]*)\}\)\), but:\s+\S+ refers to (?P<axis>'[^']*')
    `{which}` of `shard_map` names {axis}, which the mesh does not have
    help: use an axis of the mesh: {axes}
shard_map (?P<which>in_specs|out_specs) argument must be a pytree of `jax\.sharding\.PartitionSpec`
        instances, but:\s+[^\n]*? of type (?P<type>\w+)
    `{which}` of `shard_map` has a {type:q}, not a `PartitionSpec`
    help: write `P("data")`, with `from jax.sharding import PartitionSpec as P`: the mesh is an
        argument of its own
""")


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize errors about the specs of `shard_map`, and about explicit shardings.

    Axes that do not divide an argument are JX427's.
    """
    known = ERRORS.explain(error)
    if known is not None:
        return known
    message = error.message
    sharded = "shard_map" in message and "spec" in message and _UNEVEN not in message
    is_typed = error.failure.type.rpartition(".")[2] == "ShardingTypeError"
    typed = is_typed or "sharding mismatch" in message.lower()
    if not (sharded or typed):
        return None
    problem, help = _of_specs(message) if sharded else ("shardings do not match", _RESHARD)
    notes = (words(first_paragraph(message)), *((_EXPLICIT,) if typed else ()))
    return Violation(problem, help=help, notes=notes)


def _of_specs(message: str) -> tuple[str, str]:
    """Return what is wrong with the specs of a `shard_map`, and what to do."""
    if (replicated := _REPLICATED.search(message)) is not None:
        axes = ", ".join(re.findall(r"\w+", replicated["axes"]))
        spec, name = _short_spec(replicated["spec"]), axes.partition(",")[0]
        help = (
            f'reduce over the axis in the body, as `jax.lax.psum(x, "{name}")`, or divide the '
            f'result: `P("{name}")`; pass `check_vma=False` only if the results are equal'
        )
        which = replicated["which"]
        return f"`{which}` {spec} of `shard_map` needs results equal over `{axes}`", help
    if (long := _LONG_SPEC.search(message)) is not None:
        axes = {"0": "no axis", "1": "one axis"}.get(long["rank"], f"{long['rank']} axes")
        spec = f"{_short_spec(long['spec'])} of `shard_map` has {long['length']} entries"
        return f"spec {spec} for {axes}", "write at most one entry for each axis of the array"
    return "specs of `shard_map` do not fit", "write one spec for each argument and each result"


def _short_spec(spec: str) -> str:
    text = spec.replace("PartitionSpec", "P").replace("'", '"').replace(",)", ")")
    return quoted(text, most=30)


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
    step, moved = view.flow.steps[path], set(collective.axes)
    kept = {axis for axes in known.spec for axis in axes}
    for operand in known.operands:
        over, shape = {axis for axes in operand.spec for axis in axes}, shape_of(operand.type)
        values = [number for number in step.operands if view.flow.value(number).shape == shape]
        is_kept = shape == shape_of(known.type) and operand.spec == known.spec
        if not moved or not moved <= over or is_kept or not values:
            continue
        if step.primitive in ELEMENTWISE:
            is_other = not _disagrees(operand, known)
        else:  # another operand may be the one that is moved
            is_other = bool(kept & moved) or any(_is_placed(view, each) for each in values)
        if not is_other and not any(_is_small_input(view, each) for each in values):
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
    maker = view.flow.maker_of(number)
    return maker is None or maker.primitive in _COLLECTIVES | {"optimization_barrier"}


def _is_small_input(view: ProgramView, number: int) -> bool:
    """Return whether a value is broadcast from an input, such as the bias of a layer."""
    inner = view.flow.stripped(number)
    is_input = view.flow.producer(inner) is None
    return is_input and view.flow.value(inner).elements < view.flow.value(number).elements
