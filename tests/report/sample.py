"""A report of a program of any number of kernels, made of an answer of the server."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from jaxsight.page import embedded

PANEL = Path(__file__).parents[2] / "vscode-extension" / "panel"
LARGEST = 2 * 1024 * 1024
"""Bytes of the report of a step of 1 000 kernels at most."""


def _entry(label: str, target: str, kernels: int, against: int | None) -> dict[str, Any]:
    given = json.loads((PANEL / "test" / "nested.json").read_text(encoding="utf-8"))
    shown, texts = given["shown"], given["texts"]
    drawn = shown["drawn"]
    if kernels != len(drawn["kernels"]):
        one = drawn["kernels"]
        drawn["kernels"] = [
            {**one[at % len(one)], "name": f"fusion.{at}", "loops": [], "branch": -1, "group": -1}
            for at in range(kernels)
        ]
        value = {"text": "f32[64]", "bytes": 256}
        drawn["edges"] = [
            {
                "source": {"what": "kernel", "index": before},
                "target": {"what": "kernel", "index": after},
                "value": value,
            }
            for before, after in pairwise(range(kernels))
        ]
        drawn.update(loops=[], branches=[], temporaries=[])
        # As long as that of so many kernels, and no line as the other.
        lines = texts["hlo"]["text"].split("\n")
        texts["hlo"]["text"] = "\n".join(
            f"{line}  // {at}" for at in range(kernels // len(one)) for line in lines
        )
    return {
        "shown": {
            **shown,
            "target": target,
            "documents": {kind: f"#{kind}" for kind in texts},
        },
        "contents": texts,
        "swept": None,
        "label": label,
        "against": against,
        "figures": [["kernels", str(kernels)], ["temporaries", f"{kernels} KiB"]],
        "record": None,
    }


def page(kernels: int = 19, title: str = "nested") -> str:
    """Return a report of two programs, the second one of 19 kernels."""
    first = _entry(title, "cuda:h100", kernels, 1)
    second = _entry("before", "cuda:h100", 19, None)
    uri = first["shown"]["uri"]
    numbers = list(range(5, 20))
    finding = {
        "code": "JX201",
        "severity": "warning",
        "function": "nested",
        "place": {
            "uri": uri,
            "range": {
                "start": {"line": 9, "character": 0},
                "end": {"line": 9, "character": 4},
            },
        },
        "message": "a reduction prevents fusion",
        "help": "write it out",
        "notes": ["a note"],
        "targets": ["cuda:h100"],
    }
    source = {
        "uri": uri,
        "name": "nested.py",
        "numbers": numbers,
        "text": "\n".join(f"line_{number} = {number}" for number in numbers),
    }
    data = {
        "entries": [first, second],
        "report": {
            "title": title,
            "version": "0.1.0",
            "sources": [source],
            "findings": [finding],
            "remarks": ["before was not measured"],
        },
    }
    return embedded(data, title)
