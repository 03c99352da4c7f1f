"""A rule is known by its code and its name, and a new folder is a rule everywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsight.rules import RULES, rule_of
from jaxsight.rules.selection import ignored, is_selector, selected

ROOT = Path(__file__).parents[2]


def test_a_rule_is_known_by_its_code_and_its_name() -> None:
    assert rule_of("jx207") is rule_of("JX207") is rule_of("short-loop") is RULES["JX207"]
    assert rule_of("JX2") is None
    assert is_selector("JX2")
    assert is_selector("short-loop")
    assert not is_selector("short")
    assert not is_selector("jx207")


@pytest.mark.parametrize(
    ("select", "ignore", "reported"),
    [
        ((), (), True),
        ((), ("short-loop",), False),
        (("JX1",), (), False),
        (("short-loop",), ("JX2",), True),
        (("JX2",), ("short-loop",), False),
        (("ALL",), ("JX207",), False),
        (("JX207",), ("ALL",), True),
    ],
)
def test_names_select_and_ignore_as_codes_do(
    select: tuple[str, ...], ignore: tuple[str, ...], reported: bool
) -> None:
    assert selected("JX207", select, ignore) is reported
    assert not ignored("JX207", ("JX208", "meshgrid"))


_RULE = '''"""JX298: a function adds one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation

RULE = Rule(__name__, "The function adds one.", severity="warning")


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield each addition."""
    for step in view.flow.steps.values():
        if step.primitive == "add":
            yield Violation("addition of one", step.path, help="subtract one")


@RULE.fixes("a subtraction")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield a subtraction of minus one."""
    for node in context.find(ast.BinOp):
        assert isinstance(node, ast.BinOp)
        yield Candidate("Subtract", (context.replace(node, f"{context.text(node.left)} - -1.0"),))

'''
_MODULE = '''def f(x):
    """
    Example inputs:
        x: f32[4]
    """
    return x + 1.0
'''


@pytest.mark.slow
def test_a_new_folder_is_a_rule_for_check_explain_settings_fixes_and_docs(tmp_path: Path) -> None:
    """No file outside of the folder changes."""
    server = tmp_path / "server"
    shutil.copytree(ROOT / "server", server, ignore=shutil.ignore_patterns("__pycache__"))
    folder = server / "jaxsight" / "rules" / "jx298_adds_one"
    folder.mkdir()
    for name, text in {
        "rule.py": _RULE,
        "page.md": "# adds-one (JX298)\n\nAdding one.\n",
    }.items():
        (folder / name).write_text(text)
    project = tmp_path / "project"
    project.mkdir()
    settings = f'[tool.jaxsight]\npython = {json.dumps(sys.executable)}\nselect = ["adds-one"]\n'
    (project / "pyproject.toml").write_text(settings)
    (project / "model.py").write_text(_MODULE)

    def run(*command: str, cwd: Path = project) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(server)},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    checked = run("-m", "jaxsight", "check", "--output-format", "json")
    [found, examined] = json.loads(checked.stdout)
    assert examined["code"] == "examined"
    assert (found["code"], found["message"], found["help"]) == (
        "JX298",
        "addition of one",
        "subtract one",
    )
    assert found["fix"]["message"] == "Subtract"
    assert "Severity: warning · has a fix" in run("-m", "jaxsight", "explain", "adds-one").stdout
    table = run("-c", "from jaxsight.rules.documentation import table; print(table())")
    assert (
        "| [JX298](JX298.md) | adds-one | The function adds one. | program | fix |" in table.stdout
    )
    (folder / "page.md").unlink()
    explained = run("-m", "jaxsight", "explain", "JX298")
    assert explained.returncode == 2
    [line] = explained.stderr.splitlines()
    assert "JX298 (adds-one) has no page" in line
    assert line.endswith("page.md: No such file or directory")
