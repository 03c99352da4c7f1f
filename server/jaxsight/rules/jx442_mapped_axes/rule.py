"""JX442: `vmap` or `pmap` maps axes of different sizes, or axes that an argument does not have."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from jaxsight.meshes.divided import array_type
from jaxsight.rules.differences import shape_text
from jaxsight.rules.error_table import ErrorTable
from jaxsight.rules.failure_text import jax_page, operand
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import keyword, name_of, parsed_call
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX442",
    "mapped-axes",
    "Axes that `vmap` maps differ in size, or do not exist.",
)

_SIZE = re.compile(
    r"^  \* (?:one axis|most axes \(\d+ of them\)|some axes \(\d+ of them\)) had size (?P<size>\d+)"
    r"(?:, e\.g\.|:) axis (?P<axis>-?\d+) of (?:argument )?(?P<name>\S[^\n]*?)"
    r"(?: of type (?P<type>\S+?))?;?$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class InAxes:
    """The `in_axes=` that fits the arguments, for the fix."""

    text: str


ERRORS = ErrorTable("ValueError", "TypeError")
RULE.explains(ERRORS.explain)


@ERRORS.explains(r"(?P<api>[vp]map) got inconsistent sizes for array axes to be mapped:")
def of_sizes(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    found = list(_SIZE.finditer(failure.message))
    places = " and ".join(
        f"{each['size']} (axis {each['axis']} of {quoted(_name(each), most=20)})"
        for each in found[:2]
    )
    return Violation(
        f"`{match['api']}` maps axes of different sizes: {places}",
        help=_other_axis(found)
        or "pass `None` in `in_axes` for what is the same in all calls, or choose axes of one size",
        notes=tuple(
            f"{quoted(_name(each))} is `{each['type']}`"
            for each in found
            if each["type"] not in (None, "unknown")
        ),
        url=jax_page(failure),
    )


def _name(match: re.Match[str]) -> str:
    """Return `a3` for an argument passed by name, which JAX calls `kwargs['a3']`."""
    return re.sub(r"^kwargs\['(\w+)'\]", r"\1", match["name"])


def _other_axis(found: list[re.Match[str]]) -> str:
    """Return the help that chooses the one axis of an argument that has the size of the others."""
    choices = []
    for match, other in zip(found[:2], found[1::-1], strict=False):
        type = array_type(match["type"] or "")
        sizes = type.shape if type is not None else ()
        fitting = [axis for axis, size in enumerate(sizes) if size == int(other["size"])]
        if len(fitting) == 1:
            choices.append(
                f"map axis {fitting[0]} of {quoted(_name(match), most=20)} with `in_axes`, which "
                f"has size {other['size']}"
            )
    return choices[0] if len(choices) == 1 else ""


@ERRORS.explains(
    r"(?P<api>[vp]map) was requested to map its argument along axis (?P<axis>-?\d+), which "
    r"implies that its rank should be at least \d+, but is only \d+ \(its shape is "
    r"(?P<shape>\([\d, ]*\))\)"
)
def of_rank(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    call = parsed_call(expression)
    axes, scalar = None, ""
    if call is not None and not call.keywords:
        types = [operand(failure, argument) for argument in call.args]
        shapes = [type.shape if type is not None else None for type in types]
        low = [at for at, sizes in enumerate(shapes) if shape_text(sizes or ()) == match["shape"]]
        if len(low) == 1 and None not in shapes:
            scalar = ast.unparse(call.args[low[0]])
        inner = call.func if isinstance(call.func, ast.Call) else None
        is_default = (
            inner is not None
            and name_of(inner) == match["api"]
            and len(inner.args) == 1
            and keyword(inner, "in_axes") is None
        )
        if is_default and None not in shapes and any(shapes):
            axes = f"({', '.join('0' if each else 'None' for each in shapes)})"
    return Violation(
        f"`{match['api']}` maps axis {match['axis']} of {quoted(scalar, 'an argument')}, whose "
        f"shape is {match['shape']}",
        help=f"pass `in_axes={axes or '(0, None)'}`, with `None` for what is not mapped",
        notes=("`in_axes` is 0 for all arguments unless it is given",),
        data=InAxes(axes) if axes is not None else None,
        url=jax_page(failure),
    )


_AXES = (
    r"(?P<api>[vp]map) in_axes must be an int, None, or a tuple of entries corresponding to the "
    r"positional arguments passed to the function, but got "
)


ERRORS.says(
    _AXES + r"len\(in_axes\)=(?P<entries>\d+), len\(args\)=(?P<arguments>\d+)",
    "`in_axes` of `{api}` has {entries} entries for {arguments} arguments",
    help="write one entry for each positional argument, `None` for those that are not mapped",
    note="arguments that are passed by name are always mapped over axis 0",
)
ERRORS.says(
    _AXES + r"(?P<given>[^\n]+?)\.?$",
    "`in_axes` of `{api}` is {given:q}, not a tuple",
    help="write a tuple with one entry for each argument: `in_axes=({given},)`",
)
ERRORS.says(
    r"(?P<api>[vp]map) (?P<which>in_axes|out_axes) specification must be a tree prefix of the ",
    "`{which}` of `{api}` has another structure than what it is for",
    help="write one entry for each argument or result: an axis or `None` applies to all its "
    "leaves, a `dict` or tuple of them needs the same keys",
)
ERRORS.says(
    r"(?:at )?(?P<api>[vp]map) (?:out_axes(?P<path>\S*), got axis spec None but output was "
    r"batched|has mapped output )",
    "`out_axes{path}` of `{api}` is `None`, but the result is mapped",
    help="use an axis such as 0, or reduce the result over the mapped axis: "
    "`jax.lax.pmean(x, axis_name)`",
)
ERRORS.says(
    r"(?P<api>[vp]map) must have at least one non-None value in in_axes",
    "`in_axes` of `{api}` maps no argument",
    help="choose an axis of at least one argument, as in `in_axes=0`, or pass `axis_size=`",
)
