"""The plugin for Neovim, installed as a package: its commands, its documents and its health
check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.neovim import REPOSITORY, Neovim, missing, neovim
from tests.editors.project import KERNELS, NORMALIZED
from tests.profiles.made import PROGRAMS, gpu_plane, host_plane, write

pytestmark = pytest.mark.slow

SETUP = f"vim.opt.runtimepath:prepend({str(REPOSITORY / 'neovim')!r})"

MODULE = (
    NORMALIZED
    + '''
import jax


def scaled(x):
    """
    Example inputs:
        x: f32[7]
    Example inputs (long):
        x: f32[700]
    """
    return jnp.tanh(x) * 3


def rooted(x):
    """
    Example inputs:
        x: f32[7]
    """
    with jax.debug_nans(True):
        return jnp.sqrt(x - 50)
'''
)


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "pyproject.toml").write_text(KERNELS, encoding="utf-8")
    (folder / "model.py").write_text(MODULE, encoding="utf-8")
    with neovim(folder, tmp_path_factory.mktemp("neovim"), SETUP) as editor:
        editor.edit(folder / "model.py")
        yield editor


@pytest.fixture(autouse=True)
def one_window(editor: Neovim) -> None:
    editor.lua("vim.cmd('silent! only | edit! model.py')")


def beside(editor: Neovim, *words: str) -> list[str]:
    """The lines of the document beside the source, once it is one with these words."""
    lines: list[str] = editor.until(
        """
        for _, window in ipairs(vim.api.nvim_list_wins()) do
          local buffer = vim.api.nvim_win_get_buf(window)
          if vim.api.nvim_buf_get_name(buffer):match('^jaxsight%-%a+://') then
            local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
            local text = table.concat(lines, '\\n')
            for _, word in ipairs(A) do if not text:find(word, 1, true) then return nil end end
            return lines
          end
        end
        """,
        *words,
    )
    return lines


def lit(editor: Neovim, *, beside: bool) -> list[str]:
    """The lines that are lit, in the document beside or in the source, once there are some."""
    lines: list[str] = editor.until(
        """
        local lit = vim.api.nvim_get_namespaces()['jaxsight.lit']
        local lines = {}
        for _, window in ipairs(vim.api.nvim_list_wins()) do
          local buffer = vim.api.nvim_win_get_buf(window)
          if (vim.api.nvim_buf_get_name(buffer):match('^jaxsight%-%a+://') ~= nil) == A[1] then
            for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, lit, 0, -1, {})) do
              table.insert(lines, vim.api.nvim_buf_get_lines(buffer, mark[2], mark[2] + 1, false)[1])
            end
          end
        end
        return lines
        """,
        beside,
    )
    return lines


def move(editor: Neovim, cursor: str) -> None:
    """Put the cursor somewhere as keys do."""
    editor.place(cursor)
    editor.lua("vim.cmd('doautocmd <nomodeline> CursorMoved')")


def test_hints_are_drawn_without_further_setup(editor: Neovim) -> None:
    editor.until(
        "for _, label in pairs(T.hints()) do if label:match('kernel') then return label end end"
    )


def test_a_jaxpr_opens_beside_and_lights_up_what_belongs_together(editor: Neovim) -> None:
    editor.place("jnp.so|rt")
    editor.lua("vim.cmd('Jaxsight jaxpr')")
    beside(editor, "sort")
    editor.until("return vim.api.nvim_buf_get_name(0):match('model.py$')")
    move(editor, "jnp.so|rt")
    assert any("sort" in line for line in lit(editor, beside=True))

    editor.lua("vim.cmd('wincmd l')")
    editor.lua("vim.fn.search('reduce_sum'); vim.cmd('doautocmd <nomodeline> CursorMoved')")
    assert any("jnp.sum(total" in line for line in lit(editor, beside=False))


def test_a_jaxpr_is_navigated_like_source(editor: Neovim) -> None:
    editor.place("jnp.so|rt")
    editor.lua("vim.cmd('Jaxsight jaxpr')")
    beside(editor, "sort")
    editor.lua("vim.cmd('wincmd l'); vim.fn.search(' = reduce_sum')")
    editor.until("return #vim.lsp.get_clients({ bufnr = 0, name = 'jaxsight' }) > 0")
    # From a use to its equation, and from an equation to Python.
    editor.lua("vim.cmd('normal! $'); vim.lsp.buf.definition()")
    editor.until("return vim.fn.expand('<cword>') ~= '' and vim.fn.col('.') < 10")
    editor.lua("vim.lsp.buf.definition()")
    editor.until("return vim.api.nvim_buf_get_name(0):match('model.py$')")
    assert "jnp." in editor.lua("return vim.api.nvim_get_current_line()")


def test_a_document_follows_the_cursor_to_another_function_and_edits(editor: Neovim) -> None:
    editor.place("jnp.so|rt")
    editor.lua("vim.cmd('Jaxsight jaxpr')")
    beside(editor, "sort")
    move(editor, "jnp.ta|nh")
    beside(editor, "tanh", "f32[7]")
    editor.replace("jnp.tanh(x)", "jnp.cosh(x)")
    beside(editor, "cosh")
    editor.replace("jnp.cosh(x)", "jnp.tanh(x)")
    beside(editor, "tanh")


def test_a_function_is_sourcerized_and_its_gradient_too(editor: Neovim) -> None:
    editor.place("jnp.ta|nh")
    editor.lua("vim.cmd('Jaxsight sourcerize')")
    assert any("def scaled(x)" in line for line in beside(editor, "def scaled"))
    editor.lua("vim.cmd('Jaxsight lax vmap')")
    beside(editor, "lax.tanh", "vmap")


PROGRAM = """\
func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.sine %arg0 : tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


def test_a_program_file_is_shown_as_source(editor: Neovim) -> None:
    editor.lua("vim.fn.writefile(A, 'f.mlir') vim.cmd('edit f.mlir')", *PROGRAM.splitlines())
    editor.until("return #vim.lsp.get_clients({ bufnr = 0, name = 'jaxsight' }) > 0")
    editor.lua("vim.cmd('Jaxsight sourcerize')")
    assert "    return jnp.sin(x)" in beside(editor, "def ", "jnp.sin")


def test_a_failure_becomes_a_repro_which_is_reduced(editor: Neovim) -> None:
    editor.place("jnp.sq|rt")
    editor.lua("vim.cmd('Jaxsight repro')")
    assert "    return jnp.sqrt(x0)" in beside(editor, "def main(", "FloatingPointError")
    editor.lua("vim.cmd('Jaxsight reduce')")
    assert "        jnp.array(-1.0, dtype=jnp.float32),  # x" in beside(editor, "def main(x)")


def test_kernels_show_in_a_floating_window(editor: Neovim) -> None:
    editor.place("jnp.so|rt")
    editor.lua("vim.cmd('Jaxsight kernels')")
    shown = editor.until(
        """
        for _, window in ipairs(vim.api.nvim_list_wins()) do
          if vim.api.nvim_win_get_config(window).relative ~= '' then
            return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\\n')
          end
        end
        """
    )
    assert "normalized" in shown
    assert "launch" in shown


def test_a_function_is_measured_once_the_user_agrees(editor: Neovim) -> None:
    editor.place("jnp.ta|nh")
    editor.lua(
        """
        T.select, T.notify, T.told = vim.ui.select, vim.notify, nil
        vim.ui.select = function(items, options, choose)
          T.asked = options.prompt
          choose(items[2], 2)
        end
        vim.notify = function(words) T.told = words end
        vim.cmd('Jaxsight measure')
        """
    )
    told = editor.until("return T.told")
    assert told.startswith("scaled: ")
    assert " measured on cpu" in told.split("\n")[0]
    assert "Measure `scaled` on this machine's CPU?" in editor.lua("return T.asked")
    editor.lua("vim.ui.select, vim.notify = T.select, T.notify")
    editor.until(
        "for _, label in pairs(T.hints()) do if label:match('⏱ %d+ %%') then return label end end"
    )


def test_a_profile_shows_beside_its_source(editor: Neovim, tmp_path: Path) -> None:
    write(tmp_path / "logs" / "host.xplane.pb", PROGRAMS, host_plane(3), gpu_plane(0, 3))
    editor.lua(f"vim.cmd('Jaxsight profile {tmp_path / 'logs'}')")
    lines = beside(editor, "3 steps of 1.00 ms", "GPU:0 busy 78 %")
    assert any("model.py:4" in line for line in lines)


def test_another_example_set_is_chosen(editor: Neovim) -> None:
    editor.place("jnp.ta|nh")
    editor.lua("vim.cmd('Jaxsight jaxpr')")
    beside(editor, "f32[7]")
    editor.lua("vim.cmd('Jaxsight set long')")
    beside(editor, "f32[700]")


def test_a_target_is_chosen_from_a_list(editor: Neovim) -> None:
    editor.lua(
        """
        T.select = vim.ui.select
        vim.ui.select = function(items, options, choose)
          T.lines = vim.tbl_map(options.format_item, items)
          for _, item in ipairs(items) do
            if item.target == 'cpu:8' then return choose(item) end
          end
        end
        vim.cmd('Jaxsight target')
        """
    )
    lines = editor.until("return T.lines")
    assert "* cpu · this machine · this machine's CPU · compiled by your own jaxlib" in lines
    [tpu] = [line for line in lines if line.startswith("  tpu:v5e · ")]
    assert "TPU v5e · 16 GiB · 0.819 TB/s" in tpu
    editor.until("return require('jaxsight').status():match('· cpu:8$')")
    editor.lua("vim.ui.select = T.select; vim.cmd('Jaxsight target cpu')")
    editor.until("return require('jaxsight').status():match('· cpu$')")


def test_a_compiler_is_installed_only_if_one_agrees(editor: Neovim) -> None:
    editor.lua(
        """
        T.select, T.asked = vim.ui.select, {}
        vim.ui.select = function(items, options, choose)
          table.insert(T.asked, options.prompt)
          choose(items[1], 1) -- the first compiler; then the first answer, which is the safe one
        end
        vim.cmd('Jaxsight install')
        """
    )
    asked = editor.until("return #T.asked > 1 and T.asked")
    assert asked[0] == "Compiler to install"
    assert "Install the compiler for NVIDIA GPUs? pip downloads about 290 MB" in asked[1]
    editor.lua("vim.ui.select = T.select")


def test_tracers_are_restarted(editor: Neovim) -> None:
    editor.lua("vim.cmd('Jaxsight restart')")
    editor.until("return require('jaxsight').status():match('^JAX')")
    editor.place("def sca|led")
    editor.hover("tanh")


def test_outside_of_functions_a_message_says_what_to_do(editor: Neovim) -> None:
    editor.lua("T.told = nil; vim.notify = function(words) T.told = words end")
    editor.place("import jax|.numpy")
    editor.lua("vim.cmd('Jaxsight jaxpr')")
    assert "Place the cursor in a function" in editor.until("return T.told")


def test_words_are_completed(editor: Neovim) -> None:
    assert editor.lua("return vim.fn.getcompletion('Jaxsight ke', 'cmdline')") == ["kernels"]
    assert "value_and_grad" in editor.lua("return vim.fn.getcompletion('Jaxsight lax ', 'cmdline')")


def test_the_health_check_tells_command_and_interpreter(editor: Neovim) -> None:
    editor.until("return require('jaxsight').status():match('^JAX')")
    editor.lua("vim.cmd('checkhealth jaxsight')")
    text = editor.text()
    assert "ERROR" not in text
    assert "jaxsight" in text
    assert "JAX 0." in text
    editor.lua("vim.cmd('bwipeout')")


def test_the_help_has_its_tags(editor: Neovim, tmp_path: Path) -> None:
    tags = REPOSITORY / "neovim" / "doc" / "tags"
    existed = tags.exists()
    editor.lua("vim.cmd('helptags ' .. A[1]); vim.cmd('help :Jaxsight')", str(tags.parent))
    try:
        assert "Jaxsight kernels" in editor.text()
    finally:
        editor.lua("vim.cmd('helpclose')")
        if not existed:
            tags.unlink()
