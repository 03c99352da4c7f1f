"""Errors of JAX as a rule's table: the pattern of JAX's words, and ours.

JAX's messages are text for people, and change between releases: patterns match the beginning of a
message, and what follows only where it is needed. Those of JAX 0.8 to 0.12 are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import MOST, MOST_QUOTED, cut, quoted


@dataclass(frozen=True, slots=True)
class Matched(RaisedError):
    """An error that fits a row: `error["shape"]` is the text of a group, empty if it has none."""

    match: re.Match[str]

    def __getitem__(self, group: str) -> str:
        return self.match.groupdict("").get(group, "")


Explainer = Callable[[Matched], Violation | None]


class ErrorTable:
    """The errors that a rule explains, in order: the first that fits is taken.

    The rule may explain others too: its own function then asks the table.

    Args:
        rule: the rule.
        types: the bare names of their classes, or of bases of these.
        parts: what rows of text may name, besides groups.
    """

    def __init__(self, rule: Rule, *types: str, **parts: Callable[[Matched], str] | str) -> None:
        self._types, self._parts = types, parts
        self._rows: list[tuple[str, Explainer]] = []
        rule.explains(self.explain)

    def explain(self, error: RaisedError) -> Violation | None:
        """Return what the table says of an error; `None` if it has no such error."""
        if not error.is_a(*self._types):
            return None
        for pattern, explainer in self._rows:
            match = re.match(pattern, error.message, re.DOTALL)
            if match is not None:
                violation = explainer(Matched(error.failure, error.expression, error.line, match))
                return _fitted(violation) if violation is not None else None
        return None

    def explains(self, pattern: str) -> Callable[[Explainer], Explainer]:
        """Have a function explain the errors whose messages begin with a pattern."""

        def add(explainer: Explainer) -> Explainer:
            self._rows.append((pattern, explainer))
            return explainer

        return add

    def table(self, rows: str) -> None:
        """Explain errors by rows of text.

        A row is a pattern with lines below it, indented by four: the message, then perhaps
        `help: …`, `note: …` and `unless: …`, a pattern of expressions whose errors are not the
        rule's. A line that is indented by eight continues the one before.

        `{shape}` is the text of a group, `{shape:q}` has backticks and at most 40 characters,
        `{shape:q20}` 20. `expression` is the user's, `value` is it in backticks or `this value`.
        """
        for row in re.split(r"\n(?=\S)", rows.strip("\n")):
            pattern, message, *others = row.replace("\n        ", " ").split("\n    ")
            self._add(pattern, message, [other.split(": ", 1) for other in others])

    def _add(self, pattern: str, message: str, others: list[list[str]]) -> None:
        texts = dict(others)

        def fill(error: Matched) -> Violation | None:
            if "unless" in texts and re.search(texts["unless"], error.expression):
                return None
            groups = {
                "expression": error.expression or "this function",
                "value": error.quoted(),
                **{name: p if isinstance(p, str) else p(error) for name, p in self._parts.items()},
                **error.match.groupdict(""),
            }
            parts = {name: _Part(text.strip()) for name, text in groups.items()}
            return Violation(
                message.format_map(parts),
                help=texts.get("help", "").format_map(parts),
                notes=tuple(text.format_map(parts) for name, text in others if name == "note"),
            )

        self._rows.append((pattern, fill))


def _fitted(violation: Violation) -> Violation:
    """Return a violation whose message is cut if long types or names make it too long.

    The first note then has all of it.
    """
    if len(violation.message) <= MOST:
        return violation
    notes = (violation.message, *violation.notes)
    return replace(violation, message=cut(violation.message, MOST), notes=notes)


class _Part(str):
    """A part of a message, which a template may quote."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        if not spec.startswith("q"):
            return str(self)
        return quoted(self, most=int(spec[1:] or MOST_QUOTED))
