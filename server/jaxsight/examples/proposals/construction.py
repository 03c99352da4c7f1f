"""Write an expression that makes an object of a class of the module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from jaxsight.examples.proposals import names

_DEEPEST = 2
_NOT_A_FIELD = re.compile(r"\b(?:ClassVar|InitVar)\b")
_SIZE = "8"


def construct(
    name: str, classes: Mapping[str, ast.ClassDef], aliases: Mapping[str, str], depth: int = 0
) -> str:
    """Return an expression such as `Linear(8, 8, key=jax.random.key(0))`."""
    node = classes.get(name)
    if node is None or depth > _DEEPEST:
        return f"{name}()"
    arguments = [
        f"{given}={_value(given, annotation, classes, aliases, depth)}"
        for given, annotation in _needed(node, classes, 0)
    ]
    return f"{name}({', '.join(arguments)})"


def _needed(
    node: ast.ClassDef, classes: Mapping[str, ast.ClassDef], depth: int
) -> Iterator[tuple[str, str]]:
    """Yield the arguments that making an object needs, with their annotations."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            yield from _parameters(statement.args)
            return
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    for base in bases:
        if base in classes and depth < _DEEPEST:
            yield from _needed(classes[base], classes, depth + 1)
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=field), annotation=annotation, value=None):
                written = ast.unparse(annotation)
                if not _NOT_A_FIELD.search(written):
                    yield field, written


def _parameters(arguments: ast.arguments) -> Iterator[tuple[str, str]]:
    positional = [*arguments.posonlyargs, *arguments.args][1:]
    needed: Sequence[ast.arg] = positional[: len(positional) - len(arguments.defaults)]
    keyword_only = [
        argument
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    for argument in (*needed, *keyword_only):
        annotation = argument.annotation
        yield argument.arg, ast.unparse(annotation) if annotation is not None else ""


def _value(
    name: str,
    annotation: str,
    classes: Mapping[str, ast.ClassDef],
    aliases: Mapping[str, str],
    depth: int,
) -> str:
    kind = names.kind_of(annotation)
    by_origin = {origin: alias for alias, origin in aliases.items()}
    if kind.removeprefix("class ") in classes:
        return construct(kind.removeprefix("class "), classes, aliases, depth + 1)
    if name == "rngs" and "flax.nnx" in by_origin:
        return f"{by_origin['flax.nnx']}.Rngs(0)"
    if names.KEY.fullmatch(name):
        return f"{by_origin['jax']}.random.key(0)" if "jax" in by_origin else "None"
    if kind == "literal 2" or names.COUNT.fullmatch(name):
        return "2" if "head" in name or "layer" in name or "depth" in name else _SIZE
    if kind.startswith("literal "):
        return kind.removeprefix("literal ")
    if kind == "callable" or names.FUNCTION.fullmatch(name):
        return "lambda x: x"
    if kind == "shape":
        return f"({_SIZE}, {_SIZE})"
    numpy = by_origin.get("jax.numpy", "")
    if kind == "scalar" or names.SCALAR.fullmatch(name):
        return "0.5"
    if numpy and kind in ("array", "tree", ""):
        return f"{numpy}.ones(({_SIZE}, {_SIZE}))"
    return "None"
