"""Whole notebooks, executed by nbclient and converted by nbconvert."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CELLS = (HERE / "fusion.txt").read_text(encoding="utf-8").split("# %%\n")[1:]
PAGE = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")


def executed(cells: list[str], folder: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; raises where a cell fails."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    client = NotebookClient(
        notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def displayed(cell: nbformat.NotebookNode) -> list[dict[str, str]]:
    return [each["data"] for each in cell["outputs"] if "data" in each]


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "server"))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")


@pytest.mark.slow
def test_a_notebook_about_fusion_shows_what_kernels_knows(tmp_path: Path) -> None:
    notebook = executed(CELLS, tmp_path)
    shown = 0
    for cell in notebook["cells"]:
        pictures = displayed(cell)
        if cell["source"].startswith("%%kernels"):
            names = [each["text/plain"].split(":", 1)[0] for each in pictures]
            assert names == ["recomputed", "stored"]
            continue
        printed = "".join(
            each["text"] for each in cell["outputs"] if each.get("name") == "stdout"
        ).split("\n\n\n")
        drawn = [each for each in printed if "CPU, compiled on the device" in each]
        assert bool(drawn) == bool(re.search(r"^( {4})?show\(", cell["source"], re.MULTILINE))
        for picture, expected in zip(pictures, drawn, strict=True):
            assert picture["text/plain"].strip() == expected.strip()
            assert picture["image/svg+xml"].startswith("<svg")
            assert 'sandbox="allow-scripts"' in picture["text/html"]
            shown += 1
    assert shown == 23
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert page.count("jaxsight-frame") >= shown


def test_examples_of_the_documentation_run(tmp_path: Path) -> None:
    cells = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(cells) == 3
    cells[2] = cells[2].replace("-t cuda:h100", "-t cpu").replace("%sweep", "%sweep -t cpu")
    show = "import jaxsight\n%load_ext jaxsight\njax.config.update('jax_platforms', 'cpu')\n"
    prepared = [cells[0], cells[1], f"import jax\n{show}{cells[2]}"]
    prepared = [re.sub(r"(show\([^\n]*, x)", r"\1, target='cpu'", cell) for cell in prepared]
    notebook = executed(prepared, tmp_path)
    assert [bool(displayed(cell)) for cell in notebook["cells"]] == [True, True, True]
    assert (tmp_path / "normalized.html").stat().st_size > 500_000
    assert (tmp_path / "normalized.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_extension_loads_without_packages_of_the_server(tmp_path: Path) -> None:
    code = (
        "import sys\n%load_ext jaxsight\nimport jax.numpy as jnp\nimport jaxsight\n"
        "jaxsight.show(jnp.sin, jnp.ones(8), target='cpu')\n"
        "servers = {'pygls', 'lsprotocol', 'typer', 'rich', 'platformdirs', 'markdown_it'}\n"
        "print(sorted(servers & set(sys.modules) - before))"
    )
    before = "import sys, jax, IPython\nbefore = set(sys.modules)"
    notebook = executed([before, code], tmp_path)
    (printed,) = [each["text"] for each in notebook["cells"][1]["outputs"] if "text" in each]
    assert printed == "[]\n"
    assert sys.version_info >= (3, 11)
