"""`jaxsight mcp`: what an agent's client gets over the protocol, and what it must not do."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.marks import Mark
from tests.terminal import SERVER, process

pytestmark = pytest.mark.slow

MODEL = '''\
import jax.numpy as jnp


def step(x):
    """
    Example inputs:
        x: f32[B, 8]
        where B=4
    """
    if x.sum() > 0:
        return jnp.sort(x)
    return x


def sorted_twice(x):
    """
    Example inputs:
        x: f32[B, 8]
        where B=4
    """
    return jnp.sort(jnp.sort(x) + 1)
'''


@asynccontextmanager
async def client(folder: Path, *named: str, trust: str = "ask") -> AsyncIterator[Client]:
    """A client of a server in a folder."""
    environ = {**os.environ, "PYTHONPATH": str(SERVER), "JAXSIGHT_TRUST": trust}
    arguments = ["-P", "-m", "jaxsight", "mcp", *named]
    server = StdioServerParameters(
        command=sys.executable, args=arguments, env=environ, cwd=str(folder)
    )
    async with Client(server) as connected:
        yield connected


async def text(connected: Client, tool: str, **arguments: object) -> str:
    result = await connected.call_tool(tool, arguments)
    (content,) = result.content
    return str(content.text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.jaxsight]\ntarget = 'cpu'\n")
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


async def test_tools_answer_as_the_commands_do(folder: Path) -> None:
    async with client(folder, ".") as agent:
        tools = await agent.list_tools()
        assert [tool.name for tool in tools.tools] == ["ask", "check", "sweep", "reduce", "explain"]
        assert len(str(tools)) < 8000
        asked = await text(agent, "ask", where="model.py:step", budget=900)
        assert "if x.sum() > 0" in asked
        assert len(asked) <= 900
        done = process("ask", "model.py:step", "--budget", "900", cwd=folder)
        assert asked == done.stdout.rstrip("\n")
        unsaved = MODEL.replace(
            "if x.sum() > 0:\n        return jnp.sort(x)\n    return x", "return x"
        )
        asked = await text(agent, "ask", where="model.py:step", text=unsaved, question="fix")
        assert "findings: none" in asked
        unsaved = MODEL.replace("jnp.sort(jnp.sort(x) + 1)", "jnp.sort(x) + 1")
        where = "model.py:sorted_twice"
        asked = await text(agent, "ask", where=where, text=unsaved, question="compare")
        assert "differences from model.py as saved (✗ worse):" in asked
        assert "✓ kernels" in asked
        found = await text(agent, "check", paths=["model.py"])
        assert found.startswith("examined 2 of 2 functions\nfindings:\n  model.py:10: error[JX401]")
        swept = await text(agent, "sweep", where="model.py:sorted_twice", sizes=["B=2,4"])
        assert "sorted_twice over B" in swept
        page = await text(agent, "explain", rule="JX401", budget=400)
        assert page.startswith("# traced-value (JX401)")
        assert len(page) <= 400
        explained = await text(agent, "explain", rule="all_reduce")
        assert "all-reduce (hlo): sum, or another reduction, of the arrays" in explained


async def test_code_runs_only_where_the_user_trusts_it(folder: Path) -> None:
    async with client(folder) as agent:
        for tool, arguments in {
            "ask": {"where": "model.py:step"},
            "check": {"paths": ["."]},
            "reduce": {"where": "model.py:step"},
        }.items():
            result = await agent.call_tool(tool, arguments)
            assert result.is_error
            assert f"jaxsight trust {folder}" in str(result.content)


USES_HELPER = "import helper\n" + MODEL


def _environment(folder: Path, mark: Mark) -> None:
    """A folder whose interpreter and whose module `helper` leave a mark."""
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (folder / ".venv" / "pyvenv.cfg").touch()
    python.write_text(f"#!/bin/sh\n{mark.command}\n")
    python.chmod(0o755)
    (folder / "helper.py").write_text(f"{mark.statement}\n")


async def test_what_is_checked_is_what_runs(folder: Path) -> None:
    """Whatever an agent names, in a folder H that nobody trusts, beside one that the user does."""
    here, mark = folder / "H", Mark(folder / "mark")
    trusted, other = here / "lib", here / "E"
    trusted.mkdir(parents=True)
    other.mkdir()
    _environment(here, mark)
    _environment(other, mark)
    (trusted / "a.py").write_text(MODEL)
    (other / "a.py").write_text(USES_HELPER)
    (other / "step").write_text(USES_HELPER)
    (other / "linked.py").symlink_to(trusted / "a.py")
    (trusted / "out.py").symlink_to(other / "a.py")
    (other / "a.py:step").symlink_to(trusted)
    (other / "f.py:step").symlink_to(trusted / "a.py")
    async with client(here, "lib") as agent:
        asked = await text(agent, "ask", where="lib/a.py:step", budget=900)
        assert "if x.sum() > 0" in asked, "its own folder is trusted"
        assert not mark.has_run, "the interpreter above it is not"
        whole = {"where": "lib/a.py:sorted_twice"}
        for tool, arguments in (
            ("ask", {"where": "E/a.py:step"}),
            ("ask", {"where": "E/linked.py:step"}),
            ("ask", {"where": "E/f.py:step"}),
            ("ask", {"where": "E/a.py:step", "text": USES_HELPER}),
            ("ask", {"where": "E/a.py:step:step"}),
            ("ask", {"where": "lib/out.py:step"}),
            ("ask", {"where": "lib/../E/a.py:step"}),
            ("ask", {**whole, "question": "compare", "against": "E/a.py:sorted_twice"}),
            ("ask", {**whole, "question": "compare", "against": "E/step"}),
            ("sweep", {"where": "E/a.py:step", "sizes": ["B=1"]}),
            ("sweep", {**whole, "sizes": ["B=1", "E/a.py:sorted_twice"]}),
            ("reduce", {"where": "E/a.py:step"}),
            ("check", {"paths": ["lib/out.py"]}),
            ("check", {"paths": ["lib", "E/a.py:step"]}),
        ):
            result = await agent.call_tool(tool, arguments)
            assert result.is_error, (tool, arguments, result)
            assert not mark.has_run, (tool, arguments)


async def test_an_agent_gives_no_options_and_no_hosts(folder: Path) -> None:
    async with client(folder, ".") as agent:
        for tool, arguments in (
            ("sweep", {"where": "model.py:step", "sizes": ["B=1", "--svg=x.svg"]}),
            ("ask", {"where": "--allow=x"}),
            ("ask", {"where": "model.py:step", "target": "ssh://host"}),
            ("ask", {"where": "../other.py:f"}),
        ):
            assert (await agent.call_tool(tool, arguments)).is_error
    assert not (folder / "x.svg").exists()


def test_without_its_package_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n_find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'mcp' else _find(name, *a)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(SERVER)])
    done = process("mcp", cwd=tmp_path, PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'jaxsight[mcp]'" in done.stderr
