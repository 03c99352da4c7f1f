"""Everything that an editor may show of a file, to compare what two sessions show."""

from __future__ import annotations

import re

from jaxsight.session import Session
from jaxsight.source.text import Position

STALE = "stale"


def without_targets(markdown: str) -> str:
    """Figures of a target come when they are compiled."""
    lines = re.sub(r"^\|.*\n|^\*compiling for .*\n", "", markdown, flags=re.MULTILINE)
    lines = re.sub(
        r"^(?:fused into|in|in kernels?|kernel) .* · \w+$", "", lines, flags=re.MULTILINE
    )
    return re.sub(r"\n{2,}", "\n\n", lines).strip()


async def shown(session: Session, path: str, text: str) -> dict[str, object]:
    """All that an editor may ask, but for stale hints: those tell of another text."""
    hints = await session.hints(path, wait=True)
    answers: dict[str, object] = {
        f"hint {h.range}": (h.label, h.tooltip) for h in hints if not h.stale
    }
    for finding in await session.findings(path):
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

    Something stale may be shown where the other knows nothing.
    """
    return {
        place: (actual.get(place), expected.get(place))
        for place in actual.keys() | expected.keys()
        if actual.get(place) != expected.get(place)
        and not (_says(actual.get(place), STALE) and _knows_nothing(expected.get(place)))
    }


def _says(answer: object, words: str) -> bool:
    return isinstance(answer, tuple) and words in str(answer[1])


def _knows_nothing(answer: object) -> bool:
    return answer is None or _says(answer, "is not traced")
