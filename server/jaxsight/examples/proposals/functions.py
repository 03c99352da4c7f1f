"""Write functions for parameters that are called."""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence

from jaxsight.examples.proposals import names
from jaxsight.examples.proposals.annotated import kind_of
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.kinds import Kind
from jaxsight.text.parsing import expression_in

_SCALARS = (Kind.SCALAR, Kind.FLOAT)
ANY = "lambda *args: args[0]"


def function(
    name: str,
    evidence: Evidence,
    annotation: str,
    trees: Container[str] = (),
    leaves: str = "",
) -> str:
    """Return a function that takes what the parameter is called with.

    `trees` are the parameters that are pytrees, and `leaves` is the name of `jax.tree.leaves`.
    """
    if evidence.scanned:
        return "lambda carry, x: (carry, x)"
    kinds, returned = _annotated(annotation)
    if evidence.called is None and kinds is None and "..." in annotation:
        return ANY
    called = evidence.called if evidence.called is not None else ("",) * len(kinds or (1,))
    if kinds == [] and evidence.called is None:
        called = ()
    parameters = [p if p.isidentifier() and p != "_" else f"x{i}" for i, p in enumerate(called)]
    if len(set(parameters)) < len(parameters):
        parameters = [f"x{i}" for i in range(len(parameters))]
    if parameters == ["x0"]:
        parameters = ["x"]
    returns_scalar = returned in _SCALARS
    if kinds is not None and len(kinds) == len(parameters) and not returns_scalar:
        tensors = [p for p, kind in zip(parameters, kinds, strict=True) if kind not in _SCALARS]
        if 0 < len(tensors) < len(kinds) and not evidence.returned:
            return f"lambda {', '.join(parameters)}: {tensors[0]}"
    is_scalar = evidence.differentiated or (
        bool(parameters) and (returns_scalar or bool(names.NORM.fullmatch(name)))
    )
    first = next((p for p in parameters if not names.KEY.fullmatch(p)), "")
    is_tree = first in trees or (evidence.differentiated and names.TREE.fullmatch(first))
    if is_scalar and is_tree and leaves and not evidence.returned:
        head = f"lambda {', '.join(parameters)}"
        return f"{head}: sum((leaf ** 2).sum() for leaf in {leaves}({first}))"
    values = () if is_scalar else [p for p in parameters if p not in trees]
    return written(parameters, count=evidence.returned, is_scalar=is_scalar, values=values)


def stub(name: str, evidence: Evidence, key: str, numpy: str) -> str:
    """Return an object with the attributes that a parameter is asked for; empty without methods.

    Its methods return what they get, or `key` if they are to make keys.
    """
    members: list[str] = []
    for member, facts in evidence.members.items():
        if facts.called is None:
            if not numpy:
                return ""
            members.append(f"{member!r}: {numpy}.ones((8, 8))")
        elif member in ("apply", "apply_fn"):
            members.append(f"{member!r}: lambda self, variables, x, *args, **kwargs: x")
        elif names.KEY.fullmatch(member):
            if not key:
                return ""
            members.append(f"{member!r}: lambda self, *args: {key}")
        else:
            made = function(member, facts, "").removeprefix("lambda").lstrip()
            comma = "" if made.startswith(":") else ", "
            rest = made if not comma or "*args" in made else made.replace(":", ", **kwargs:", 1)
            members.append(f"{member!r}: lambda self{comma}{rest}")
    title = "".join(part.title() for part in name.split("_")) or "Object"
    return f"type({title!r}, (), {{{', '.join(members)}}})()"


def _annotated(annotation: str) -> tuple[list[Kind] | None, Kind]:
    """Return the kinds of the arguments that `Callable[[A, B], C]` takes, and of its result."""
    tree = expression_in(annotation.strip("'\" "))
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Subscript(value=value, slice=ast.Tuple(elts=[ast.List(elts=taken), result])):
                if ast.unparse(value).endswith("Callable"):
                    kinds = [kind_of(ast.unparse(argument)).kind for argument in taken]
                    return kinds, kind_of(ast.unparse(result)).kind
    return None, Kind.UNKNOWN


def written(
    parameters: Sequence[str],
    *,
    count: int = 0,
    is_scalar: bool = False,
    values: Sequence[str] = (),
) -> str:
    """Return a function that returns its first argument that is not a key, or some of `values`."""
    values = [p for p in values or parameters if not names.KEY.fullmatch(p)] or list(parameters)
    head = f"lambda {', '.join(parameters)}" if parameters else "lambda"
    if count > 1 and values:
        results = (values * count)[:count]
        return f"{head}: ({', '.join(results)})"
    if is_scalar and values:
        return f"{head}: ({values[0]} ** 2).sum()"
    return f"{head}: {values[0] if values else '0.0'}"
