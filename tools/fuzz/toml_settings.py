"""Settings of a project: `pyproject.toml` made wrong. It is read or complained of, on its lines,
and never raises."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from jaxsight.settings.reading import read_project
from jaxsight.settings.schema import SCHEMA
from tools.fuzz.pieces import ODD_TEXT, mutated_bytes, mutated_text
from tools.fuzz.report import Report, pure

VALUES = (
    "true", "false", "1", "-1", "0", "1.5", "nan", "inf", '"cpu"', '""', '"\\u0000"', "[]",
    "[1, 'a']", "{}", "{ a = 1 }", "1979-05-27", "07:32:00",
    "'''\na\n'''", "9" * 30, "9" * 5000, "0x" + "f" * 5000, "[" * 300 + "]" * 300,
    "[" * 3000 + "]" * 3000, '["JX1", 3]', '{ "h100" = ["JX201"] }', "1e400",
    '"' + "a" * 10_000 + '"', '"😋"', '"[/x]"', '"ssh://-oProxyCommand=x"', '"../../.."',
)  # fmt: skip
PIECES = (
    *ODD_TEXT,
    *"[]{}=.,#\"'\n\r\t\\",
    "[tool.jaxsight]\n",
    "[[tool.jaxsight.examples]]\n",
    '"""',
    "'''",
    "a." * 500,
    "\ufeff",
)


def draw(random: Random) -> bytes:
    lines = [
        random.choice(
            (
                "[tool.jaxsight]",
                "[tool.jaxsight]",
                "[tool]",
                "tool.jaxsight = 3",
                "[[tool.jaxsight]]",
            )
        )
    ]
    keys = [*SCHEMA, "examples", "unknown", "timeouts", "diagnostics", "'😋'", '""', "a.b.c"]
    lines += [
        f"{random.choice(keys)} = {random.choice(VALUES)}" for _ in range(random.randrange(6))
    ]
    if random.random() < 0.3:
        lines += ["[tool.jaxsight.examples]", f'"m.f" = {random.choice(VALUES)}']
    text = "\n".join(lines) + "\n"
    if random.random() < 0.5:
        text = mutated_text(text, random, PIECES)
    data = text.encode("utf-8", "surrogatepass")
    return mutated_bytes(data, random) if random.random() < 0.2 else data


def check(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="jaxsight-fuzz-") as folder:
        Path(folder, "pyproject.toml").write_bytes(data)
        settings = read_project(folder)
    count = data.count(b"\n") + data.count(b"\r") + 1
    for problem in settings.problems:
        assert problem.range.start <= problem.range.end
        assert problem.range.end.line <= count, "a problem lies past the end"
        assert problem.message


def run(count: int, seed: int) -> Report:
    return pure(draw, check, count, seed)
