"""Everything that an editor may show of a file, to compare what two sessions show."""

from __future__ import annotations

import re

from jaxsight.session import Session
from jaxsight.source.text import Position

STALE = "stale"

_CALL = re.compile(r"\bas (?:called|in a run)\b[^\\']*")


def without_targets(markdown: str) -> str:
    """Figures of a target come when they are compiled, and times only where they are long."""
    lines = re.sub(
        r"^\|.*\n|^\*compiling for .*\n|^trace .* · XLA .*\n", "", markdown, flags=re.MULTILINE
    )
    lines = re.sub(
        r"^(?:fused into|in|in kernels?|kernel) .* · \w+$|^in `.*`.*: \d+ of \d+ kernels?$",
        "",
        lines,
        flags=re.MULTILINE,
    )
    return re.sub(r"\n{2,}", "\n\n", lines).strip()


async def shown(session: Session, path: str, text: str) -> dict[str, object]:
    """All that an editor may ask, but for stale hints: those tell of another text."""
    hints = await session.hints(path, wait=True)
    answers: dict[str, object] = {STALE: True} if any(h.stale for h in hints) else {}
    answers |= {f"hint {h.range}": (h.label, h.tooltip) for h in hints if not h.stale}
    for finding in (await session.report(path)).reported:
        if not finding.stale:
            message = finding.message.replace(path, "FILE")
            answers[f"finding {finding.range} {finding.code}"] = (message, len(finding.related))
    for line, content in enumerate(text.split("\n")):
        for word in re.finditer(r"\b[a-z]\w*", content):
            hover = await session.hover(path, Position(line, word.start()))
            if hover is not None:
                said = (
                    STALE if hover.stale else without_targets(hover.markdown).replace(path, "FILE")
                )
                answers[f"hover {line}:{word.start()} {word.group()}"] = (hover.range, said)
    return answers


def differences(actual: dict[str, object], expected: dict[str, object]) -> dict[str, object]:
    """What the two sessions say differently.

    Something stale may be shown where the other knows nothing, or says only why.
    """
    return {
        place: (actual.get(place), expected.get(place))
        for place in (actual.keys() | expected.keys()) - {STALE}
        if actual.get(place) != expected.get(place)
        and not (_says(actual.get(place), STALE) and _knows_nothing(expected.get(place)))
        and not (STALE in actual and place not in actual and _says_why(expected[place]))
    }


def untrue(actual: dict[str, object], expected: dict[str, object]) -> dict[str, object]:
    """What hovers of a session say as current that another one, which is at rest, says differently.

    Which call is shown may change as programs run: only what is said of the same call counts.
    """
    return {
        place: (said, expected.get(place))
        for place, said in actual.items()
        if place.startswith("hover ")
        and said != expected.get(place)
        and _call(said) == _call(expected.get(place))
        and not (_says(said, STALE) or _knows_nothing(said))
    }


def _call(answer: object) -> str:
    found = _CALL.search(str(answer))
    return found[0] if found is not None else ""


def _says(answer: object, words: str) -> bool:
    return isinstance(answer, tuple) and words in str(answer[1])


def _says_why(answer: object) -> bool:
    reasons = ("not shown: ", "⊘ not traced further")
    return isinstance(answer, tuple) and str(answer[0]).startswith(reasons)


def _knows_nothing(answer: object) -> bool:
    return answer is None or _says(answer, "is not traced")
