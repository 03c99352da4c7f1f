"""Optimized HLO made wrong: the reader gives a graph with notes, whatever the text, and ends."""

from __future__ import annotations

import re
from functools import cache
from random import Random

from jaxsight.compiler.hlo import read
from jaxsight.wire import frames as wire
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compiled, Memory
from tests.compiler import material
from tools.fuzz.pieces import ODD_TEXT, mutated_text
from tools.fuzz.report import Report, pure

PIECES = (
    *ODD_TEXT, *"()[]{}%=,\"'/\n", "ROOT ", "ENTRY ", "HloModule ", "fusion(", "while(", "call(",
    "conditional(", "calls=%", "body=%", "condition=%",
    'backend_config={"known_trip_count":{"n":"', '"known_trip_count":{"n":"99999999999999999999"}',
    "f32[99999999999,99999999999]", "f32[-1]", "f32[<=5]",
    "(" * 500, "{" * 500, "metadata={op_name=\"", "token[]", "f8e4m3fn[2]{0}", "s4[3]", "tuple()",
    "parameter(99999999)", "parameter(-1)", "%" + "x" * 2000,
)  # fmt: skip
_NAME = re.compile(r"%[\w.-]+")


@cache
def _small() -> tuple[str, ...]:
    texts = (material.text(target, function) for target, function in material.names())
    return tuple(sorted(text for text in texts if len(text) < 30_000))


def draw(random: Random) -> str:
    text = random.choice(_small())
    names = _NAME.findall(text)
    lines = text.split("\n")
    for _ in range(random.randrange(4)):
        match random.randrange(5):
            case 0 if places := list(_NAME.finditer(text)):
                # Another one is called or read: loops of computations too.
                at = random.choice(places)
                text = text[: at.start()] + random.choice(names) + text[at.end() :]
            case 1:
                del lines[random.randrange(len(lines))]
                text = "\n".join(lines) or text
                lines = text.split("\n")
            case 2:
                lines.insert(random.randrange(len(lines)), random.choice(lines))
                text = "\n".join(lines)
            case 3:
                text = text[: random.randrange(len(text) + 1)]
                lines = text.split("\n")
            case _:
                text = mutated_text(text, random, PIECES, 5)
                lines = text.split("\n")
    return text


def check(text: str) -> None:
    graph = read(text)
    assert isinstance(graph, Graph)
    # A compiler sends it: it must fit the wire.
    sent = Compiled(1, "cpu", "device", graph, Memory(0, 0, 0, 0, 0), "", 0.0)
    assert wire.decode(wire.encode(sent)[wire.HEADER.size :]) == sent
    lines = text.count("\n") + 1
    for kernel in graph.kernels:
        assert kernel.launches >= 0
        assert 0 <= kernel.instruction < lines


def run(count: int, seed: int) -> Report:
    return pure(draw, check, count, seed)
