"""Print how many dimensions have names, and which names are wrong."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from tests.quiet import QUIET
from tests.truth.libraries import Found, load
from tools.size_names.functions import module
from tools.size_names.measure import Measured, measured

_MENU = {"f32[4, 4]": ("M", "N"), "f32[4]": ("N",), "i32[4]": ("N",)}
_SHAPE = re.compile(r"(?:f32|i32)\[4(?:, 4)?\]")


def main() -> None:
    """Measure the functions, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.size_names", description=__doc__)
    parser.add_argument("--functions", type=Path, help="functions of installed libraries")
    parser.add_argument("--every", type=int, default=1, help="measure every n-th function only")
    options = parser.parse_args()
    asyncio.run(_print(options))


async def _print(options: argparse.Namespace) -> None:
    total = Measured("")
    functions = checked = with_names = 0
    for_names: list[int] = []
    found = _of_libraries(options) if options.functions else _of_api(options.every)
    async for result in found:
        functions += 1
        checked += result.checks > 0
        with_names += result.named > 0
        for_names.append(result.traces)
        total.named += result.named
        total.numbers += result.numbers
        total.checks += result.checks
        total.wrong += result.wrong
        for wrong in result.wrong:
            print(f"WRONG {result.function}: {wrong}", flush=True)
    print(
        f"{functions} functions, {with_names} with names, {checked} checked with "
        f"{total.checks} other traces\n"
        f"dimensions: {total.named} named, {total.numbers} numbers, {len(total.wrong)} wrong\n"
        f"traces for names: {sum(for_names)}, most for one function {max(for_names, default=0)}"
    )
    sys.exit(bool(total.wrong))


async def _of_api(every: int) -> AsyncIterator[Measured]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.py"
        path.write_text(module(every), encoding="utf-8")
        async for result in _of_file(Path(folder), path, None):
            yield result


async def _of_libraries(options: argparse.Namespace) -> AsyncIterator[Measured]:
    by_file: dict[str, list[Found]] = {}
    for number, function in enumerate(load(options.functions)):
        if number % options.every == 0:
            by_file.setdefault(function.file, []).append(function)
    for file, members in by_file.items():
        with tempfile.TemporaryDirectory() as folder:
            lines = [f'"{f.module}:{f.function}" = {json.dumps(_named(f))}' for f in members]
            text = "\n".join(["[tool.jaxsight.examples]", *dict.fromkeys(lines)])
            (Path(folder) / "pyproject.toml").write_text(text, encoding="utf-8")
            names = {function.function for function in members}
            async for result in _of_file(Path(folder), Path(file), names):
                yield result


def _named(function: Found) -> str:
    """Return the example inputs of a function with names in place of its sizes."""
    example = _SHAPE.sub(
        lambda shape: f"{shape[0][:3]}[{', '.join(_MENU['f32' + shape[0][3:]])}]", function.example
    )
    return f"{example}\nwhere M=4, N=4"


async def _of_file(root: Path, path: Path, names: set[str] | None) -> AsyncIterator[Measured]:
    session = Session(Projects(Trust(Policy.ALWAYS)))
    try:
        session.configure([str(root)], {**QUIET, "python": sys.executable})
        session.open(str(path), _text(path))
        for function in session.engine.documents.functions(str(path)):
            if names is not None and function not in names:
                continue
            result = await measured(session, str(path), function)
            if result is not None:
                yield result
            else:
                print(f"not traced: {function}", flush=True)
    finally:
        await session.aclose()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
