"""Mutations that every subject needs: of bytes, of text, of JSON."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

ODD_TEXT = (
    "", "\x00", "\ud800", "é", "😋", "\u2028", "\u202e", "a" * 5000, "\r", "\x1b[2J", "%", "%00",
    "%ff", "../" * 30, "\\", "NaN",
    "[link](command:x)", "<img src=x>", "0" * 4400,
)  # fmt: skip

ODD_URIS = (
    "", "file:", "file://", "file:///", "file:////x", "file:///\x00.py", "file:///%00.py",
    "file:///%zz.py", "file:///%ff%fe.py", "FILE:///x.py",
    "file://host/x.py", "file:///C:/x.py", "file:///c%3A/x.py", "http://example.org/x.py",
    "untitled:", "untitled:Untitled-1", "untitled:/x.py",
    "git:/x.py?ref=HEAD", "jaxsight-jaxpr:", "jaxsight-jaxpr:/x.py/f.jaxpr",
    "jaxsight-pretty:/x.py/grad(f).pretty.py", "jaxsight-view:/a/(b).txt",
    "vscode-notebook-cell:/nb.ipynb#a", "file:///x.py?a=b#c", "file:///" + "d/" * 2000,
    "file:///" + "n" * 5000 + ".py", "file:///dev/zero",
    "file://[::1/x.py", "file://[", ":", "//", "\ud800", "file:///\ud800.py", "file:///a\nb.py",
)  # fmt: skip

ODD_NUMBERS = (-1, 0, 1, 2, 7, 2**31 - 1, 2**31, 2**32, 2**63, -(2**31), 10**30, 1.5, -0.0, 1e308)


def deep(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def odd_value(random: Random) -> Any:
    """Something of any type."""
    return random.choice(
        (
            lambda: None,
            lambda: random.choice((True, False)),
            lambda: random.choice(ODD_NUMBERS),
            lambda: random.choice(ODD_TEXT),
            lambda: random.choice(ODD_URIS),
            list,
            dict,
            lambda: [None] * random.randrange(5),
            lambda: {random.choice(ODD_TEXT): random.choice(ODD_NUMBERS)},
            lambda: deep(random.choice((3, 50, 300))),
        )
    )()


def mutated_json(value: Any, random: Random, times: int = 1) -> Any:
    """A copy of JSON data in which something is of another type, missing, added, doubled or
    exchanged."""
    value = copy.deepcopy(value)
    for _ in range(times):
        places = list(_places(value))
        if not places:
            return odd_value(random)
        holder, key = random.choice(places)
        match random.randrange(8):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[random.choice((*ODD_TEXT, "uri", "extra"))] = odd_value(random)
            case 2 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 3 if isinstance(holder[key], str):
                holder[key] = mutated_text(holder[key], random, ODD_TEXT)
            case 4 if isinstance(holder[key], int):
                holder[key] = random.choice(ODD_NUMBERS)
            case 5 if key == "uri":
                holder[key] = random.choice(ODD_URIS)
            case _:
                holder[key] = odd_value(random)
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    frontier = [value]
    while frontier:
        holder = frontier.pop()
        keys: Sequence[Any] = ()
        if isinstance(holder, dict):
            keys = list(holder)
        elif isinstance(holder, list):
            keys = range(len(holder))
        for key in keys:
            found.append((holder, key))
            frontier.append(holder[key])
    return found


def mutated_text(text: str, random: Random, pieces: Sequence[str], times: int = 3) -> str:
    """A text with pieces put in, cut out, doubled and exchanged."""
    for _ in range(random.randrange(1, times + 1)):
        at = random.randrange(len(text) + 1)
        length = min(random.choice((0, 1, 1, 3, 12, 80)), len(text) - at)
        match random.randrange(4):
            case 0:
                text = text[:at] + random.choice(pieces) + text[at:]
            case 1:
                text = text[:at] + text[at + length :]
            case 2:
                text = text[:at] + random.choice(pieces) + text[at + length :]
            case _:
                text = text[:at] + text[at : at + length] * 2 + text[at + length :]
    return text


def mutated_bytes(data: bytes, random: Random, times: int = 3) -> bytes:
    """Bytes that are flipped, cut off, cut out, doubled or made up."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, times + 1)):
        at = random.randrange(len(changed) + 1)
        length = random.choice((1, 1, 2, 4, 16, 200))
        match random.randrange(5):
            case 0 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                del changed[at:]
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = changed[at : at + length]
            case _:
                changed[at:at] = random.randbytes(length)
    return bytes(changed)
