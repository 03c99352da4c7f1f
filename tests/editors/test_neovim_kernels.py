"""Kernels as a person sees them in Neovim, compiled for this machine's CPU by the real compiler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.neovim import Neovim, missing, neovim
from tests.editors.project import KERNELS, NORMALIZED

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "pyproject.toml").write_text(KERNELS, encoding="utf-8")
    (folder / "model.py").write_text(NORMALIZED, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def editor(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    if reason := missing():
        pytest.skip(reason)
    with neovim(folder, tmp_path_factory.mktemp("neovim")) as editor:
        editor.edit(folder / "model.py")
        yield editor


def kernels(editor: Neovim) -> dict[str, str]:
    """The hints, once there is one that counts kernels, with their memory."""
    hints: dict[str, str] = editor.until(
        """
        local hints = T.hints()
        for _, label in pairs(hints) do
            if label:match('kernel') and not label:find('…', 1, true) then return hints end
        end
        """
    )
    return hints


def test_totals_stand_at_the_head_and_barriers_at_their_lines(editor: Neovim) -> None:
    shown = kernels(editor)
    (head,) = [label for text, label in shown.items() if "def normalized" in text]
    assert "kernels" in head
    assert head.endswith("cpu")
    (barrier,) = [label for text, label in shown.items() if "jnp.sort" in text]
    assert barrier.strip().startswith("⊣ sort")


def test_a_syntax_error_keeps_the_barriers_and_marks_them(editor: Neovim) -> None:
    labels = sorted(kernels(editor).values())
    editor.replace("axis=1)\n", "axis=1\n")
    marked = editor.until(
        """
        local labels = vim.tbl_values(T.hints())
        for _, label in ipairs(labels) do if not label:find('~', 1, true) then return nil end end
        return labels
        """
    )
    assert sorted(label.replace("~", "") for label in marked) == labels
    editor.place("jnp.so|rt")
    editor.replace("axis=1\n", "axis=1)\n")


def test_hover_names_the_kernel_of_an_expression(editor: Neovim) -> None:
    kernels(editor)
    editor.place("jnp.so|rt")
    assert "cpu" in editor.hover("kernel")
