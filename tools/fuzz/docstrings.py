"""Docstrings: sections by a grammar, then spoiled. Reading, completing and proposing them must not
raise, nor take long."""

from __future__ import annotations

from random import Random

from jaxsight.examples import choice
from jaxsight.features.completion import complete
from jaxsight.features.proposals.actions import section_edit
from jaxsight.source.definitions import Docstring, Function, Parameter
from jaxsight.source.text import Position, Range, lines_of
from tools.fuzz.pieces import ODD_TEXT, mutated_text
from tools.fuzz.report import Report, pure

START = Position(1, 7)
PIECES = [
    *ODD_TEXT, *"()[]{}'\"#:=,~-+*/\t\f\r", "\n", "    ", "\r\n", "where ", "Expect (",
    "Expect (cpu): ", "Example inputs:", "key<", "0x", "9" * 25,
    "1e999", "'''", '\\"""', "lambda", ">>> f(", "f32[", "]" * 50, "(" * 200, "[" * 200, "{" * 200,
    "-" * 300, "**" * 100, "~" * 100, ",".join("a" * 300),
]  # fmt: skip
DTYPES = ("f32", "bf16", "i4", "bool", "c64", "f8_e4m3fn", "f99")
NAMES = ("q", "k", "params", "mode", "*args", "**kwargs", "missing", "self")


def _size(random: Random, depth: int = 2) -> str:
    if depth == 0 or random.random() < 0.6:
        return random.choice(("1", "0", "3", "4096", "B", "D", "S", "99999999999999999999"))
    operator = random.choice(("+", "-", "*", "//", "**", "%"))
    return f"({_size(random, depth - 1)}{operator}{_size(random, depth - 1)})"


def _value(random: Random, depth: int = 3) -> str:
    kind = random.randrange(9 if depth else 5)
    sizes = ", ".join(_size(random) for _ in range(random.randrange(4)))
    match kind:
        case 0 | 1:
            return f"{random.choice(DTYPES)}[{sizes}]"
        case 2:
            return f"~f32[{sizes}]"
        case 3:
            return random.choice(
                (
                    "key<fry>[]",
                    "key<threefry2x32>[3]",
                    "None",
                    "True",
                    "'x'",
                    "3",
                    "-2.5",
                    "1e400",
                    "2j",
                )
            )
        case 4:
            return random.choice(
                ("init(B)", "lambda z: z", "{1, 2}", "[x for x in y]", "open('/')")
            )
        case 5 | 6:
            inner = ", ".join(_value(random, depth - 1) for _ in range(random.randrange(4)))
            return f"({inner})" if kind == 5 else f"[{inner}]"
        case _:
            keys = ", ".join(
                f"'{n}': {_value(random, depth - 1)}" for n in range(random.randrange(3))
            )
            return f"{{{keys}}}"


def _line(random: Random) -> str:
    match random.randrange(6):
        case 0:
            return (
                f"where {', '.join(f'{name}={_size(random)}' for name in random.sample('BDS', 2))}"
            )
        case 1:
            left = random.choice(("kernels", "temp", "peak", "launches", "nothing"))
            target, relation = random.choice(("cpu", "h100", "")), random.choice(("<=", "==", "<"))
            return (
                f"Expect ({target}): {left} {relation} {_size(random)} {random.choice(('', 'MiB'))}"
            )
        case 2:
            return f"{random.choice(NAMES)} = {_value(random)}"
        case _:
            return f"{', '.join(random.sample(NAMES, random.choice((1, 1, 2))))}: {_value(random)}"


def draw(random: Random) -> str:
    lines = ["Do it.", ""]
    for _ in range(random.randrange(1, 4)):
        name = random.choice(("", " (decode)", " ()", " (😋)"))
        lines.append(
            random.choice(
                (
                    f"    Example inputs{name}:",
                    f"    Example inputs{name}\n    -----",
                    f":Example inputs{name}:",
                )
            )
        )
        lines += [f"        {_line(random)}" for _ in range(random.randrange(5))]
    text = "\n".join(lines)
    if random.random() < 0.7:
        text = mutated_text(text, random, PIECES, 6)
    if random.random() < 0.01:
        text = (text + "\n") * (50_000 // len(text))
    return text


def check(text: str) -> None:
    nowhere = Range(Position(0, 4), Position(0, 5))
    function = Function(
        qualname="f",
        kind="function",
        range=Range(Position(0, 0), Position(10**6, 0)),
        name_range=nowhere,
        body_start=Position(1, 4),
        parameters=tuple(Parameter(name, "positional", nowhere) for name in ("q", "k", "params")),
        docstring=Docstring(START, text),
        static_names=(),
    )
    lines = lines_of(text)
    for problem in choice.of(function, sizes={"S": 3}).problems:
        assert problem.range.start <= problem.range.end
        assert problem.range.end.line - START.line < len(lines), "a problem lies past the end"
    for number in {0, len(lines) // 2, len(lines) - 1}:
        at = Position(
            START.line + number, len(lines[number]) + (START.column if number == 0 else 0)
        )
        complete(function, at, {"S": 3})
    section_edit(function, ["x: f32[8]"])


def run(count: int, seed: int) -> Report:
    return pure(draw, check, count, seed)
