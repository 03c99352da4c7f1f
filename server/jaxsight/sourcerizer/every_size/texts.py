"""Texts that differ in numbers, as one with expressions; and where the sizes are read."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence

Fit = Callable[[Sequence[int]], str | None]
"""Returns an expression for values that a number has for several sizes."""

_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}

_NUMBERS = re.compile(r"\d+")

_ALONE = set("()[],:=")
"""What may stand next to an expression without brackets."""


class DifferentTexts(Exception):
    """Texts that differ in more than numbers."""


def merged(texts: Sequence[str], fit: Fit, floating: str) -> str:
    """Return the first text, with expressions in place of numbers that differ.

    Args:
        texts: one for each of some sizes.
        fit: returns the expression for values.
        floating: how an expression is written in place of a floating-point number.

    Raises:
        DifferentTexts: they differ in more than numbers, or these are no expression of sizes.
    """
    listed = [[*_tokens(text)] for text in texts]
    lines = texts[0].splitlines(keepends=True)
    if len({len(tokens) for tokens in listed}) > 1:
        raise DifferentTexts("it has other operations for other sizes")
    replaced: list[tuple[tokenize.TokenInfo, str]] = []
    for place, same in enumerate(zip(*listed, strict=True)):
        if len({token.string for token in same}) == 1:
            continue
        token = same[0]
        if token.type == tokenize.COMMENT:
            replaced.append((token, _merged_words([one.string for one in same], fit)))
            continue
        if any(one.type != tokenize.NUMBER for one in same):
            raise DifferentTexts(f"it has `{token.string[:40]}` for some sizes only")
        is_floating = any(not one.string.isdigit() for one in same)
        expression = _fitted([_whole(one.string) for one in same], fit)
        if is_floating:
            expression = floating.format(expression)
        beside = {listed[0][place - 1].string, listed[0][place + 1].string}
        if not beside <= _ALONE and not (
            expression.isidentifier() or (floating != "{}" and is_floating)
        ):
            expression = f"({expression})"
        replaced.append((token, expression))
    for token, expression in reversed(replaced):
        row, column = token.start
        line = lines[row - 1]
        lines[row - 1] = line[:column] + expression + line[token.end[1] :]
    return "".join(lines)


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield tokens without layout: line breaks, and commas before closing brackets."""
    comma: tokenize.TokenInfo | None = None
    is_broken = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _LAYOUT:
            is_broken = True
            continue
        if comma is not None and not (is_broken and token.string in (")", "]", "}")):
            yield comma
        comma, is_broken = (token, False) if token.string == "," else (None, False)
        if comma is None:
            yield token


def _merged_words(words: Sequence[str], fit: Fit) -> str:
    """Return a comment, such as one with shapes, with expressions for its numbers."""
    if len({_NUMBERS.sub("", text) for text in words}) > 1:
        raise DifferentTexts("its comments differ")
    columns = iter(zip(*map(_NUMBERS.findall, words), strict=True))

    def expression(_: re.Match[str]) -> str:
        values = next(columns)
        return values[0] if len({*values}) == 1 else _fitted([*map(int, values)], fit)

    return _NUMBERS.sub(expression, words[0])


def _fitted(values: Sequence[int], fit: Fit) -> str:
    found = fit(values)
    if found is None:
        raise DifferentTexts(f"{values[0]} is no simple expression of the sizes")
    return found


def _whole(number: str) -> int:
    try:
        value = float(number) if not number.isdigit() else int(number)
    except ValueError:
        raise DifferentTexts(f"{number} depends on sizes") from None
    if value != int(value):
        raise DifferentTexts(f"{number} depends on sizes")
    return int(value)


def with_sizes(text: str, function: str, names: Sequence[str], first: Sequence[str]) -> str:
    """Return a module whose function begins with statements that name its sizes.

    What else of the module uses them becomes part of the function.
    """
    lines = text.splitlines()
    tree = ast.parse(text)
    used = {*names}
    moved: list[ast.stmt] = []
    (main,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function
    )
    for node in tree.body:
        inside = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        if node is not main and inside & used:
            moved.append(node)
            used |= _defined(node)
    body = main.body[0]
    documented = isinstance(body, ast.Expr) and isinstance(body.value, ast.Constant)
    at = (body.end_lineno or body.lineno) if documented else _begin(body) - 1
    inserted = [f"    {line}" for line in first]
    for node in moved:
        inserted += [
            "",
            *(f"    {line}".rstrip() for line in lines[_begin(node) - 1 : node.end_lineno]),
        ]
    gone = {line for node in moved for line in range(_begin(node) - 1, node.end_lineno or 0)}
    kept = [line for place, line in enumerate(lines[:at]) if place not in gone]
    if moved or isinstance(body, ast.FunctionDef):
        inserted.append("")
    kept += [*inserted, *(l for place, l in enumerate(lines[at:], at) if place not in gone)]
    joined = "\n".join(kept) + "\n"
    return re.sub(r"\n{4,}", "\n\n\n", joined)


def _begin(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min(node.lineno, *(one.lineno for one in decorators)) if decorators else node.lineno


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def identifiers(text: str) -> set[str]:
    """Return all names in a text."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}
