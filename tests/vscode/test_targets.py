"""What a person who has only the extension sets up: a target and its compiler, and the first shapes
of a file without example inputs. The compiler comes from a folder of packages.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from jaxsight.files import private
from jaxsight.files.locks import try_lock
from tests.compiler.packages import local_index
from tests.vscode.code_server import code_server
from tests.vscode.project import FUSION, make
from tests.vscode.window import Window, window

pytestmark = pytest.mark.slow

PLAIN = """\
import jax.numpy as jnp


def scaled(x, factor=2.0):
    doubled = jnp.sin(x) * factor
    return doubled
"""


VERSIONS = """\
import importlib.metadata, sys
print(importlib.metadata.version("jax"), "py%d.%d" % sys.version_info[:2])
"""


@pytest.fixture(scope="module")
def versions(python: str) -> tuple[str, str]:
    """The versions of JAX and of Python, as folders of compilers have them."""
    run = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True)
    jax, own = run.stdout.split()
    return jax, own


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("targets")


@pytest.fixture(scope="module")
def editor(
    browser: Browser, scratch: Path, python: str, versions: tuple[str, str]
) -> Iterator[Window]:
    variables = {
        **local_index(scratch / "index", versions[0]),
        "JAXSIGHT_COMPILERS": str(scratch / "compilers"),
    }
    (scratch / "compilers").mkdir()
    folder = make(scratch / "project", {"fusion.py": FUSION, "plain.py": PLAIN}, python=python)
    (scratch / "code").mkdir()
    with (
        code_server(scratch / "code", variables=variables) as server,
        window(browser, server.port, folder, folder / "fusion.py") as opened,
    ):
        yield opened


def test_the_status_says_what_is_used_and_changes_it(editor: Window, python: str) -> None:
    editor.sees("def f_sum_jax(x):▣ 2 kernels")
    said = editor.bar("jaxsight: cpu")
    assert f"{python} (" in said
    assert "2 of 3 functions with example inputs" in said
    said = editor.status("target cpu")
    assert "JAX 0." in said
    editor.click("kvec_mesh(|len|(x))")
    editor.command("jaxsight: Show Status")
    rows = editor.page.locator(".quick-input-list .monaco-list-row")
    rows.filter(has_text="Interpreter").filter(has_text=python).wait_for()
    editor.pick("Target")
    rows.filter(has_text="cpu").filter(has_text="current").wait_for()
    editor.leave()


def test_a_target_is_found_by_its_device_and_chosen_without_its_compiler(
    editor: Window, scratch: Path, versions: tuple[str, str]
) -> None:
    editor.command("jaxsight: Choose Target")
    rows = editor.page.locator(".quick-input-list .monaco-list-row")
    rows.filter(has_text="compiler not installed: about 290 MB to download").first.wait_for()
    for group in ("This machine", "GPUs that are not here"):
        editor.page.get_by_text(group, exact=True).first.wait_for()
    editor.page.locator(".quick-input-widget input[type=text]").first.fill("HBM3")
    rows.filter(has_text="NVIDIA H100").filter(has_text="cuda:h100x8").first.wait_for()
    editor.page.keyboard.press("Escape")
    # Another process installs it, so that this installation waits until it is cancelled.
    folder = f"cuda-{'-'.join(versions)}"
    with private.lock_file(scratch / "compilers" / f"{folder}.lock") as lock:
        assert try_lock(lock)
        editor.command("jaxsight: Choose Target")
        editor.pick("cuda:h100")
        agree(editor)
        editor.sees("def f_sum_jax(x):▣ cuda:h100: compiler not installed")
        assert "compiler not installed" in editor.bar("jaxsight: cuda:h100")
        bar = editor.toast("Installing the compiler for NVIDIA GPUs")
        bar.filter(has_text="waiting for another process").wait_for()
        bar.get_by_role("button", name="Cancel", exact=True).click()
        bar.wait_for(state="detached")
    assert not (scratch / "compilers" / folder).exists()


def test_a_compiler_is_installed_from_the_extension_alone(editor: Window) -> None:
    editor.command("jaxsight: Install Compiler")
    editor.pick("NVIDIA GPUs")
    agree(editor)
    editor.toast("Installing the compiler for NVIDIA GPUs")
    editor.sees("def f_sum_jax(x):▣ 2 kernels · temp 512 KiB · h100")
    assert "→" not in editor.line("def f_sum_jax"), "another target is no change of the function"


def agree(editor: Window) -> None:
    """Answer the question whether to install a compiler."""
    question = editor.toast("Install the compiler for NVIDIA GPUs?")
    assert "290 MB" in question.inner_text()
    question.get_by_role("button", name="Install", exact=True).click()


def test_a_file_without_example_inputs_says_what_is_needed_and_gets_shapes(editor: Window) -> None:
    editor.open("plain.py")
    editor.bar("jaxsight: no example inputs")
    editor.status("no function here has example inputs")
    editor.command("jaxsight: What jaxsight Needs")
    editor.pick("Show shapes of a function")
    editor.pick("scaled")
    editor.sees("doubled: ?f32[N,D]")
    editor.status("1 of 1 functions with example inputs, 1 assumed")
    assert "Example inputs" not in "".join(editor.lines()), "nothing is written before it is seen"
