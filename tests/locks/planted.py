"""No-op commits and planted regressions in modules of installed libraries, for `jaxsight.lock`.

Each module is copied into a project whose settings have inputs of two of its functions; those of the
second are spread over eight devices. `NOOPS` rewrites the whole text without changing a program,
`REGRESSIONS` puts a line before the last `return` of a function, which the cause has to name.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

IMPORTS = (
    "import jax as pj, jax.numpy as pn, numpy as pnp  # planted\n"
    'pj.config.update("jax_enable_x64", True)\n'
)


@dataclass(frozen=True)
class Library:
    """A module, two of its functions, and their inputs."""

    module: str
    functions: tuple[tuple[str, str], tuple[str, str]]

    @property
    def name(self) -> str:
        """The module's name in the project."""
        return self.module.replace(".", "_")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(name for name, _ in self.functions)

    @property
    def text(self) -> str:
        """The text of the module, with absolute imports."""
        spec = find_spec(self.module)
        assert spec is not None
        assert spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        package = self.module.split(".")
        lines = Path(spec.origin).read_text(encoding="utf-8").splitlines(keepends=True)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                at = node.lineno - 1
                base = ".".join([*package[: -node.level], *filter(None, [node.module])])
                dots = f"from {'.' * node.level}{node.module or ''} "
                assert dots in lines[at]
                lines[at] = lines[at].replace(dots, f"from {base} ")
        first = next(
            node.lineno
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
            and getattr(node, "module", "") != "__future__"
        )
        return "".join([*lines[: first - 1], IMPORTS, *lines[first - 1 :]])

    @property
    def settings(self) -> str:
        """The text of `pyproject.toml`."""
        rows = (f'"{self.name}:{name}" = {json.dumps(inputs)}' for name, inputs in self.functions)
        return "\n".join(['[tool.jaxsight]\ntarget = "cpu"\n[tool.jaxsight.examples]', *rows])


def _spread(*rows: str) -> str:
    return "\n".join(["mesh: data=8", *rows])


LIBRARIES = (
    Library(
        "optax.losses._classification",
        (
            ("softmax_cross_entropy", "logits: f32[64, 128]\nlabels: f32[64, 128]"),
            (
                "sigmoid_binary_cross_entropy",
                _spread("logits: f32[64@data, 128]", "labels: f32[64@data, 128]"),
            ),
        ),
    ),
    Library(
        "flax.linen.attention",
        (
            (
                "dot_product_attention",
                "query: f32[2, 16, 4, 32]\nkey: f32[2, 16, 4, 32]\nvalue: f32[2, 16, 4, 32]",
            ),
            (
                "dot_product_attention_weights",
                _spread("query: f32[8@data, 16, 4, 32]", "key: f32[8@data, 16, 4, 32]"),
            ),
        ),
    ),
    Library(
        "equinox.nn._attention",
        (
            ("dot_product_attention_weights", "query: f32[64, 32]\nkey: f32[48, 32]"),
            (
                "dot_product_attention",
                _spread("query: f32[64@data, 32]", "key_: f32[48, 32]", "value: f32[48, 16]"),
            ),
        ),
    ),
    Library(
        "numpyro.distributions.util",
        (
            ("logmatmulexp", "x: f32[64, 32]\ny: f32[32, 16]"),
            ("safe_normalize", _spread("x: f32[64@data, 128]")),
        ),
    ),
    Library(
        "jax._src.nn.functions",
        (("mish", "x: f32[64, 128]"), ("celu", _spread("x: f32[64@data, 128]"))),
    ),
)

_EVERYWHERE = {
    "lost fusion": "planted = pj.lax.optimization_barrier(pn.sin(planted)) * 2.0",
    "f64": 'planted = (planted.astype("float64") * 1.5).astype("float32")',
    "temporary": "planted = planted + pn.sort("
    "pn.broadcast_to(planted[..., None], (*planted.shape, 16)), axis=-1)[..., 0]",
    "constant": "planted = planted + pnp.random.default_rng(0).normal("
    'size=planted.shape).astype("float32")',
}
REGRESSIONS = (
    {**_EVERYWHERE, "unrolled loop": "for i in range(40): planted = pn.sin(planted) + i"},
    {
        **_EVERYWHERE,
        "collective": "planted = pj.lax.with_sharding_constraint("
        "planted, pj.sharding.PartitionSpec())",
    },
)
"""Lines for the first and the second function of a library, by kind."""


def planted(text: str, function: str, line: str) -> tuple[str, int]:
    """Return a text with a line before a function's last `return`, and its number (from 1)."""
    tree = ast.parse(text)
    node = next(
        each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function
    )
    last = node.body[-1]
    assert isinstance(last, ast.Return)
    assert last.value is not None
    assert last.end_lineno is not None
    lines = text.splitlines()
    indent = " " * last.col_offset
    value = ast.unparse(last.value)
    new = [f"{indent}planted = {value}", f"{indent}{line}", f"{indent}return planted"]
    lines[last.lineno - 1 : last.end_lineno] = new
    return "\n".join(lines) + "\n", last.lineno + 1


class _Renamed(ast.NodeTransformer):
    """Renames the local variables of a function, and of those inside it."""

    def __init__(self, function: ast.FunctionDef) -> None:
        nodes = list(ast.walk(function))
        kept = {each.arg for each in nodes if isinstance(each, ast.arg)}
        kept |= {n for o in nodes if isinstance(o, ast.Global | ast.Nonlocal) for n in o.names}
        stored = {o.id for o in nodes if isinstance(o, ast.Name) and isinstance(o.ctx, ast.Store)}
        self.names = stored - kept

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.names:
            return ast.copy_location(ast.Name(f"{node.id}_renamed", node.ctx), node)
        return node


def _top(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


def _renamed(text: str, names: tuple[str, ...]) -> str:
    tree = ast.parse(text)
    tree.body = [
        _Renamed(node).visit(node) if isinstance(node, ast.FunctionDef) else node
        for node in tree.body
    ]
    return ast.unparse(tree)


def _exploded(text: str, names: tuple[str, ...]) -> str:
    """Return a text with a line for each item in brackets."""
    lines, depth, breaks = text.splitlines(keepends=True), 0, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.FSTRING_START:
            depth -= 1000
        elif token.type == tokenize.FSTRING_END:
            depth += 1000
        elif token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if depth > 0 and token.string in "([{,":
                breaks.append(token.end)
    for row, column in reversed(breaks):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}\n        {line[column:].lstrip(' ')}"
    return "".join(lines)


def _commented(text: str, names: tuple[str, ...]) -> str:
    lines, begins = text.splitlines(), dict[int, int]()
    for function in _top(ast.parse(text)):
        for node in ast.walk(function):
            if isinstance(node, ast.stmt) and node is not function:
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                begins.setdefault(first, node.col_offset)
    for row in sorted(begins, reverse=True):
        if not lines[row - 1][: begins[row]].strip():
            lines.insert(row - 1, f"{' ' * begins[row]}# A comment about line {row}.")
    return "\n".join(lines) + "\n"


def _moved(text: str, names: tuple[str, ...]) -> str:
    """Return a text whose functions with inputs are at the end."""
    lines = text.splitlines(keepends=True)
    moved = []
    for node in reversed(list(_top(ast.parse(text)))):
        if node.name in names:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            assert node.end_lineno is not None
            moved.append("".join(lines[first : node.end_lineno]))
            del lines[first : node.end_lineno]
    return "\n\n\n".join(["".join(lines), *moved])


def _without(part: str) -> Callable[[str, tuple[str, ...]], str]:
    def rewritten(text: str, names: tuple[str, ...]) -> str:
        tree = ast.parse(text)
        for node in _top(tree):
            if part == "docstrings" and ast.get_docstring(node) and len(node.body) > 1:
                del node.body[0]
            if part == "annotations" and node.name in names:
                node.returns = None
                for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    argument.annotation = None
        return ast.unparse(tree)

    return rewritten


def _with_helper(text: str, names: tuple[str, ...]) -> str:
    lines = text.splitlines(keepends=True)
    node = next(each for each in _top(ast.parse(text)) if each.name in names)
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
    lines.insert(first, "def planted_helper(x):\n    return pn.cos(x) + 1\n\n\n")
    return "".join(lines)


NOOPS: dict[str, Callable[[str, tuple[str, ...]], str]] = {
    "formatted": lambda text, names: ast.unparse(ast.parse(text)),
    "a line for each item": _exploded,
    "renamed variables": _renamed,
    "comments": _commented,
    "blank lines": lambda text, names: f"{'#' * 60}\n\n\n" * 20 + text,
    "moved functions": _moved,
    "another function": _with_helper,
    "no docstrings": _without("docstrings"),
    "no annotations": _without("annotations"),
    "trailing spaces": lambda text, names: text.replace("\n\n", "\n   \n") + "\n\n# The end.\n",
}
