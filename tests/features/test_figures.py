"""Figures as diagnostics, for clients that show no hints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jaxsight.events import Status
from jaxsight.features.named_function import compiled_function
from jaxsight.projects.projects import Projects
from jaxsight.rules.finding import Severity
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust

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


@pytest.mark.slow
@pytest.mark.asyncio
async def test_figures_are_diagnostics_where_the_settings_say_so(tmp_path: Path) -> None:
    path = str(tmp_path / "model.py")
    quiet = {"python": sys.executable, "target": "cpu"}
    session = Session()
    session.configure([str(tmp_path)], quiet)
    session.open(path, SOURCE, in_background=False)
    assert (await session.report(path)).reported == []

    session.configure([str(tmp_path)], {**quiet, "figuresAsDiagnostics": True})
    await compiled_function(session.engine, path, "double", complete=True)
    [figures] = (await session.report(path)).reported
    assert (figures.code, figures.severity) == ("figures", Severity.INFORMATION)
    assert figures.message == "1 kernel · temp 0 B · cpu"
    assert figures.notes == (TYPES,)
    assert figures.range.start.line == 0
    assert (await session.report(path, kernels=True)).reported == [], "a check does not report them"

    session.close(path)
    hints = dict.fromkeys(("kernels", "barriers", "collectives"), False)
    settings = {**quiet, "figuresAsDiagnostics": True, "inlayHints": hints}
    session.configure([str(tmp_path)], settings)
    long = SOURCE.replace("f32[3, 4]", "f32[5, 4]").replace("double", "a_name_" * 12)
    session.open(path, long, in_background=False)
    [types] = (await session.report(path)).reported
    assert types.message.startswith("a_name_a_name_")
    assert len(types.message) == 100
    await session.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize("policy", [Policy.ASK, Policy.OPENED])
async def test_a_client_of_diagnostics_hears_why_nothing_runs(
    tmp_path: Path, policy: Policy
) -> None:
    session = Session(Projects(Trust(policy), spares=0))
    settings = {"figuresAsDiagnostics": True, "target": "cpu"}
    session.configure([str(tmp_path)], settings)
    for name, text in (("plain.py", "x = 1\n"), ("model.py", f"import jax\n{SOURCE}")):
        session.open(str(tmp_path / name), text, in_background=False)
    assert (await session.report(str(tmp_path / "plain.py"))).reported == []
    [found] = (await session.report(str(tmp_path / "model.py"))).reported
    statuses = []
    while not session.events.empty():
        if isinstance(event := session.events.get_nowait(), Status):
            statuses.append(event)
    if policy is Policy.ASK:
        assert (found.code, found.severity) == ("untrusted", Severity.WARNING)
        assert found.help == f"run `jaxsight trust {tmp_path}`"
        assert {status.state for status in statuses} == {"untrusted"}
    else:
        assert found.code == "figures"
        assert "its code runs because the client has opened it" in statuses[-1].detail
    await session.aclose()
