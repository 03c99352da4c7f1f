"""Consent in Neovim and Emacs: of a folder with an interpreter of its own nothing runs before its
user has decided.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jaxsight.files.ownership import WRITABLE
from tests.editors import emacs as in_emacs
from tests.editors.neovim import REPOSITORY, Neovim, documented_setup, missing, neovim
from tests.editors.project import planted

pytestmark = pytest.mark.slow

PLUGIN = f"vim.opt.runtimepath:prepend({str(REPOSITORY / 'neovim')!r})\n"
# A person's messages are kept, for the tests to see.
NOTIFIED = """\
vim.o.swapfile = false
notified = {}
vim.notify = function(words) table.insert(notified, words) end
"""
TRUST = "Trust this folder"

Opening = Callable[..., AbstractContextManager[Neovim]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cloned"


@pytest.fixture
def mark(folder: Path) -> Path:
    """What the folder's interpreter leaves when it runs."""
    return planted(folder)


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    """The environment of a person who has decided nothing yet, and whose decisions are kept."""
    return {
        "JAXSIGHT_TRUST": "ask",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        WRITABLE: str(tmp_path),  # where the interpreter leaves its mark
    }


@pytest.fixture
def opened(
    folder: Path, mark: Path, state: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Opening:
    """Opens the folder's module in a Neovim of its own, as the same person each time; with the
    plugin, or set up otherwise.
    """
    if reason := missing():
        pytest.skip(reason)

    @contextmanager
    def opened(setup: str = PLUGIN) -> Iterator[Neovim]:
        scratch = tmp_path_factory.mktemp("neovim")
        with neovim(folder, scratch, NOTIFIED + setup, **state) as editor:
            editor.edit(folder / "model.py")
            yield editor

    return opened


def choosing(editor: Neovim, title: str) -> None:
    """From now on a person chooses this action from lists; without a title they dismiss them."""
    editor.lua(
        """
        asked = {}
        vim.ui.select = function(items, options, choose)
          table.insert(asked, options.prompt)
          for _, item in ipairs(items) do
            if options.format_item(item) == A[1] then return choose(item) end
          end
          choose(nil)
        end
        """,
        title,
    )


def test_neovim_runs_a_folder_once_it_is_trusted_and_remembers_it(
    opened: Opening, mark: Path, folder: Path
) -> None:
    with opened() as editor:
        assert ":Jaxsight trust" in editor.until("return notified[1]")
        # What somebody types meanwhile is text, and no answer.
        editor.keys("O1<CR>2<CR>3<CR><CR><Esc>u")
        editor.place("def dou|bled")
        assert "not trusted" in editor.hover()
        assert editor.lua("return require('jaxsight').status()") == "jaxsight: untrusted"
        assert not mark.exists()
        # The list is Neovim's own: numbers, and Enter.
        titles = editor.lua(
            """
            return vim.tbl_map(function(action) return action.title end,
                               require('jaxsight.trust').waiting()[1].actions)
            """
        )
        editor.keys(f":Jaxsight trust<CR>{titles.index(TRUST) + 1}<CR>")
        editor.draws({"9:result": ": f32[3]"})
        assert mark.exists()
    with opened() as editor:
        editor.draws({"9:result": ": f32[3]"})
        assert not editor.lua("return notified")


def test_neovim_runs_nothing_after_no_until_it_is_asked_again(opened: Opening, mark: Path) -> None:
    with opened() as editor:
        editor.until("return notified[1]")
        choosing(editor, "No")
        editor.lua("vim.cmd('Jaxsight trust')")
        (question,) = editor.until("return asked")
        assert "cloned" in question
        assert ".venv/bin/python" in question
        editor.replace("x * 2", "x * 3")
        editor.place("def dou|bled")
        assert "not trusted" in editor.hover()
        assert not mark.exists()

        choosing(editor, "Once")
        editor.until(
            "vim.cmd('Jaxsight trust') return vim.wait(2000, function() return #asked > 0 end)"
        )
        editor.draws({"9:result": ": f32[3]"})
        assert mark.exists()
    mark.unlink()
    with opened() as editor:
        editor.until("return notified[1]")
        assert not mark.exists()


def test_neovim_goes_on_waiting_where_the_question_is_dismissed(
    opened: Opening, mark: Path
) -> None:
    with opened() as editor:
        editor.until("return notified[1]")
        choosing(editor, "")
        editor.lua("vim.cmd('Jaxsight trust')")
        assert len(editor.until("return asked")) == 1
        assert not mark.exists()
        editor.lua("vim.cmd('checkhealth jaxsight')")
        assert ":Jaxsight trust" in editor.text()
        editor.lua("vim.cmd('bwipeout')")
        choosing(editor, TRUST)
        editor.lua("vim.cmd('Jaxsight trust')")
        editor.draws({"9:result": ": f32[3]"})


def test_neovim_as_documented_runs_a_folder_once_it_is_trusted_in_a_terminal(
    opened: Opening, folder: Path, mark: Path, state: dict[str, str]
) -> None:
    with opened(documented_setup()) as editor:
        assert "Do you trust this folder?" in editor.until("return notified[1]")
        editor.keys("O1<CR>2<CR>3<CR><CR><Esc>u")
        editor.place("def dou|bled")
        assert "not trusted" in editor.hover()
        assert not mark.exists()
        subprocess.run(
            [sys.executable, "-m", "jaxsight", "trust", folder],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "server"), **state},
            check=True,
        )
        assert not mark.exists()
        editor.replace("x * 2", "x * 3")
        editor.draws({"9:result": ": f32[3]"})
        assert mark.exists()


def test_emacs_runs_a_folder_once_it_is_trusted_and_remembers_it(
    folder: Path, mark: Path, state: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if reason := in_emacs.missing():
        pytest.skip(reason)
    homes = (tmp_path_factory.mktemp("home") for _ in count())

    def seen(expected: str, typed: str | None = None) -> dict[str, Any]:
        asks = {} if typed is None else {"ASKS": "1"}
        return in_emacs.emacs(
            "trust.el", folder, next(homes), typed=typed or "", EXPECTED=expected, **asks, **state
        )

    for typed in ("", "No\n"):
        (question,) = seen("not trusted", typed)["questions"]
        assert ".venv/bin/python" in question
        assert not mark.exists()
    seen("-> f32[3]", f"{TRUST}\n")
    assert mark.exists()
    assert not seen("-> f32[3]")["questions"]
