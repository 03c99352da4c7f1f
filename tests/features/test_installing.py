"""An installation that is cancelled, or whose session ends, leaves no process and no files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jaxsight.features.setup.targets import Installer, InstallPlan
from jaxsight.projects.projects import Projects
from jaxsight.queries.engine import Engine


@pytest.mark.parametrize("end", ["cancelled", "session ends"])
async def test_an_installation_ends_with_its_caller_or_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    home = tmp_path / "compilers"
    await asyncio.to_thread(home.mkdir)
    monkeypatch.setenv("JAXSIGHT_COMPILERS", str(home))
    python = tmp_path / "python"
    script = '#!/bin/sh\n[ "$1 $2" = "-I -c" ] && echo py3.11 && exit\nmkdir -p "$4/bin"\nexec sleep 100\n'
    await asyncio.to_thread(python.write_text, script)
    await asyncio.to_thread(python.chmod, 0o755)
    engine, steps = Engine(Projects()), asyncio.Queue[str]()
    retried: list[bool] = []
    installer = Installer(engine, lambda: retried.append(True))
    plan = InstallPlan("cuda", str(python), "0.12.0", "pypi.example", str(home))
    work = asyncio.ensure_future(installer.install(plan, steps.put_nowait))
    assert (await steps.get()).startswith("creating an environment in ")
    if end == "cancelled":
        work.cancel()
    else:
        await installer.aclose()
    with pytest.raises(asyncio.CancelledError if end == "cancelled" else LookupError):
        await work
    assert [path.suffix for path in await asyncio.to_thread(lambda: list(home.iterdir()))] == [
        ".lock"
    ]
    assert retried == []  # there is no new compiler
    await engine.aclose()
