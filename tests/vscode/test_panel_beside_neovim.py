"""The panel in a browser beside Neovim: a real editor, a real page, and the server between them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.editors.neovim import REPOSITORY, Neovim, missing, neovim

SETUP = f"""
vim.opt.runtimepath:prepend({str(REPOSITORY / "neovim")!r})
vim.ui.open = function(url) vim.g.opened = url return true end
"""

MODEL = '''\
import jax.numpy as jnp


def normalized(x):
    """
    Example inputs:
        x: f32[64, 32]
    """
    total = jnp.sort(x, axis=1)
    return x / jnp.sum(total, axis=1, keepdims=True)


def scaled(x):
    """
    Example inputs:
        x: f32[7]
    """
    return jnp.tanh(x) * 3
'''


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory, python: str) -> Iterator[Neovim]:
    binaries = REPOSITORY / ".venvs" / "neovim" / "bin"
    os.environ["PATH"] = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    assert not missing(), missing()
    folder = tmp_path_factory.mktemp("beside")
    settings = f'[tool.jaxsight]\npython = {python!r}\ntarget = "cpu"\npropose-inputs = false\n'
    (folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    scratch = tmp_path_factory.mktemp("neovim")
    with neovim(folder, scratch, SETUP, python=python, JAXSIGHT_TRUST="always") as editor:
        editor.edit(folder / "model.py")
        yield editor


@pytest.fixture(scope="module")
def page(editor: Neovim, browser: Browser) -> Iterator[Page]:
    """The page that `:Jaxsight panel` opens, with the cursor in the first function."""
    editor.place("jnp.so|rt")
    editor.lua("vim.cmd('Jaxsight panel')")
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(editor.until("return vim.g.opened"))
    yield page
    page.close()


def move(editor: Neovim, cursor: str) -> None:
    """Put the cursor somewhere as keys do."""
    editor.place(cursor)
    editor.lua("vim.cmd('doautocmd <nomodeline> CursorMoved')")


def test_the_page_follows_the_cursor(editor: Neovim, page: Page) -> None:
    page.locator("h1", has_text="normalized").wait_for()
    move(editor, "jnp.ta|nh")
    page.locator("h1", has_text="scaled").wait_for()
    assert page.title() == "scaled – jaxsight"
    move(editor, "jnp.so|rt")
    page.locator("h1", has_text="normalized").wait_for()
    page.locator(".node.lit", has_text="sort").wait_for()


def test_a_click_leads_to_the_source(editor: Neovim, page: Page) -> None:
    move(editor, "norma|lized")
    page.locator(".node:visible", has_text="jnp.sort").click()
    editor.until("return vim.api.nvim_get_current_line():match('jnp.sort')")
    lit = """
    local namespace = vim.api.nvim_get_namespaces()['jaxsight.panel']
    return vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, {})
    """
    assert editor.until(lit)
    move(editor, "norma|lized")
    assert editor.lua(lit) == []


def test_an_edit_changes_the_page(editor: Neovim, page: Page) -> None:
    move(editor, "jnp.ta|nh")
    page.locator(".node:visible", has_text="jnp.tanh").wait_for()
    editor.replace("jnp.tanh(x) * 3", "jnp.cosh(x) * 3")
    page.locator(".node:visible", has_text="jnp.cosh").wait_for()


def test_the_page_says_that_the_server_has_ended(editor: Neovim, page: Page) -> None:
    editor.lua("for _, client in ipairs(vim.lsp.get_clients()) do client:stop(true) end")
    page.get_by_text("The server does not answer any more").wait_for()
