"""XLA's own sequence of thunks (`--xla_dump_to`, `*.thunk_sequence.txt`), as launches.

Every line is a thunk that launches or copies once, or holds others: `kWhile` has `condition:` and
`body:`, `kConditional` its arms, `kDynamicSliceFusion`, `kSequential` and `kCommandBuffer` a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_THUNK = re.compile(r"^(\s*)(\d{3,}): (k\w+)")
_PART = re.compile(r"^\s*(condition|body|true_branch|false_branch|branch_\d+):$")
_HOLDS = {"kWhile", "kConditional", "kSequential", "kCommandBuffer", "kDynamicSliceFusion",
          "kAsyncStart"}  # fmt: skip
_SILENT = re.compile(r"k\w*(Done|WaitForStreams)$")


@dataclass
class Thunk:
    """One thunk, with the thunks that it holds by part (`body`, `condition`, `branch_0`, ``)."""

    kind: str
    depth: int
    parts: dict[str, list[Thunk]] = field(default_factory=dict)


def parse(text: str) -> list[Thunk]:
    """Read a sequence; the first part of a thunk begins at the margin, whatever its depth."""
    top = Thunk("top", -1, {"": []})
    holders = [(top, "")]
    for line in text.splitlines():
        if part := _PART.match(line):
            holder = _holder(holders, part[1])
            holder.parts[part[1]] = []
            holders.append((holder, part[1]))
        elif matched := _THUNK.match(line):
            thunk = Thunk(matched[3], len(matched[1]))
            while holders[-1][0].depth >= thunk.depth:
                holders.pop()
            holder, part_name = holders[-1]
            holder.parts.setdefault(part_name, []).append(thunk)
            if thunk.kind in _HOLDS:
                holders.append((thunk, ""))
    return top.parts[""]


def _holder(holders: list[tuple[Thunk, str]], part: str) -> Thunk:
    """The innermost open thunk that can have a part of this name and has none yet."""
    kind = "kWhile" if part in ("condition", "body") else "kConditional"
    for thunk, _ in reversed(holders):
        if thunk.kind == kind and part not in thunk.parts:
            while holders[-1][0] is not thunk:
                holders.pop()
            return thunk
    raise ValueError(part)


@dataclass
class Launched:
    """`compiled` counts what is in the program, `most` and `fewest` what one run launches."""

    compiled: int
    most: int
    fewest: int


def launched(sequence: list[Thunk], trips: list[int | None]) -> Launched:
    """Count launches, with the trip counts of the loops in the order of their numbers."""
    return _launched(sequence, iter(trips))


def _launched(sequence: list[Thunk], trips) -> Launched:  # type: ignore[no-untyped-def]
    total = Launched(0, 0, 0)
    for thunk in sequence:
        if thunk.kind == "kWhile":
            times = next(trips)
            condition = _launched(thunk.parts.get("condition", []), trips)
            body = _launched(thunk.parts.get("body", []), trips)
            most, fewest = (1, 0) if times is None else (times, times)
            asked = 0 if times is not None else 1
            found = Launched(
                condition.compiled + body.compiled,
                body.most * most + condition.most * asked,
                body.fewest * fewest + condition.fewest * asked,
            )
        elif thunk.kind == "kConditional":
            arms = [_launched(part, trips) for name, part in thunk.parts.items() if name]
            found = Launched(
                sum(arm.compiled for arm in arms),
                max(arm.most for arm in arms),
                min(arm.fewest for arm in arms),
            )
        elif thunk.kind in _HOLDS:
            found = _launched([each for part in thunk.parts.values() for each in part], trips)
        elif _SILENT.match(thunk.kind):
            continue
        else:
            found = Launched(1, 1, 1)
        total.compiled += found.compiled
        total.most += found.most
        total.fewest += found.fewest
    return total
