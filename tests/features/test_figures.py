"""Figures as diagnostics, for clients that show no hints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jaxsight.rules.finding import Severity
from jaxsight.session import Session

SOURCE = '''\
def double(x):
    """
    Example inputs:
        x: f32[3, 4]
    """
    return x * 2


def bare(x):
    return x
'''
TYPES = "double(x: f32[3,4]) -> f32[3,4]"


@pytest.mark.asyncio
async def test_figures_are_diagnostics_where_the_settings_say_so(tmp_path: Path) -> None:
    path = str(tmp_path / "model.py")
    quiet = {"python": sys.executable, "target": "cpu"}
    session = Session()
    session.configure([str(tmp_path)], quiet)
    session.open(path, SOURCE, in_background=False)
    assert await session.findings(path) == []

    session.configure([str(tmp_path)], {**quiet, "figuresAsDiagnostics": True})
    await session.kernels(path, "double")
    [figures] = await session.findings(path)
    assert (figures.code, figures.severity) == ("figures", Severity.INFORMATION)
    assert figures.message == "1 kernel · temp 0 B · cpu"
    assert figures.notes == (TYPES,)
    assert figures.range.start.line == 0
    assert await session.findings(path, kernels=True) == [], "a check does not report them"

    session.close(path)
    hints = dict.fromkeys(("kernels", "barriers", "collectives"), False)
    settings = {**quiet, "figuresAsDiagnostics": True, "inlayHints": hints}
    session.configure([str(tmp_path)], settings)
    long = SOURCE.replace("f32[3, 4]", "f32[5, 4]").replace("double", "a_name_" * 12)
    session.open(path, long, in_background=False)
    [types] = await session.findings(path)
    assert types.message.startswith("a_name_a_name_")
    assert len(types.message) == 100
    await session.aclose()
