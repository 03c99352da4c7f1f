"""The magics of `%load_ext jaxsight`, in IPython's own shell."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import jaxsight

CODE = """\
import jax, jax.numpy as jnp
def f(x, n=2):
    y = jnp.sin(x) * n
    return y + jnp.sum(y, axis=0)
x = jnp.ones((64, 32))
jitted = jax.jit(f)
"""


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    shell.run_cell(CODE, store_history=True)
    shell.run_line_magic("load_ext", "jaxsight")
    yield shell
    shell.run_line_magic("unload_ext", "jaxsight")
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, cell: str) -> tuple[str, list[dict[str, str]]]:
    """What a cell prints, and what it displays."""
    with capture_output() as captured:
        shell.run_cell(cell)
    return captured.stdout + captured.stderr, [each.data for each in captured.outputs]


def test_kernels_shows_what_jaxsight_kernels_knows(shell: InteractiveShell) -> None:
    _, (shown,) = run(shell, "%kernels -t cpu -w 400 f(x, n=3)")
    names = shell.user_ns
    expected = str(jaxsight.kernels(names["f"], target="cpu")(names["x"], n=3))
    assert shown["text/plain"] == expected
    assert "In [1]:3" in expected or "In[1]:3" in expected
    assert 'sandbox="allow-scripts"' in shown["text/html"]
    assert "max-width:400px" in shown["text/html"]


def test_a_cell_that_ends_with_show_displays_it_once(shell: InteractiveShell) -> None:
    run(shell, "import jaxsight")
    _, shown = run(
        shell, "jaxsight.show(f, x, target='cpu')\njaxsight.show(jitted, x, target='cpu')"
    )
    assert len(shown) == 2


def test_a_cell_is_run_and_what_it_calls_is_shown(shell: InteractiveShell) -> None:
    cell = "%%kernels --still -t cpu\ny = jitted(x)\nz = jitted(x[:8])\njitted(x)\nprint(y.shape)"
    text, shown = run(shell, cell)
    assert "(64, 32)" in text
    assert [each["text/plain"].partition(":")[0] for each in shown] == ["f", "f"]
    assert shown[0]["text/plain"] != shown[1]["text/plain"]
    assert "iframe" not in shown[0]["text/html"]
    assert shell.user_ns["z"].shape == (8, 32)


def test_what_a_cell_compiles_is_shown_once(shell: InteractiveShell) -> None:
    run(shell, "total = lambda x: jnp.sum(x**2)\ndef inner(x): return jitted(x)")
    cell = "jax.jit(total)(x), jax.jit(jax.grad(total))(x), jax.jit(f).lower(x).compile()(x)"
    text, shown = run(shell, f"%%kernels --still -t cpu\n{cell}, inner(x), jax.vmap(jitted)(x)")
    assert "Error" not in text
    assert len({each["text/plain"] for each in shown}) == len(shown) == 3
    _, shown = run(shell, "%%kernels --still -t cpu\nstaged = jax.jit(f).lower(x).compile()")
    _, again = run(shell, "%%kernels --still -t cpu\nstaged(x), staged(x)")
    assert [each["text/plain"].partition(":")[0] for each in (*shown, *again)] == ["f", "f"]


def test_an_error_in_a_cell_is_the_cells(shell: InteractiveShell) -> None:
    text, shown = run(shell, "%%kernels -t cpu\njitted(x)\n1 / 0")
    assert "ZeroDivisionError" in text
    assert shown == []


def test_programs_are_printed(shell: InteractiveShell) -> None:
    assert "reduce_sum[axes=(0,)" in run(shell, "%jaxpr f(x)")[0]
    rows = run(shell, "%shapes f(x)")[0].splitlines()
    assert [row.split()[-1] for row in rows] == [
        "f32[64,32]", "f32[64,32]", "f32[64,32]", "f32[32]",
    ]  # fmt: skip
    assert "def f(x, n=2):" in run(shell, "%sourcerize --style pretty f(x)")[0]


def test_expressions_that_begin_at_one_place_are_all_listed(shell: InteractiveShell) -> None:
    run(shell, "def product(x): return jnp.sin(x) @ x.T")
    rows = run(shell, "%shapes product(x)")[0].splitlines()
    assert [row.split()[1:-1] for row in rows] == [
        ["jnp.sin(x)"], ["jnp.sin(x)", "@", "x.T"], ["x.T"],
    ]  # fmt: skip


def test_times_and_sweeps_are_displayed(shell: InteractiveShell) -> None:
    run(shell, "timings = get_ipython().run_line_magic('measure', '--repeat 3 f(x)')")
    assert shell.user_ns["timings"].times.wall.runs == 3
    run(shell, "swept = get_ipython().run_line_magic('sweep', '-t cpu n=1..3 f(x)')")
    assert [dict(point.sizes) for point in shell.user_ns["swept"].points] == [
        {"n": 1}, {"n": 2}, {"n": 3},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%kernels", "%kernels needs a call such as f(x); %kernels? is its help"),
        ("%kernels f(x", "expected a call such as f(x), got 'f(x'"),
        ("%kernels missing(x)", "name 'missing' is not defined"),
        ("%kernels -t cpx f(x)", "unknown target 'cpx'; did you mean cpu?"),
        ("%kernels --what f(x)", "unknown option --what; known: --target --width"),
        ("%kernels -w wide f(x)", "invalid value of option --width: wide"),
        ("%kernels 3", "expected a function, got 3"),
        ("%jaxpr f", "expected a call such as f(x)"),
        ("%sweep f(x)", "no sizes to sweep; write e.g. %sweep n=1..64 f(x)"),
        ("%sweep n=1..4 jnp.sin(x)", "no argument of sin depends on n"),
        ("%%kernels\n1 + 1", "the cell calls no jitted function"),
    ],
)
def test_wrong_use_is_one_message(shell: InteractiveShell, cell: str, message: str) -> None:
    text, shown = run(shell, cell)
    assert f"UsageError: {message}" in text
    assert "Traceback" not in text
    assert shown == []


def test_each_magic_has_help(shell: InteractiveShell) -> None:
    for name in ("kernels", "jaxpr", "shapes", "sourcerize", "measure", "sweep"):
        assert f"`%{name} " in (shell.find_line_magic(name).__doc__ or "")
