"""How launches are worded: one figure, a range where values decide, a lower end where trips do."""

from __future__ import annotations

import pytest

from jaxsight.compiler.graph import Branch, Graph, Kernel, Loop
from jaxsight.engine.kernels import launches


def kernel(name: str, times: int, least: int, *, branch: int = -1, loop: int = -1) -> Kernel:
    loops = (loop,) if loop >= 0 else ()
    return Kernel(
        name, "fusion", "loop fusion", "output", (), branch=branch, loops=loops, launches=times,
        at_least=least,
    )  # fmt: skip


ARMS = (Branch("c", 0, 2), Branch("c", 1, 2))


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (Graph("m", (kernel("a", 1, 1),)), "1 launch"),
        (Graph("m", (kernel("a", 4, 4), kernel("b", 0, 0))), "4 launches"),
        (
            Graph("m", (kernel("a", 3, 3, branch=0), kernel("b", 7, 7, branch=1)), branches=ARMS),
            "3–7 launches",
        ),
        (Graph("m", (kernel("a", 1, 1, branch=1),), branches=ARMS), "0–1 launches"),
        (Graph("m", (kernel("sort", 16, 15),)), "15–16 launches"),
        (
            Graph("m", (kernel("a", 2, 2), kernel("b", 1, 0, loop=0)), loops=(Loop("w", None),)),
            "≥ 2 launches",
        ),
    ],
)
def test_launches_in_words(graph: Graph, words: str) -> None:
    assert launches(graph) == words
