"""Reductions in a process of their own, as `jaxsight repro reduce` starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.corpora.jaxsight_repro.museum import equations

BOOT = Path(__file__).parents[3] / "server" / "jaxsight" / "boot.py"


@dataclass(frozen=True, slots=True)
class Reduction:
    """`left` are the equations of the result; -1 if there is none, for the reason `problem`."""

    left: int
    seconds: float = 0.0
    tried: int = 0
    problem: str = ""


def reduction(
    file: Path,
    check: str,
    out: Path,
    *,
    environment: Mapping[str, str] | None = None,
    limit: float = 600.0,
) -> Reduction:
    """Reduce a file with this interpreter."""
    paths = str(file), str(out)
    command = [sys.executable, str(BOOT), "repro", "reduce", *paths, json.dumps({"check": check})]
    try:
        done = subprocess.run(
            command,
            env=dict(environment or os.environ),
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Reduction(-1, limit, problem=f"not finished in {limit:g} s")
    event = _last_event(done.stdout)
    if event.get("event") != "done":
        words = str(event.get("message") or done.stderr.strip().rpartition("\n")[2])
        ended = f"exit status {done.returncode}"
        return Reduction(-1, problem=" ".join(words.split())[:200] or ended)
    try:
        left = equations(out)
    except Exception as error:  # noqa: BLE001 - counted as a file that does not run
        return Reduction(-1, problem=f"the result cannot be traced: {error}")
    return Reduction(left, float(str(event["seconds"])), int(str(event["tried"])))


def _last_event(text: str) -> dict[str, object]:
    for line in reversed(text.strip().splitlines()):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") in ("done", "error"):
            return event
    return {}
