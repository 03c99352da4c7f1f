"""What two sessions say is compared without times and figures, and call by call."""

from __future__ import annotations

from tests.features.everything_shown import untrue, without_targets

PLACE = "hover 3:4 f"


def said(words: str) -> dict[str, object]:
    return {PLACE: (None, words)}


def test_times_are_not_compared() -> None:
    assert (
        without_targets("trace 0.1 s · lower 1.0 s · XLA 1.4 s\n\nf(x: f32[3])") == "f(x: f32[3])"
    )


def test_what_is_said_of_the_same_call_is_the_same_at_once() -> None:
    first, other = (
        "number: 7\n\nin `f` as called in a.py:13",
        "number: 4\n\nin `f` as called in a.py:13",
    )
    assert untrue(said(first), said(other)) == {PLACE: ((None, first), (None, other))}
    assert untrue(said(first), said(first)) == {}
    assert untrue(said(f"stale: {first}"), said(other)) == {}
    assert untrue(said(first), said("number: 4\n\nin `f` as called in b.py:9")) == {}
    assert untrue(said("x: f32[3]"), {}) == {PLACE: ((None, "x: f32[3]"), None)}
