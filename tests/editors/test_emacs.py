"""What a person sees in Emacs with eglot: another client, with its own ways."""

from __future__ import annotations

from typing import Any

import pytest

from tests.editors.emacs import emacs, missing
from tests.editors.project import MODEL, SETTINGS

pytestmark = pytest.mark.slow

STEP = """\
HloModule step

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %y = f32[4]{0} add(%x, %x)
  ROOT %z = f32[4]{0} negate(%y)
}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Emacs shows of a project."""
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    return emacs("emacs.el", folder, tmp_path_factory.mktemp("home"))


def test_hover_tells_functions_and_expressions(recorded: dict[str, Any]) -> None:
    assert "q: f32[4,128,8,64]" in recorded["function"]
    assert "scores: f32[4,8,128,128]" in recorded["expression"]


def test_a_tracing_error_is_a_diagnostic_at_its_line(recorded: dict[str, Any]) -> None:
    line = MODEL.splitlines().index("    if x.sum() > 0:") + 1
    assert any(at == line and "bool" in words for at, words in recorded["diagnostics"])


@pytest.mark.smoke
def test_shapes_are_drawn_by_those_that_draw_hints(recorded: dict[str, Any]) -> None:
    draws = int(recorded["emacs"].partition(".")[0]) >= 29
    assert draws == (": f32[4,8,128,128]" in recorded.get("hints", []))


def test_example_inputs_are_added_by_a_code_action(recorded: dict[str, Any]) -> None:
    section = recorded["text"].partition("def clipped")[2].partition("norm =")[0]
    assert "Example inputs:" in section
    assert "x: f32[" in section


def test_a_file_of_hlo_is_navigated(tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("dumps")
    (folder / "step.hlo").write_text(STEP, encoding="utf-8")
    found = emacs("program.el", folder, tmp_path_factory.mktemp("home"))
    assert found["definition"] == 5


def test_the_panel_in_a_browser_follows_point(tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    found = emacs("panel.el", folder, tmp_path_factory.mktemp("home"))
    assert found == {"links": 1, "page": True, "followed": True, "ended": True}
