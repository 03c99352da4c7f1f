"""Random edits: after each of them the answers are those about the text as it stands, imported in a
fresh process.
"""

from __future__ import annotations

import ast
import asyncio
import io
import random
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.truth import cases as corpus
from tests.truth import oracle
from tests.truth.cases import Case
from tests.truth.measure import (
    Judged,
    given,
    request,
    scratch,
    session,
    verdict,
    write,
)
from tests.truth.oracle import Request, Truth

PER_CASE = 10
"""Edits of one text before another case's is taken."""
_ENDLESS = re.compile(r"\bwhile\b|\.join\(|\.wait\b|\bcount\(")
"""Cases whose texts may run for ever when a statement of theirs is gone."""
_DRAWN = re.compile(r"random|time|uuid|tempfile|secrets|\bid\(|hash\(|getpid|active_count")
"""Texts whose truth may be another one each time."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A case, and the texts of its main file as somebody edits it at random."""

    case: Case
    texts: tuple[str, ...]


def drawn(count: int, seed: int) -> list[Sequence]:
    """Random sequences of `count` edits in all."""
    choose = random.Random(seed)
    every = [c for c in corpus.cases() if not c.alone and not _ENDLESS.search(c.text)]
    sequences: list[Sequence] = []
    left = count
    while left > 0:
        case = choose.choice(every)
        text, texts = case.text, []
        for _ in range(min(left, PER_CASE)):
            # Half of the edits are undone by the next, as people do.
            text = edited(text if not texts or choose.random() < 0.5 else case.text, choose)
            texts.append(text)
        left -= len(texts)
        sequences.append(Sequence(case, tuple(texts)))
    return sequences


def edited(text: str, choose: random.Random) -> str:
    """The text after one random edit that leaves its syntax correct."""
    for _ in range(20):
        new = choose.choice(_EDITS)(text, choose)
        try:
            ast.parse(new)
        except SyntaxError:
            continue
        if new != text:
            return new
    return text


def pieces(text: str) -> list[str]:
    """The text cut before each top-level statement."""
    lines = text.splitlines(keepends=True)
    starts = []
    for node in ast.parse(text).body:
        decorators = getattr(node, "decorator_list", [])
        starts.append(min([node.lineno, *(each.lineno for each in decorators)]) - 1)
    starts = sorted({0, *starts})
    ends = [*starts[1:], len(lines)]
    return ["".join(lines[a:b]) for a, b in zip(starts, ends, strict=True)]


def _swap(text: str, choose: random.Random) -> str:
    statements = pieces(text)
    if len(statements) < 2:
        return text
    at = choose.randrange(1, len(statements))
    first, second = statements[at - 1], statements[at]
    statements[at - 1 : at + 1] = [second if second.endswith("\n") else second + "\n", first]
    return "".join(statements)


def _delete(text: str, choose: random.Random) -> str:
    statements = pieces(text)
    if not statements:
        return text
    del statements[choose.randrange(len(statements))]
    return "".join(statements)


def _duplicate(text: str, choose: random.Random) -> str:
    statements = pieces(text)
    if not statements:
        return text
    at = choose.randrange(len(statements))
    return "".join([*statements[: at + 1], statements[at], *statements[at + 1 :]])


def _delete_line(text: str, choose: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    del lines[choose.randrange(len(lines))]
    return "".join(lines)


def _tokens(text: str, wanted: Callable[[tokenize.TokenInfo], bool]) -> list[tokenize.TokenInfo]:
    return [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if wanted(t)]


def _replaced(text: str, tokens: list[tokenize.TokenInfo], new: str) -> str:
    lines = text.splitlines(keepends=True)
    for token in reversed(tokens):
        (row, start), (_, end) = token.start, token.end
        line = lines[row - 1]
        lines[row - 1] = line[:start] + new + line[end:]
    return "".join(lines)


def changed_number(text: str, choose: random.Random) -> str:
    numbers = _tokens(text, lambda token: token.type == tokenize.NUMBER)
    if not numbers:
        return text
    token = choose.choice(numbers)
    new = str(choose.randrange(1, 9))
    return _replaced(text, [token], new + (".5" if "." in token.string else ""))


def _rename(text: str, choose: random.Random) -> str:
    """Rename one name everywhere, or at one of its places only."""
    functions = {
        node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)
    }
    bound = {
        node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)
    } - functions
    names = _tokens(text, lambda t: t.type == tokenize.NAME and t.string in bound)
    if not names:
        return text
    token = choose.choice(names)
    everywhere = [each for each in names if each.string == token.string]
    return _replaced(text, everywhere if choose.random() < 0.6 else [token], f"{token.string}_")


def broken(text: str, choose: random.Random) -> str:
    """Leave a line unfinished, as somebody who types."""
    lines = text.splitlines(keepends=True)
    at = choose.randrange(len(lines)) if lines else 0
    indent = re.match(r"\s*", lines[at])[0] if lines else ""  # type: ignore[index]
    lines.insert(at, indent.strip("\n") + choose.choice(_UNFINISHED) + "\n")
    return "".join(lines)


def redefined(text: str, choose: random.Random) -> str:
    """Rename, move, or repeat a definition, there or at the end, with another number in it."""
    statements = pieces(text)
    defining = [
        at for at, each in enumerate(statements) if re.search(r"^(def|class) ", each, re.MULTILINE)
    ]
    if not defining:
        return text
    at = choose.choice(defining)
    piece = statements[at].rstrip("\n") + "\n\n\n"
    match choose.randrange(4):
        case 0:
            statements[at] = re.sub(
                r"^(def|class) (\w+)", r"\1 \2_", piece, count=1, flags=re.MULTILINE
            )
        case 1:
            del statements[at]
            statements.insert(choose.randrange(len(statements) + 1), piece)
        case 2:
            statements.insert(at, piece)
            statements[at + 1] = changed_number(piece, choose)
        case _:
            statements[-1] = statements[-1].rstrip("\n") + "\n\n\n"
            statements.append(changed_number(piece, choose))
    return "".join(statements)


_UNFINISHED = ("return (", "x = [1,", "def g(", "else:", "'", "if True", "import", "for", ")")

_EDITS = (
    _swap,
    _swap,
    _delete,
    _delete,
    _duplicate,
    _delete_line,
    changed_number,
    changed_number,
    _rename,
)


async def measured(sequences: list[Sequence], python: str, jobs: int) -> list[Judged]:
    """Judge the answers about each text. Texts that have no one truth are left out."""
    known = await asyncio.to_thread(_truths, sequences, python, jobs)
    judged: list[Judged] = []
    numbered = list(enumerate(sequences))
    with scratch() as folder:

        async def work(number: int) -> None:
            root = folder / f"root{number}"
            root.mkdir()
            async with session(root, python) as opened:
                while numbered:
                    at, sequence = numbered.pop()
                    case = sequence.case
                    where = root / f"{at}_{case.name}"
                    write(where, dict(case.files))
                    path = where / case.main
                    opened.open(str(path), case.text)
                    for stage, text in enumerate((case.text, *sequence.texts)):
                        if stage:
                            opened.change(str(path), text)
                        for function, truth in known[at, stage].items():
                            answer = await given(opened, path, function, bool(truth.program))
                            judge = verdict(answer, truth)
                            found = Judged(
                                case.family, case.name, stage, function, judge, answer, truth, text
                            )
                            judged.append(found)
                    opened.close(str(path))

        await asyncio.gather(*(work(number) for number in range(jobs)))
    return judged


def _truths(
    sequences: list[Sequence], python: str, jobs: int
) -> dict[tuple[int, int], dict[str, Truth]]:
    """The truth of each text that has one, by the numbers of the sequence and of the text."""
    keys: list[tuple[int, int]] = []
    requests: list[Request] = []
    with scratch() as folder:
        for at, sequence in enumerate(sequences):
            for stage, text in enumerate((sequence.case.text, *sequence.texts)):
                for _ in range(2 if _DRAWN.search(text) else 1):
                    keys.append((at, stage))
                    requests.append(_request(folder / str(len(requests)), sequence.case, text))
        answers = oracle.truths(requests, python, jobs)
    known: dict[tuple[int, int], dict[str, Truth]] = {}
    for key, truth in zip(keys, answers, strict=True):
        if (
            any(each.error in oracle.NO_TRUTH for each in truth.values())
            or known.setdefault(key, truth) != truth
        ):
            known[key] = {}
    return known


def _request(folder: Path, case: Case, text: str) -> Request:
    write(folder, {**dict(case.files), case.main: text})
    return request(folder, case.main, text, [content for _, content in case.files])
