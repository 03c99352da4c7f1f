"""Check functions of installed libraries, and print what is found of each."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jaxsight.features.kernels.table import uncompiled
from jaxsight.features.named_function import view_of
from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from jaxsight.wire.messages.replies import Traced
from tests.truth import oracle
from tests.truth.libraries import Found, load, read, save
from tests.truth.measure import scratch

_SMALL = (("f32[4, 4]", "f32[512, 512]"), ("f32[4]", "f32[512]"), ("i32[4]", "i32[512]"))
"""Arrays of the menu, and large ones: most findings need some memory."""
_REFUSED = ("JX400", "JX401", "JX905")
"""Codes of a function that does not take the larger arrays."""
_AROUND = 3
"""Lines of code that are shown before and after a finding."""


@dataclass(frozen=True, slots=True)
class Noted:
    """One finding, with its line from 1."""

    code: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of functions of one file, checked together.

    `functions` are those that were traced, `refused` those that were not; `uncompiled` has the
    reason for each that was traced and not compiled for the target; `error` says why there is no
    result.
    """

    file: str
    large: bool
    asked: list[str]
    functions: list[str]
    refused: list[str]
    findings: list[Noted]
    uncompiled: dict[str, str] = field(default_factory=dict)
    error: str = ""


def main() -> None:
    """Read the arguments and do the step."""
    parser = argparse.ArgumentParser(prog="python -m tools.precision", description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    draw = steps.add_parser("draw", help="draw packages by lot from the names on standard input")
    draw.add_argument("--seed", type=int, required=True)
    draw.add_argument("--count", type=int, default=40)
    look = steps.add_parser("look", help="find functions of installed packages")
    look.add_argument("packages", nargs="+")
    look.add_argument("--each", type=int, default=20, help="functions of one package, at most")
    look.add_argument("--seed", type=int, default=17)
    look.add_argument("--seconds", type=float, default=600, help="patience with one package")
    check = steps.add_parser("check", help="write the findings of each file")
    check.add_argument("--target", default="cuda:h100")
    check.add_argument("--seconds", type=float, default=120, help="patience with one file")
    check.add_argument("--no-kernels", dest="kernels", action="store_false", help="compile nothing")
    show = steps.add_parser("show", help="print findings beside the code, and counts")
    for step in (look, check):
        step.add_argument("--functions", type=Path, required=True)
    for step in (check, show):
        step.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    if options.step == "draw":
        print(*drawn(sys.stdin.read().split(), options.count, options.seed))
    elif options.step == "look":
        _look(options)
    elif options.step == "check":
        asyncio.run(_check(options))
    else:
        _show(_results(options.results))


def drawn(names: Sequence[str], count: int, seed: int) -> list[str]:
    """Return names of packages that are mentioned nowhere in the repository, in random order."""
    command = ["git", "grep", "-hoiE", r"\b[a-z][a-z0-9_-]+\b"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    known = {word.lower().replace("_", "-") for word in found.split()}
    left = [name for name in names if name.lower() not in known]
    random.Random(seed).shuffle(left)
    return left[:count]


def _look(options: argparse.Namespace) -> None:
    """Add functions of packages that have none in the file yet."""
    functions = load(options.functions) if options.functions.exists() else []
    known = {function.package for function in functions}
    for package in options.packages:
        if package in known:
            continue
        functions += _of_package(package, options.each, options.seed, options.seconds)
        save(functions, options.functions)
        print(f"{package}: {len(functions)} functions so far", flush=True)


def _of_package(package: str, most: int, seed: int, seconds: float) -> Iterator[Found]:
    command = [sys.executable, "-m", "tests.truth.libraries", package, str(most), str(seed)]
    path = os.pathsep.join([oracle.python_path(), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **oracle.SINGLE_THREADED, "PYTHONPATH": path}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as looking:
        limit = threading.Timer(seconds, looking.kill)
        limit.start()
        try:
            yield from (read(line) for line in looking.stdout or () if line.endswith("}\n"))
        finally:
            limit.cancel()


async def _check(options: argparse.Namespace) -> None:
    """Check what has no result yet: with large arrays first, then as the menu has them."""
    functions = load(options.functions)
    for large in (True, False):
        results = _results(options.results)
        done = {(c.file, name) for c in results if c.large == large for name in c.asked}
        left = [f for f in functions if (f.file, f.function) not in done]
        if not large:
            refused = {(c.file, name) for c in results if c.large for name in c.refused}
            left = [f for f in left if (f.file, f.function) in refused]
        by_file: dict[str, list[Found]] = {}
        for function in left:
            by_file.setdefault(function.file, []).append(function)
        groups = list(by_file.values())
        while groups:
            groups = await _of_files(groups, options, large=large)


async def _of_files(
    groups: Sequence[list[Found]], options: argparse.Namespace, *, large: bool
) -> list[list[Found]]:
    """Check files in one session until one of them fails or is to be checked once more.

    Returns:
        What is left: after a failure each function of that file by itself, and the other files.
    """
    files = [group[0].file for group in groups]
    together = next((i for i, file in enumerate(files) if file in files[:i]), len(files))
    with scratch() as folder:
        members = [function for group in groups[:together] for function in group]
        examples = [_example(function, large=large) for function in members]
        text = "\n".join(["[tool.jaxsight.examples]", *dict.fromkeys(examples)])
        (folder / "pyproject.toml").write_text(text, encoding="utf-8")
        session = Session(Projects(Trust(Policy.ALWAYS)))
        try:
            session.configure([str(folder)], {"python": sys.executable, "target": options.target})
            for number, group in enumerate(groups[:together]):
                file, names = group[0].file, [function.function for function in group]
                work = _of_file(session, file, names, large=large, kernels=options.kernels)
                rest = list(groups[number + 1 :])
                try:
                    checked = await asyncio.wait_for(work, options.seconds)
                except Exception as error:  # noqa: BLE001 - noted: the other files go on
                    if len(group) > 1:
                        return [*([function] for function in group), *rest]
                    checked = Checked(file, large, names, [], [], [], error=repr(error))
                _note(options.results, checked)
                if checked.error:
                    return rest
        finally:
            await session.aclose()
    return list(groups[together:])


async def _of_file(
    session: Session, file: str, names: list[str], *, large: bool, kernels: bool
) -> Checked:
    session.open(file, _text(file))
    findings = (await session.report(file, kernels=kernels)).reported
    traced, refused = [], []
    for name in names:
        view = await view_of(session.engine, file, name)
        (traced if isinstance(view.answer.reply, Traced) else refused).append(name)
    noted = [
        Noted(finding.code, finding.range.start.line + 1, "; ".join(finding.lines))
        for finding in findings
        if not (large and finding.code in _REFUSED)
    ]
    missing = await uncompiled(session.engine, file) if kernels else []
    reasons = {each.function: each.reason for each in missing}
    session.close(file)
    not_compiled = {name: reasons[name] for name in traced if name in reasons}
    return Checked(file, large, names, traced, refused, noted, not_compiled)


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def _example(function: Found, *, large: bool) -> str:
    example = function.example
    for small, larger in _SMALL if large else ():
        example = example.replace(small, larger)
    return f'"{function.module}:{function.function}" = {json.dumps(example)}'


def _note(results: Path, checked: Checked) -> None:
    with results.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(checked)) + "\n")
    codes = " ".join(noted.code for noted in checked.findings)
    print(f"{checked.file}: {len(checked.functions)} {codes} {checked.error}", flush=True)


def _results(file: Path) -> list[Checked]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [_result(json.loads(line)) for line in lines]


def _result(line: dict[str, Any]) -> Checked:
    noted = [Noted(**finding) for finding in line.pop("findings")]
    return Checked(**line, findings=noted)


def _show(results: Sequence[Checked]) -> None:
    counts: Counter[str] = Counter()
    shown: set[tuple[str, Noted]] = set()
    for checked in results:
        with contextlib.suppress(OSError):
            lines = Path(checked.file).read_text(encoding="utf-8").splitlines()
        for noted in checked.findings:
            if (checked.file, noted) in shown:
                continue
            shown.add((checked.file, noted))
            counts[noted.code] += 1
            print(f"{noted.code} {checked.file}:{noted.line}: {noted.message}")
            first = max(noted.line - 1 - _AROUND, 0)
            for number, line in enumerate(lines[first : noted.line + _AROUND], first + 1):
                print(f"  {number:5}{'>' if number == noted.line else ' '} {line}")
    functions = {(checked.file, name) for checked in results for name in checked.functions}
    asked = {(checked.file, name) for checked in results for name in checked.asked}
    compiled = functions - {
        (checked.file, name) for checked in results for name in checked.uncompiled
    }
    print(f"{len(asked)} functions, {len(functions)} traced, {len(compiled)} compiled")
    print(f"{sum(counts.values())} findings")
    print(", ".join(f"{code} {count}" for code, count in sorted(counts.items())))
    reasons = Counter(reason for checked in results for reason in checked.uncompiled.values())
    for reason, count in reasons.most_common():
        print(f"not compiled: {count}: {reason}")
    for checked in results:
        if checked.error:
            print(f"no result: {checked.file}: {', '.join(checked.asked)}: {checked.error}")


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main()
