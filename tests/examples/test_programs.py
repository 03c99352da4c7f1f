"""Which programs reach a file's functions: found in its text and in those that import it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jaxsight.examples.programs import ranking
from jaxsight.examples.programs.entries import entries_in
from jaxsight.examples.programs.ranking import imports_in, paths_of
from jaxsight.queries.dry_runs.project_files import ProgramFiles
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.wire.messages.inputs import EntryPoint
from tests.hostile import TEXTS

TWICE = ["/p/pkg/models/f", "/p/pkg/models", "/p/pkg/models/g", "/p/pkg/models"]
MODELS = "import jax.numpy as jnp\n\ndef f(x):\n    return jnp.sin(x)\n"


def programs(
    root: Path,
    files: dict[str, str],
    opened: dict[str, str] | None = None,
    of: str = "models.py",
    index: ProgramFiles | None = None,
) -> list[tuple[str, str]]:
    """Return the file and the function of each program; `…` for one with a text of its own."""
    found = entry_points(root, files, opened, of, index)
    return [(os.path.relpath(p.file, root), p.function or "…" * bool(p.text)) for p in found]


def entry_points(
    root: Path,
    files: dict[str, str],
    opened: dict[str, str] | None = None,
    of: str = "models.py",
    index: ProgramFiles | None = None,
) -> tuple[EntryPoint, ...]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    texts_in_editor = {str(root / name): text for name, text in (opened or {}).items()}
    path = str(root / of)
    text = texts_in_editor.get(path) or Path(path).read_text()
    files_of, outside = index or ProgramFiles(), ExampleSettings({}, {})
    return files_of.programs(path, text, str(root), texts_in_editor, {}, outside)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import models", ["/p/models"]),
        ("import a, models as m", ["/p/a", "/p/models"]),
        ("def f():\n    import pkg.models", ["/p/pkg/models"]),
        ("from pkg import models", ["/p/pkg/models", "/p/pkg"]),
        ("from pkg.models import (\n    f,  # a (note)\n    g as h,\n)", TWICE),
        ("from . import models", ["/p/models", "/p"]),
        ("from .models import f", ["/p/models/f", "/p/models"]),
        ("from ..lib.models import *", ["/lib/models"]),
        ("from ....models import f", []),
        ("text = 'we import models'", []),
    ],
)
def test_imports_are_places_of_files(text: str, expected: list[str]) -> None:
    found = [p for i in imports_in(text) for p in paths_of(i, "/p/main.py", ("/p",))]
    assert found == expected


def test_a_program_that_a_link_leads_to_is_not_run(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "project"
    test = "import models\n\ndef test_f():\n    models.f(1)\n"
    for folder in (elsewhere, root):
        folder.mkdir()
    (elsewhere / "models_test.py").write_text(test)
    (root / "models_test.py").symlink_to(elsewhere / "models_test.py")
    (root / "tests").symlink_to(elsewhere)
    assert programs(root, {"models.py": MODELS, "test_models.py": test}) == [
        ("test_models.py", "test_f")
    ]


def test_own_programs_come_first_then_tests_scripts_notebooks_and_documents(
    tmp_path: Path,
) -> None:
    notebook = {"cells": [{"cell_type": "code", "source": ["import models\n", "models.f(1)"]}]}
    files = {
        "models.py": MODELS + "\nif __name__ == '__main__':\n    f(jnp.ones(3))\n",
        "demo.ipynb": json.dumps(notebook),
        "README.md": "# Use\n\n```python\nfrom models import f\nf(1)\n```\n",
        "main.py": "import models\n\nif __name__ == '__main__':\n    models.f(1)\n",
        "tests/test_all.py": "import models\n\ndef test_it():\n    models.f(2)\n",
        "models_test.py": "import models\n\ndef test_f():\n    models.f(3)\n",
        "other.py": "import jax\n\nif __name__ == '__main__':\n    jax.jit(f)\n",
        "library.py": "from models import f\n\ndef g(x):\n    return f(x)\n",
    }
    assert programs(tmp_path, files) == [
        ("models.py", ""),
        ("models_test.py", "test_f"),
        ("tests/test_all.py", "test_it"),
        ("main.py", ""),
        ("demo.ipynb", "…"),
        ("README.md", "…"),
    ]


def test_programs_reach_a_file_through_others_the_nearest_first(tmp_path: Path) -> None:
    files = {
        "models.py": MODELS,
        "train.py": "from models import f\n\ndef train(config):\n    f(config.x)\n",
        "main.py": "from absl import app\nimport train\n\ndef main(argv):\n    train.train(1)\n\n"
        "if __name__ == '__main__':\n    app.run(main)\n",
        "near.py": "from models import f\n\ndef demo():\n    f(1)\n",
    }
    assert programs(tmp_path, files) == [("near.py", "demo"), ("main.py", "")]


def test_files_of_one_name_in_other_folders_are_others(tmp_path: Path) -> None:
    files = {
        "a/models.py": MODELS,
        "b/models.py": MODELS,
        "a/main.py": "import models\nmodels.f(1)\n",
        "b/main.py": "import models\nmodels.f(1)\n",
        "b/deep/run.py": "from b import models\nmodels.f(1)\n",
        "pkg/__init__.py": "",
        "pkg/use.py": "from ..a.models import f\nf(1)\n",
    }
    assert programs(tmp_path, files, of="a/models.py") == [("a/main.py", ""), ("pkg/use.py", "")]


def test_a_package_is_imported_by_its_folder_and_from_src(tmp_path: Path) -> None:
    files = {
        "src/pkg/__init__.py": MODELS,
        "src/pkg/models.py": MODELS,
        "tests/test_pkg.py": "import pkg\n\ndef test_pkg():\n    pkg.f(1)\n",
        "tests/test_models.py": "from pkg.models import f\n\ndef test_f():\n    f(1)\n",
    }
    of_package = programs(tmp_path, files, of="src/pkg/__init__.py")
    assert of_package == [("tests/test_pkg.py", "test_pkg")]
    (entry,) = entry_points(tmp_path, files, of="src/pkg/models.py")
    assert (entry.function, entry.module) == ("test_f", "test_models")


def test_the_editor_s_text_counts_not_that_on_disk(tmp_path: Path) -> None:
    files = {"models.py": MODELS, "main.py": "import models\nmodels.f(1)\n"}
    index = ProgramFiles()
    assert programs(tmp_path, files, index=index) == [("main.py", "")]
    assert programs(tmp_path, files, {"main.py": "import jax\n"}, index=index) == []
    assert programs(tmp_path, files, index=index) == [("main.py", "")]


def test_tests_that_use_other_names_come_before_those_that_repeat() -> None:
    text = (
        "class LayerTest(absltest.TestCase):\n"
        "  def setUp(self): ...\n"
        "  def test_a(self): models.A()\n"
        "  def test_a_again(self): models.A()\n"
        "  @parameterized.parameters(1, 2)\n"
        "  def test_many(self, n): models.C(n)\n"
        "  def test_fixture(self, tmp_path): models.D()\n"
        "  def test_b(self): models.B()\n"
    )
    names = [name.rpartition(".")[2] for name in entries_in(text, frozenset({"models"})).tests]
    assert names == ["test_a", "test_b", "test_a_again", "test_many"]


@pytest.mark.parametrize(
    ("text", "acts", "mains", "others"),
    [
        ("def main(argv): ...", False, ("main",), ()),
        ("def main(x): ...", False, (), ()),
        ("def f(x): ...\ndef demo():\n    f(1)", False, (), ("demo",)),
        ("def f(x): ...\ndef get_config():\n    f(1)", False, (), ()),
        ("def f(x): ...\ny = f(1)", True, (), ()),
        ("def f(x): ...\nfor i in range(3):\n    f(i)", True, (), ()),
        (
            "def f(x): ...\njax.config.update('a', 1)\nflags.DEFINE_string('a', '', '')",
            False,
            (),
            (),
        ),
        ("import jax\nx = jax.numpy.ones(3)", True, (), ()),  # nothing but statements
        ("def f(:", False, (), ()),
    ],
)
def test_programs_begin_at_statements_main_and_functions_without_arguments(
    text: str, acts: bool, mains: tuple[str, ...], others: tuple[str, ...]
) -> None:
    found = entries_in(text)
    assert (found.acts, found.mains, found.others) == (acts, mains, others)


def test_lines_of_documents_and_doctests_are_kept() -> None:
    document = "# Title\n```python\nf(1)\n```\n~~~\nno\n~~~\n```py\nf(2)\n"
    assert ranking.code_of_markdown(document).split("\n") == ["", "", "f(1)", "", *4 * [""], "f(2)"]
    doctest = (
        'def f(x):\n    """\n    >>> y = (1,\n    ...      2)\n    (1, 2)\n    ... no\n    """'
    )
    assert ranking.code_of_doctests(doctest).split("\n") == ["", "", "y = (1,", "     2)"]


def test_a_doctest_of_another_function_is_a_program(tmp_path: Path) -> None:
    text = f'{MODELS}\ndef g():\n    """\n    >>> f(jnp.ones(3))\n    """\n'
    (entry,) = entry_points(tmp_path, {"models.py": text})
    lines = entry.text.split("\n")
    assert (lines[0], entry.line) == ("f(jnp.ones(3))", 7)


def test_magics_of_a_notebook_are_left_out() -> None:
    cells = ["%matplotlib inline\nimport models", "%%bash\nrm x", "%%time\nmodels.f(1)", "f?"]
    text = json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})
    # `%%time` leaves the number of statements that it times.
    statements = [line for line in ranking.code_of_notebook(text).split("\n") if line]
    assert statements == ["import models", "0 or 1", "models.f(1)"]


@pytest.mark.parametrize("text", ["{", "{}", '{"cells": 3}', '{"cells": [3, {}]}', "[" * 9999])
def test_a_broken_notebook_has_no_program(text: str) -> None:
    assert ranking.code_of_notebook(text if text.startswith("{") else "{" + text) == ""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_makes_it_fail(text: str, tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "main.py").write_text(f"import models\n{text}", encoding="utf-8", errors="replace")
    entries_in(text)
    programs(tmp_path, {})
