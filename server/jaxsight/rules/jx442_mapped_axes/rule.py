"""JX442: `vmap` or `pmap` maps axes of different sizes, or axes that an argument does not have."""

# Longer than most rules: a table of nine errors, of which four need the arguments of the call.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.meshes.divided import array_type
from jaxsight.rules.differences import shape_text
from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import keyword, name_of
from jaxsight.rules.wording import quoted, short

RULE = Rule(__name__, "Axes that `vmap` maps differ in size, or do not exist.")

_SIZE = re.compile(
    r"^  \* (?:one axis|most axes \(\d+ of them\)|some axes \(\d+ of them\)) had size (?P<size>\d+)"
    r"(?:, e\.g\.|:) axis (?P<axis>-?\d+) of (?:argument )?(?P<name>\S[^\n]*?)"
    r"(?: of type (?P<type>\S+?))?;?$",
    re.MULTILINE,
)


_SAME = "pass `None` in `in_axes` for what is the same in all calls, or choose axes of one size"
_BY_NAME = (
    "bind what is the same in all calls with `functools.partial`: arguments that are passed by "
    "name are always mapped over axis 0"
)


ERRORS = ErrorTable(RULE, "ValueError", "TypeError")


@ERRORS.explains(r"(?P<api>[vp]map) got inconsistent sizes for array axes to be mapped:")
def of_sizes(error: Matched) -> Violation:
    found = list(_SIZE.finditer(error.message))
    by_name = any(each["name"].startswith("kwargs[") for each in found)
    places = " and ".join(
        f"{each['size']} (axis {each['axis']} of {quoted(_name(each), most=20)})"
        for each in found[:2]
    )
    return Violation(
        f"`{error['api']}` maps axes of different sizes: {places}",
        help=_other_axis(found) or (_BY_NAME if by_name else _SAME),
        notes=tuple(
            f"{quoted(_name(each))} is `{each['type']}`"
            for each in found
            if each["type"] not in (None, "unknown")
        ),
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
def of_rank(error: Matched) -> Violation:
    call, api, shape = error.call, error["api"], error["shape"]
    what, help = "an argument", "pass `None` in `in_axes` for what is not mapped"
    axes, data = None, None
    notes: tuple[str, ...] = ("`in_axes` is 0 for all arguments unless it is given",)
    if shape != "()":
        help, notes = "map an axis that it has: they count from 0", ()
        fitting = {name for name, type in error.arrays if shape_text(type.shape) == shape}
        what = quoted(fitting.pop(), most=30) if len(fitting) == 1 else what
    if call is not None and shape == "()":
        low = [each for each in call.args if error.rank(each) == 0]
        named = [each for each in call.keywords if each.arg and error.rank(each.value) == 0]
        if len(low) == 1 or (not low and len(named) == 1):
            what = quoted(ast.unparse(low[0]) if low else str(named[0].arg), most=30)
        entries = [_entry(error, each) for each in call.args]
        if not low and len(named) == 1:
            bound = f"jax.{api}(partial(f, {named[0].arg}={ast.unparse(named[0].value)}))"
            help = f"bind what is not mapped: `{short(bound)}`"
            notes = ("arguments that are passed by name are always mapped over axis 0",)
        elif None not in entries and len(set(entries)) > 1:
            axes = f"({', '.join(map(str, entries))}{',' * (len(entries) == 1)})"
        elif None not in entries and entries and entries[0] not in ("0", "None"):
            axes = f"({entries[0]},)"
        if len(low) == 1 and error.is_key(low[0]):
            notes = ("`jax.random.split(key, n)` makes a key for each, which draws other numbers",)
        match call:
            case ast.Call(func=ast.Call(args=[_]) as inner, keywords=[]):
                if axes and name_of(inner) == api and keyword(inner, "in_axes") is None:
                    data = axes
        if axes is not None:
            help = f"pass `in_axes={axes}`, with `None` for what is not mapped"
    return Violation(
        f"`{api}` maps axis {error['axis']} of {what}, whose shape is {shape}",
        help=help,
        notes=notes,
        data=data,
    )


def _entry(error: Matched, argument: ast.expr) -> str | None:
    """Return the entry of `in_axes` for an argument; `None` if its rank is not known."""
    axes = error.rank(argument)
    if axes is not None:
        return "0" if axes else "None"
    match argument:
        case ast.Dict(keys=keys, values=values) if all(keys):
            entries = [_entry(error, each) for each in values]
            pairs = zip((ast.unparse(key) for key in keys if key is not None), entries, strict=True)
            text = f"{{{', '.join(f'{key}: {entry}' for key, entry in pairs)}}}"
        case ast.Tuple(elts=items) | ast.List(elts=items) if items:
            entries = [_entry(error, each) for each in items]
            inside = ", ".join(map(str, entries))
            text = f"[{inside}]" if isinstance(argument, ast.List) else f"({inside},)"
        case _:
            return None
    return None if None in entries else text


@ERRORS.explains(r"axis (?P<axis>-?\d+) is out of bounds for array of dimension (?P<rank>\d+)")
def of_result(error: Matched) -> Violation | None:
    inner = error.call.func if error.call is not None else None
    if not isinstance(inner, ast.Call) or name_of(inner) not in ("vmap", "pmap"):
        return None
    which = "out_axes" if keyword(inner, "out_axes") is not None else "in_axes"
    return Violation(
        f"`{which}` of `{name_of(inner)}` names axis {error['axis']} of an array of rank "
        f"{error['rank']}",
        help="use an axis of the array: they count from 0, and -1 is the last one",
        notes=("the result of a mapped function has one axis more",) * (which == "out_axes"),
    )


@ERRORS.explains(
    r"(?P<api>[vp]map) in_axes must be an int, None, or a tuple of entries corresponding to the "
    r"positional arguments passed to the function, but got (?!len\()[^\n]*(?:Tracer|Array)\("
)
def of_call(error: Matched) -> Violation:
    call = error.call
    help = f"call the mapped function: `jax.{error['api']}(f)(x)`"
    if call is not None and len(call.args) > 1:
        function, *arguments = map(ast.unparse, call.args)
        text = f"{ast.unparse(call.func)}({function})({', '.join(arguments)})"
        help = f"call the mapped function: `{short(text)}`"
    return Violation(f"`{error['api']}` gets an array as its `in_axes`", help=help)


ERRORS.table(r"""
(?P<api>[vp]map) in_axes must be an int, None, or a tuple of entries corresponding to the positional
        arguments passed to the function, but got len\(in_axes\)=(?P<entries>\d+),
        len\(args\)=(?P<arguments>\d+)
    `in_axes` of `{api}` has {entries} entries for {arguments} arguments
    help: write one entry for each positional argument, `None` for those that are not mapped
    note: arguments that are passed by name are always mapped over axis 0
(?P<api>[vp]map) in_axes must be an int, None, or a tuple of entries corresponding to the positional
        arguments passed to the function, but got (?P<given>[^\n]+?)\.?$
    `in_axes` of `{api}` is {given:q}, not a tuple
    help: write a tuple with one entry for each argument: `in_axes=({given},)`
(?P<api>[vp]map) (?P<which>in_axes|out_axes) specification must be a tree prefix of the 
    `{which}` of `{api}` has another structure than what it is for
    help: write one entry for each argument or result: an axis or `None` applies to all its leaves,
        a `dict` or tuple of them needs the same keys
(?:at )?(?P<api>[vp]map) (?:out_axes(?P<path>\S*), got axis spec None but output was batched|has
        mapped output )
    `out_axes{path}` of `{api}` is `None`, but the result is mapped
    help: use an axis such as 0, or reduce the result over the mapped axis: `jax.lax.pmean(x,
        axis_name)`
(?P<api>[vp]map) must have at least one non-None value in in_axes
    `in_axes` of `{api}` maps no argument
    help: choose an axis of at least one argument, as in `in_axes=0`, or pass `axis_size=`
""")


# The fix: say which arguments `vmap` does not map.


@RULE.fixes("`in_axes=` with `None` for scalars (unsafe)")
def candidates(context: FixContext, axes: str) -> Iterator[Candidate]:
    """Yield the transformation with `in_axes=`, `None` for each scalar."""
    for call in context.find(ast.Call):
        if isinstance(call.func, ast.Call):
            mapped = f"{context.text(call.func)[:-1]}, in_axes={axes})"
            yield context.replaced(call.func, mapped, f"Map with `in_axes={axes}`", same=False)
            return
