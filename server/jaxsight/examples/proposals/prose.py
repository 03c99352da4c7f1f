"""What a docstring says of parameters in prose: `x: inputs of shape (B, L, D)`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ABOUT_TYPE, _ABOUT_SHAPE = 120, 400
"""Characters of an entry, a choice: its first words say the type; what comes late is of others."""
_ENTRY = (
    r"^[ \t]*(?::param(?:eter)?[ \t]+(?:[\w\[\], .|]+[ \t]+)?)?[*`]*{name}[*`]*"
    r"(?:[ \t]*\([^)\n]*\))?[ \t]*(?::|\b(?:is|are)\b)"
    r"(?P<text>.*(?:\n(?![ \t]*$)(?:(?P<deeper>[ \t]+).*))*)"
)
_SHAPE = re.compile(
    r"(?:shapes?|dimensions?|dims?|size|sized)[ \t]*(?:of|is|:|=|as|are)?[ \t]*`*[ \t]*"
    r"[(\[{]([^()\[\]{}\n]{0,60})[)\]}]"
    r"|^\s*(?:an?\s+)?`*[\[(]([A-Za-z_][\w, .*]*,[\w, .*]*)[\])]`*"
    r"|`*[\[(]([A-Za-z_.][\w, .*]*,[\w, .*]*)[\])]`*[ \t-]*(?:shaped|array|tensor|matrix)",
)
_BY = re.compile(
    r"\b(?P<sizes>\w{1,12}(?:(?:[ \t]{1,3}x[ \t]{1,3}|[ \t]{0,3}×[ \t]{0,3})\w{1,12}){1,5}"
    r"|\d{1,6}(?:x\d{1,6}){1,5})(?:-dimensional)?"
    r"[ \t]+(?:\w{1,20}[ \t]+)?(?:matrix|array|vector|tensor|image|grid|ndarray)"
)
"""`an N x 3 matrix`."""
_ABOUT = (
    r"[`*]*\b{name}\b[`*]*[ \t]*(?:has|have|is|of|with|:|-)?[ \t]*(?:an?[ \t]+\w+[ \t]+of[ \t]+)?"
    r"(?:the[ \t]+)?shapes?[ \t]*(?:of|is|:|=)?[ \t]*`*[(\[]([^()\[\]\n]{{0,60}})[)\]]"
)
_SCALAR = re.compile(
    r"^\W*(?:an?\s+)?(?:\w+\s+)?(?:scalar|float)\b(?! or )"
    r"|^[^\n.;,(]{0,60}\b(?:constant|length|coefficient|rate|factor|temperature|threshold)\W*$",
    re.IGNORECASE,
)
_INTEGER = re.compile(r"\b(?:integer|int32|indices|class ids|int)\b", re.IGNORECASE)
_COUNT = re.compile(
    r"\b(?:an?|positive|non-negative) (?:\w+ )?integer\b(?! (?:array|tensor|label))"
)
_VECTOR = re.compile(r"^\W*(?:an?\s+|the\s+)?(?:\w+\s+)?(?:vector|1-?[dD])\b", re.IGNORECASE)
_MATRIX = re.compile(r"^\W*(?:an?\s+|the\s+)?(?:\w+\s+){0,2}(?:matrix|2-?[dD])\b", re.IGNORECASE)
_SQUARE = re.compile(r"\b(?:square|symmetric|covariance|PSD|positive.definite)\b")


@dataclass(frozen=True, slots=True)
class Described:
    """What a docstring says of a parameter.

    `shape` has names and numbers of sizes; `...` stands for any number of them.
    """

    shape: tuple[str, ...] | None = None
    scalar: bool = False
    integer: bool = False
    count: bool = False
    """It is a single integer."""
    rank: int | None = None
    square: bool = False

    @property
    def has_rank(self) -> bool:
        return self.shape is not None or self.rank is not None


def described(docstring: str, names: Sequence[str]) -> Mapping[str, Described]:
    """Return what a docstring says of parameters."""
    return {name: _described(docstring, name) for name in names if name in docstring}


def _described(docstring: str, name: str) -> Described:
    entry = re.search(_ENTRY.format(name=re.escape(name)), docstring, re.MULTILINE)
    text = _dedented(entry.group(0), entry.group("text")) if entry is not None else ""
    shape = _shape_in(text)
    if shape is None and (about := re.search(_ABOUT.format(name=re.escape(name)), docstring)):
        shape = _sizes(about.group(1))
    # What Sphinx says of a type: `:type n: int`, `:param int n:`.
    said = re.search(
        rf":type[ \t]+{re.escape(name)}:[ \t]*(\w[\w. \[\]]*)"
        rf"|:param[ \t]+([\w.]+)[ \t]+{re.escape(name)}:",
        docstring,
    )
    kind = (said.group(1) or said.group(2)).strip() if said is not None else ""
    if kind in ("float", "bool"):
        text = text or kind
    rank = 1 if _VECTOR.match(text) else 2 if _MATRIX.match(text) else None
    return Described(
        shape,
        scalar=bool(_SCALAR.match(text)),
        integer=bool(_INTEGER.search(text[:_ABOUT_TYPE])),
        count=bool(_COUNT.search(text[:_ABOUT_TYPE])) or kind == "int",
        rank=rank,
        square=bool(rank == 2 and _SQUARE.search(text)),
    )


def _dedented(whole: str, text: str) -> str:
    """Return an entry without the lines that are not deeper than its first."""
    first, *rest = text.split("\n")
    indent = len(whole) - len(whole.lstrip(" \t"))
    kept = [first]
    for line in rest:
        if len(line) - len(line.lstrip(" \t")) <= indent:
            break
        kept.append(line.strip())
    return " ".join(kept).strip()


def _shape_in(text: str) -> tuple[str, ...] | None:
    for written in _SHAPE.finditer(text[:_ABOUT_SHAPE]):
        shape = _sizes(next(group for group in written.groups() if group is not None))
        if shape is not None:
            return shape
    if (by := _BY.search(text[:_ABOUT_SHAPE])) is not None:
        return _sizes(
            re.sub(
                r"[ \t]*(?<![A-Za-z])[x×](?![A-Za-z])[ \t]*|[ \t]+x[ \t]+|(?<=\d)x(?=\w)",
                ",",
                by["sizes"],
            )
        )
    return None


def _sizes(text: str) -> tuple[str, ...] | None:
    """Return the sizes in `batch, ..., 3`; `None` if they are something else."""
    sizes: list[str] = []
    for part in text.replace("…", "...").replace(r"\ldots", "...").split(","):
        if (size := part.strip(" `'\"")) == "" and sizes:
            continue
        if size.endswith("...") or size.startswith(("...", "*")):
            sizes.append("...")
        elif re.fullmatch(r"[A-Za-z_]\w*|\d+", size):
            sizes.append(size)
        elif re.fullmatch(r"[A-Za-z_][\w ]*", size):
            sizes.append(size.replace(" ", "_"))
        else:
            return None
    return tuple(sizes) if sizes and sizes != ["..."] else None
