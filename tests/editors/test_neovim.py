"""What a person sees in Neovim: real editor, real server, real JAX."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.editors.neovim import Neovim
from tests.editors.project import MODEL

pytestmark = pytest.mark.slow

CALLER = '''\
from model import clipped


def scaled(x):
    """
    Example inputs:
        x: f32[5]
    """
    y = clipped(x)
    return y
'''


@pytest.fixture
def model(editor: Neovim, project: Path) -> Neovim:
    """The editor with the module open as it is on disk."""
    (project / "model.py").write_text(MODEL, encoding="utf-8")
    editor.lua("vim.cmd('silent! %bwipeout!')")
    editor.edit(project / "model.py")
    editor.hints(": f32[4,8,128,128]")
    return editor


def test_hover_on_a_function_tells_shapes_and_jaxpr(model: Neovim) -> None:
    model.place("def atten|tion")
    shown = model.hover()
    assert "q: f32[4,128,8,64]" in shown
    assert "causal: True" in shown
    assert "-> f32[4,128,8,64]" in shown
    assert "dot_general" in shown
    assert "traced with the first of 2 example sets" in shown


def test_hover_on_an_expression_tells_what_it_is(model: Neovim) -> None:
    model.place("jnp.where(mask, sco|res")
    assert "scores: f32[4,8,128,128]" in model.hover()


@pytest.mark.smoke
def test_shapes_are_drawn_behind_assigned_names(model: Neovim) -> None:
    model.draws(
        {
            "13:scores": ": f32[4,8,128,128]",
            "15:mask": ": bool[128,128]",
            "16:scores": ": f32[4,8,128,128]",
            "17:weights": ": f32[4,8,128,128]",
        }
    )
    model.hints(" not shown: no program, test or notebook uses this file")


def test_a_tracing_error_is_a_diagnostic_at_its_expression(model: Neovim) -> None:
    [shown] = model.until(
        """
        return vim.tbl_map(function(d)
          return { code = d.code, line = d.lnum, from = d.col, to = d.end_col, source = d.source,
                   message = d.message }
        end, vim.diagnostic.get(0))
        """
    )
    line = MODEL.splitlines().index("    if x.sum() > 0:")
    assert (shown["code"], shown["source"]) == ("JX401", "jaxsight")
    assert (shown["line"], shown["from"], shown["to"]) == (line, 7, 18)
    assert "bool" in shown["message"]


def test_a_hint_follows_an_edit_that_changes_a_shape(model: Neovim) -> None:
    model.replace("axis=-1)", "axis=-1)[..., :7]")
    model.replace("bhqk,bkhd->bqhd", "bhqk,bkhd->bhqd")
    assert model.hints(": f32[4,8,128,7]")["17:weights"] == ": f32[4,8,128,7]"


def test_a_syntax_error_keeps_the_hints_marked(model: Neovim) -> None:
    labels = model.hints()
    model.replace("weights, v)", "weights, v")
    model.draws({after: label.replace(": ", ": ~") for after, label in labels.items()})
    model.place("jnp.where(mask, sco|res")
    assert "stale" in model.hover("stale")
    model.replace("weights, v", "weights, v)")
    model.hover(says_not="stale")
    model.place("def atten|tion")
    model.draws(labels)


def test_a_trace_that_fails_leaves_only_hints_that_can_still_be_true(model: Neovim) -> None:
    model.replace("jnp.tril(", "jnp.trill(")
    model.draws({"13:scores": ": f32[4,8,128,128]"})
    model.replace("jnp.trill(", "jnp.tril(")
    model.replace("    if causal:", "    half\n    if causal:")
    marked = ": ~f32[4,8,128,128]"
    model.draws(
        {
            "13:scores": ": f32[4,8,128,128]",
            "16:mask": ": ~bool[128,128]",
            "17:scores": marked,
            "18:weights": marked,
        }
    )


def test_a_function_is_shown_as_another_file_calls_it(model: Neovim, project: Path) -> None:
    train = project / "train.py"
    train.write_text(CALLER, encoding="utf-8")
    model.edit(train)
    model.hints(": f32[5]")
    model.edit(project / "model.py")
    model.place("def clip|ped")
    assert "traced as called in" in model.hover("train.py")
    assert ": f32[]" in model.hints(": f32[]").values()
    train.unlink()


def test_example_inputs_are_added_by_a_code_action(model: Neovim) -> None:
    model.place("def clip|ped")
    model.lua(
        """
        vim.ui.select = function(items, options, choose) choose(items[1], 1) end
        vim.lsp.buf.code_action({
          filter = function(action) return action.title:match('Add example inputs') end,
          apply = true,
        })
        """
    )
    model.until(
        "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):match('x: f32.N, D.')"
    )
    section = model.text().partition("def clipped")[2].partition("norm =")[0]
    assert "Example inputs:" in section
    assert "x: f32[" in section


def test_completion_in_a_section_knows_arguments_and_dtypes(model: Neovim) -> None:
    model.replace("        x: f32[B]", "        ")
    arguments = _completions(model, '"""\n    Example inputs:\n        |\n')
    assert "x" in arguments
    model.replace('"""\n    Example inputs:\n        \n', '"""\n    Example inputs:\n        x: \n')
    dtypes = _completions(model, '"""\n    Example inputs:\n        x: |\n')
    assert {"f32", "bf16", "i32"} <= set(dtypes)


def _completions(editor: Neovim, cursor: str) -> list[str]:
    editor.place(cursor)
    labels: list[str] = editor.until(
        """
        local params = vim.lsp.util.make_position_params(0, 'utf-8')
        local answers = vim.lsp.buf_request_sync(0, 'textDocument/completion', params, 5000)
        local labels = {}
        for _, answer in pairs(answers or {}) do
          for _, item in ipairs(answer.result and (answer.result.items or answer.result) or {}) do
            table.insert(labels, vim.trim((item.label:gsub(':$', ''))))
          end
        end
        return labels
        """
    )
    return labels


def test_a_lens_chooses_another_example_set(model: Neovim) -> None:
    model.lua(
        """
        vim.ui.select = function(items, options, choose)
          for index, item in ipairs(items) do
            local title = options and options.format_item and options.format_item(item) or item
            if title == 'short' or title.title == 'short' then return choose(item, index) end
          end
        end
        vim.fn.inputlist = function(lines)
          for index, line in ipairs(lines) do if line:match('short') then return index - 1 end end
          return 0
        end
        vim.lsp.codelens.refresh({ bufnr = 0 })
        """
    )
    titles = model.until(
        "return vim.tbl_map(function(l) return l.command.title end, vim.lsp.codelens.get(0))"
    )
    assert "example inputs (1 of 2)" in titles
    model.lua(
        """
        local client = vim.lsp.get_clients({ bufnr = 0, name = 'jaxsight' })[1]
        for _, lens in ipairs(vim.lsp.codelens.get(0)) do
          if lens.command.command == 'jaxsight.chooseSet' then
            client:exec_cmd(lens.command, { bufnr = vim.api.nvim_get_current_buf() })
            return
          end
        end
        """
    )
    hints = model.hints(": f32[1,8,16,16]")
    assert hints["15:mask"] == ": bool[16,16]"
    # The choice outlives the buffer.
    model.lua(
        """
        local arguments = { vim.uri_from_bufnr(0), 'attention', '' }
        vim.lsp.get_clients({ bufnr = 0, name = 'jaxsight' })[1]:exec_cmd(
          { title = '', command = 'jaxsight.chooseSet', arguments = arguments })
        """
    )
    model.hints(": f32[4,8,128,128]")


def test_proposed_inputs_show_shapes_and_are_kept(model: Neovim) -> None:
    run = """
    local client = vim.lsp.get_clients({ bufnr = 0, name = 'jaxsight' })[1]
    local arguments = { vim.api.nvim_buf_get_name(0), 'clipped' }
    local command = { title = A[1], command = A[1], arguments = arguments }
    client:exec_cmd(command, { bufnr = vim.api.nvim_get_current_buf() })
    """
    model.place("def clip|ped")
    model.lua(run, "jaxsight.showProposed")
    hints = model.hints(": ?f32[]")
    assert hints["22:norm"] == ": ?f32[]"
    assert "Example inputs" not in model.text().partition("def clipped")[2].partition("norm =")[0]
    model.lua(run, "jaxsight.keepProposed")
    model.until(
        "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):match('x: f32.N, D.')"
    )


def _installed(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        pytest.skip(f"{module} is not installed here")
    return Path(spec.origin)


def test_a_copy_of_a_library_file_has_examples_from_the_project(
    editor: Neovim, project: Path
) -> None:
    shutil.copyfile(_installed("optax.losses._regression"), project / "losses.py")
    editor.edit(project / "losses.py")
    editor.place("|errors = (pred")
    assert "errors" in {after.partition(":")[2] for after in editor.hints(": f32[8,3]")}
    editor.place("def huber|_loss")
    assert "huber_loss(predictions: f32[8,3], targets: f32[8,3]" in editor.hover()


@pytest.mark.parametrize(
    ("module", "function", "assigned", "shape"),
    [
        ("optax.losses._regression", "huber_loss", "errors| = (predictions", "f32[8,5]"),
        ("jax._src.nn.functions", "glu", "x1|, x2 = jnp.split(x_arr", "f32[8,8]"),
    ],
)
def test_an_installed_library_is_read_with_examples_from_the_project(
    editor: Neovim, module: str, function: str, assigned: str, shape: str
) -> None:
    editor.edit(_installed(module))
    editor.place(assigned)
    hints = editor.hints(f": {shape}")
    name = assigned.partition("|")[0]
    assert [label for after, label in hints.items() if after.endswith(f":{name}")] == [f": {shape}"]
    assert f"{name}: {shape}" in editor.hover()
    editor.place(f"def {function}|(")
    assert "traced with its example inputs" in editor.hover()
