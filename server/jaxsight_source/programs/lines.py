"""StableHLO as text, with the line of Python that each operation comes from."""

from __future__ import annotations

import re

from jaxsight_source.compat.lowered import mlir
from jaxsight_source.stablehlo.places import ALIAS, USE

_LINE = re.compile(r'"(?P<file>(?!-")[^"]+)":(?P<line>\d+):\d+')  # MLIR's own text is `-`
_ANOTHER = re.compile(r"#loc\d*")


def printed(artifact: str | bytes) -> str:
    """Return a module's text with lines of Python as comments at the end of its lines."""
    module = mlir.parse(artifact)
    text = str(module.operation.get_asm(enable_debug_info=True, pretty_debug_info=False))
    places: dict[str, str] = {}
    kept: list[str] = []
    for line in text.splitlines():
        if alias := ALIAS.fullmatch(line):
            places[alias["name"]] = alias["place"]
        else:
            kept.append(line)
    return "".join(f"{_commented(line, places)}\n" for line in kept)


def _commented(line: str, places: dict[str, str]) -> str:
    uses = [use["place"] for use in USE.finditer(line)]
    plain = USE.sub("", line)
    if not uses or plain.lstrip().startswith(("func.func", "module", "}")):
        return plain
    where = _where(uses[-1], places)
    return f"{plain}  // {where}" if where else plain


def _where(place: str, places: dict[str, str]) -> str:
    """Return the innermost file and line of a location; empty if it has none."""
    waiting, seen = [place], set[str]()
    while waiting:
        words = waiting.pop()
        if found := _LINE.search(words):
            return f"{found['file']}:{found['line']}"
        names = [name for name in _ANOTHER.findall(words) if name not in seen]
        seen.update(names)
        waiting += [places[name] for name in reversed(names) if name in places]
    return ""
