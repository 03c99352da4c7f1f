"""The source library by itself: what its page shows, and that it needs JAX and NumPy alone."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import subprocess
import sys
import textwrap
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

import jax
import jax.numpy as jnp
import pytest

import jaxsight_source
from jaxsight_source import api
from jaxsight_source.inversion import transform
from jaxsight_source.jaxprs import base, forward
from jaxsight_source.jaxprs.same import comparison
from jaxsight_source.options import SourceKeywords, SourceOptions

LIBRARY = Path(jaxsight_source.__file__).parent
EXAMPLE = Path(__file__).parents[2] / "examples" / "sliding_window.py"
INSTALLED = ("jax", "jaxlib", "ml_dtypes", "numpy", "opt_einsum", "scipy")
"""JAX, NumPy, and what JAX itself cannot do without."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has the library, JAX and NumPy, and no other package."""
    folder = tmp_path_factory.mktemp("environment")
    (folder / "jaxsight_source").symlink_to(LIBRARY)
    for name in INSTALLED:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        (folder / name).symlink_to(package)
        libraries = package.with_name(f"{name}.libs")
        if libraries.exists():
            (folder / libraries.name).symlink_to(libraries)
    return folder


def run_in(environment: Path, code: str) -> str:
    """Run code in a Python that has nothing but the environment; return what it printed."""
    head = f"import sys; sys.path.append({str(environment)!r})\n"
    command = [sys.executable, "-I", "-S", "-c", head + textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_gradient_is_written_where_nothing_but_jax_and_numpy_is_installed(
    environment: Path,
) -> None:
    printed = run_in(
        environment,
        f"""
        import runpy
        import jax, jax.numpy as jnp
        from jaxsight_source import sourcerize

        grad_fn = runpy.run_path({str(EXAMPLE)!r})["grad_fn"]
        weights = jnp.ones((2, 2, 16, 32), jnp.bfloat16)
        args = (weights, weights), jnp.ones((4, 128, 32), jnp.bfloat16)
        source = sourcerize(grad_fn)(*args)
        print(source)
        assert source.proofs == ("jaxpr",), source.proofs  # it is too large to be run
        exec(source, namespace := {{}})
        written = namespace["grad_fn"]
        assert str(jax.jit(written).lower(*args)) and len(written(*args)) == 3
        others = {{name.partition(".")[0] for name in sys.modules}}
        assert not others & {{"jaxsight", "pygls", "rich", "jaxsight_repro", "jaxsight_dataset"}}
        """,
    )
    assert "def grad_fn(params, x):" in printed
    ast.parse(printed)


def test_options_and_what_reads_files_import_no_jax(environment: Path) -> None:
    run_in(
        environment,
        """
        import jaxsight_source.errors
        import jaxsight_source.options
        from jaxsight_source import SourceOptions

        assert SourceOptions(style="pretty").folds
        assert not {"jax", "numpy"} & sys.modules.keys()
        """,
    )


def test_every_public_name_can_be_imported() -> None:
    assert len(jaxsight_source.__all__) <= 10
    assert dir(jaxsight_source) == jaxsight_source.__all__
    for name in jaxsight_source.__all__:
        assert getattr(jaxsight_source, name).__doc__ is not None
    with pytest.raises(AttributeError, match="has no attribute 'sourceror'"):
        jaxsight_source.sourceror  # noqa: B018


def test_keywords_are_the_options() -> None:
    own = {"user_names", "fold", "share"}
    hints = get_type_hints(SourceOptions)
    public = {each.name: hints[each.name] for each in fields(SourceOptions) if each.name not in own}
    assert get_type_hints(SourceKeywords) == public


def test_options_are_passed_at_once_or_by_keyword() -> None:
    options = SourceOptions("pretty", "doubled", run=False)
    source = jaxsight_source.sourcerize(lambda x: x * 2, options)(1.0)
    assert "def doubled(x):" in source
    assert source.proofs == ("jaxpr",)
    again = jaxsight_source.sourcerize(lambda x: x * 2, options, name="twice")(1.0)
    assert "def twice(x):" in again
    with pytest.raises(TypeError, match="stile"):
        jaxsight_source.sourcerize(lambda x: x, stile="pretty")  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", ["jaxpr", "traced", "lowered", "text", "program"])
def test_programs_are_read_from_anything(kind: str) -> None:
    jitted = jax.jit(lambda x: jnp.sin(x) * 2)
    given = {
        "jaxpr": lambda: jax.make_jaxpr(jitted)(1.0),
        "traced": lambda: jitted.trace(1.0),
        "lowered": lambda: jitted.lower(1.0),
        "text": lambda: jitted.lower(1.0).as_text(),
        "program": lambda: jaxsight_source.program_of(jitted.lower(1.0)),
    }[kind]()
    program = jaxsight_source.program_of(given)
    assert "sin" in program.text("jaxpr")
    assert "stablehlo.sine" in program.text("stablehlo")
    assert "HloModule" in program.text("hlo")
    assert program.text("graph").startswith("digraph")
    assert "sin(" in jaxsight_source.sourcerize(given)


def test_a_function_is_no_program() -> None:
    with pytest.raises(jaxsight_source.SourceError, match="expected a program, got function"):
        jaxsight_source.program_of(lambda x: x)  # type: ignore[arg-type]


def test_the_page_shows_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # it writes a module, and imports it
    monkeypatch.syspath_prepend(str(tmp_path))
    page = str(LIBRARY / "README.md")
    failed, attempted = doctest.testfile(page, module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0, capsys.readouterr().out
    assert attempted > 15
    sys.modules.pop("grad_loss")


@pytest.mark.parametrize("module", [api, base, comparison, forward, transform])
def test_examples_of_public_functions_give_what_they_show(
    module: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"jax": jax, "jnp": jnp}
    failed, attempted = doctest.testmod(module, extraglobs=names)
    assert failed == 0, capsys.readouterr().out
    assert attempted > 0
