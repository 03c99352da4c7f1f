"""How a `print` is written with `jax.debug.print`."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence

_TAKEN = frozenset({"fmt", "ordered", "partitioned", "skip_format_check"})
"""Names that `jax.debug.print` uses itself."""


def debug_print(call: ast.Call, write: Callable[[ast.expr], str], name: str) -> str | None:
    """Return a call that prints the same when the function runs; `None` where it is not clear.

    Args:
        call: the call of `print`.
        write: gives the source of an expression.
        name: what `jax.debug.print` is called.
    """
    template = _Template(write)
    separator = " "
    for word in call.keywords:
        match word.arg, word.value:
            case "sep", ast.Constant(value=str(separator)):
                pass
            case "flush", _:
                pass
            case _:
                return None
    text = template.joined(separator, call.args)
    if text is None:
        return None
    words = [f"{name}={name}" for name in template.names]
    quoted = json.dumps(text, ensure_ascii=False)
    return f"{name}({', '.join((quoted, *template.positions, *words))})"


class _Template:
    """A format string, with what stands at its places."""

    def __init__(self, write: Callable[[ast.expr], str]) -> None:
        self._write = write
        self.positions: list[str] = []
        self.names: dict[str, None] = {}

    def joined(self, separator: str, nodes: Sequence[ast.expr]) -> str | None:
        """Return what arguments of `print`, or parts of an f-string, are in the format string."""
        parts = [self._of(node) for node in nodes]
        return None if None in parts else separator.join(part or "" for part in parts)

    def _of(self, node: ast.expr) -> str | None:
        match node:
            case ast.Constant(value=value):
                return str(value).replace("{", "{{").replace("}", "}}")
            case ast.JoinedStr(values=values):
                return self.joined("", values)
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=None):
                return self._place(value, _converted(conversion))
            case ast.FormattedValue(
                value=value,
                conversion=conversion,
                format_spec=ast.JoinedStr(values=[ast.Constant(value=str(spec))]),
            ):
                return self._place(value, f"{_converted(conversion)}:{spec}")
            case ast.Starred() | ast.FormattedValue():
                return None
            case _:
                return self._place(node, "")

    def _place(self, node: ast.expr, how: str) -> str:
        if isinstance(node, ast.Name) and node.id not in _TAKEN:
            self.names[node.id] = None
            return f"{{{node.id}{how}}}"
        self.positions.append(self._write(node))
        return f"{{{how}}}"


def _converted(conversion: int) -> str:
    return f"!{chr(conversion)}" if conversion > 0 else ""
