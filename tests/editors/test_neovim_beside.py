"""jaxsight in Neovim beside basedpyright and ruff: each says its own, and nothing is said twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.editors.neovim import REPOSITORY, Neovim, missing, neovim
from tests.editors.project import SETTINGS

pytestmark = pytest.mark.slow

SERVERS = REPOSITORY / ".venvs" / "servers" / "bin"

SETUP = f"""
vim.opt.runtimepath:prepend({str(REPOSITORY / "neovim")!r})
local markers = {{ 'pyproject.toml' }}
vim.lsp.config('basedpyright', {{
  cmd = {{ {str(SERVERS / "basedpyright-langserver")!r}, '--stdio' }},
  filetypes = {{ 'python' }},
  root_markers = markers,
  settings = {{ python = {{ pythonPath = {sys.executable!r} }} }},
}})
vim.lsp.config('ruff', {{
  cmd = {{ {str(SERVERS / "ruff")!r}, 'server' }},
  filetypes = {{ 'python' }},
  root_markers = markers,
}})
vim.lsp.enable({{ 'basedpyright', 'ruff' }})
"""

MODULE = '''\
import os
import jax.numpy as jnp


def normed(x):
    """
    Example inputs:
        x: f32[4, 8]
    """
    total = jnp.sum(x, axis=1)
    low, high = jnp.min(total), jnp.max(total)
    return (total - low) / (high - jnp.missing)
'''


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    if reason := missing():
        pytest.skip(reason)
    if not SERVERS.exists():
        pytest.skip(f"{SERVERS} is missing (`make test` makes it)")
    folder = tmp_path_factory.mktemp("beside")
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "model.py").write_text(MODULE, encoding="utf-8")
    with neovim(folder, tmp_path_factory.mktemp("neovim"), SETUP) as editor:
        editor.edit(folder / "model.py")
        editor.until("return #vim.lsp.get_clients({ bufnr = 0 }) == 3")
        editor.until(
            """
            local sources = {}
            for _, shown in ipairs(vim.diagnostic.get(0)) do sources[shown.source] = true end
            return sources.jaxsight and sources.basedpyright and sources.Ruff
            """
        )
        yield editor


def answers(editor: Neovim, method: str, marked: str) -> dict[str, str]:
    """Return what each server answers about a place, by server, as JSON."""
    editor.place(marked)
    answered: dict[str, str] = editor.lua(
        """
        local answers = {}
        for _, client in ipairs(vim.lsp.get_clients({ bufnr = 0 })) do
          local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
          if client:supports_method(A[1], 0) then
            local reply = client:request_sync(A[1], params, 30000, 0)
            if reply and reply.result and next(reply.result) then
              answers[client.name] = vim.json.encode(reply.result)
            end
          end
        end
        return answers
        """,
        method,
    )
    return answered


def test_each_diagnostic_names_its_server_and_is_shown_once(editor: Neovim) -> None:
    shown = editor.lua(
        """
        return vim.tbl_map(function(d) return { d.source, d.lnum, d.message } end, vim.diagnostic.get(0))
        """
    )
    sources = {source for source, _, _ in shown}
    assert sources == {"jaxsight", "basedpyright", "Ruff"}
    ours = [(line, message) for source, line, message in shown if source == "jaxsight"]
    assert len(ours) == len(set(map(tuple, ours)))


def test_a_hover_shows_types_and_shapes_each_once_with_its_server(editor: Neovim) -> None:
    editor.place("return (to|tal")
    shown = editor.hover("total: f32[4]")
    assert shown.count("total: f32[4]") == 1
    assert shown.count("Array") == 1
    assert shown.count("# jaxsight") == 1
    assert shown.rstrip().endswith("jaxsight*") or "jaxsight*\n" in shown
    assert set(answers(editor, "textDocument/hover", "return (to|tal")) == {
        "jaxsight",
        "basedpyright",
    }


def test_shapes_stand_at_the_end_of_the_line_beside_types(editor: Neovim) -> None:
    editor.place("def nor|med")
    drawn = editor.until(
        """
        vim.cmd('redraw')
        local drawn = {}
        for _, hint in ipairs(vim.lsp.inlay_hint.get({ bufnr = 0 })) do
          local label = hint.inlay_hint.label
          if type(label) == 'table' then label = table.concat(vim.tbl_map(function(part) return part.value end, label)) end
          local line = hint.inlay_hint.position.line
          local text = vim.api.nvim_buf_get_lines(0, line, line + 1, false)[1]
          table.insert(drawn, { line + 1, hint.inlay_hint.position.character == #text, label })
        end
        return vim.iter(drawn):any(function(hint) return hint[3] == 'f32[4]' end) and drawn
        """
    )
    assert [10, True, "f32[4]"] in drawn
    assert [11, True, "low: f32[], high: f32[]"] in drawn
    assert [10, False, ": Array"] in drawn
    assert not [label for _, _, label in drawn if label.startswith(": f32")]


def test_python_names_are_left_to_the_other_server(editor: Neovim) -> None:
    for method in (
        "textDocument/definition",
        "textDocument/references",
        "textDocument/documentHighlight",
    ):
        assert "jaxsight" not in answers(editor, method, "return (to|tal"), method
    assert "basedpyright" in answers(editor, "textDocument/definition", "return (to|tal")


def test_a_second_jaxsight_server_does_not_double_hovers(editor: Neovim) -> None:
    editor.lua(
        """
        local config = vim.deepcopy(vim.lsp.config.jaxsight)
        config.root_dir = vim.fn.fnamemodify(vim.fn.getcwd(), ':h')
        T.second = vim.lsp.start(config, { bufnr = 0, reuse_client = function() return false end })
        """
    )
    editor.until(
        """
        local second = T.second and vim.lsp.get_client_by_id(T.second)
        return second and second.initialized
          and #vim.lsp.get_clients({ bufnr = 0, name = 'jaxsight' }) == 1
        """
    )
    editor.place("return (to|tal")
    assert editor.hover("total: f32[4]").count("total: f32[4]") == 1
    editor.lua("vim.lsp.get_client_by_id(T.second):stop(true)")
