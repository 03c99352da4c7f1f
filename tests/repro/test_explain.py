"""Explanations of real files: under which conditions they fail."""

from __future__ import annotations

import json
import stat
import sys
import textwrap
from pathlib import Path

import jaxlib
import pytest

from jaxsight.repro.explaining import hlo_passes, run, versions
from jaxsight.repro.explaining.environments import Environments, Unavailable
from jaxsight.repro.explanation import (
    FLAGS,
    HLO_PASSES,
    INTERMEDIATES,
    INTERPRETERS,
    JIT,
    TARGETS,
    VERSIONS,
    Explanation,
    Table,
    Verdict,
)
from jaxsight.repro.failures import RunFailure

WRONG = pytest.mark.skipif(
    jaxlib.__version__ != "0.10.2" or sys.platform != "linux",
    reason="this jaxlib compiles it rightly",
)

REDUCED_PRODUCT = """
import os
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=true " + os.environ.get("XLA_FLAGS", "")
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def main(m, x):
    return jax.vmap(lambda row: jnp.sum((m @ row) ** 2))(x)

def inputs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, 3)).astype("f4"), rng.normal(size=(40_000, 3)).astype("f4")

if __name__ == "__main__":
    jitted = np.asarray(main(*inputs()))
    with jax.disable_jit():
        eager = np.asarray(main(*inputs()))
    assert np.allclose(jitted, eager, rtol=1e-3), f"jit and eager differ: {np.abs(jitted - eager).max()}"
"""

BROADCAST = """
import os
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def main(a, b):
    return jnp.sum(a[..., None, None, None, None] * b, axis=2)

def inputs():
    return np.ones((10, 4, 6), "f4"), np.ones((10, 4, 6, 9, 9, 9, 9), "f4")

if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))
"""

NAN = """
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def shifted(x):
    return x - 1.0

@jax.jit
def main(x):
    y = jnp.log(shifted(x))
    return jnp.sum(y * 2.0)

def inputs():
    return (np.array([2.0, 0.5], "f4"),)

if __name__ == "__main__":
    assert not np.isnan(main(*inputs())), "NaN in result[0]"
"""


def explained(folder: Path, source: str, **choices: object) -> Explanation:
    file = folder / "repro.py"
    file.write_text(source)
    return run.explain(file, sys.executable, run.Choices(**choices), lambda _: None)  # type: ignore[arg-type]


def verdicts(table: Table | None) -> dict[str, str]:
    assert table is not None
    return {row.subject: row.verdict for row in table.rows}


@WRONG
@pytest.mark.slow
def test_a_silent_miscompilation_is_explained_by_jit_flag_and_value(tmp_path: Path) -> None:
    explanation = explained(tmp_path, REDUCED_PRODUCT, tables=(JIT, FLAGS, INTERMEDIATES))
    assert explanation.failure.headline.startswith("AssertionError: jit and eager differ")
    modes = verdicts(explanation.table(JIT))
    assert (modes["as it is"], modes["without `jax.jit`"]) == (Verdict.FAILS, Verdict.PASSES)
    flags = verdicts(explanation.table(FLAGS))
    assert [flag for flag in flags if flags[flag] == Verdict.PASSES] == [
        "--xla_cpu_experimental_ynn_fusion_type="
    ]
    values = explanation.table(INTERMEDIATES)
    assert values is not None
    assert values.conclusion == "jit and eager first differ at `reduce_sum` at repro.py:8"
    assert [row.verdict for row in values.rows] == ["agrees", "agrees", "diverges"]


@WRONG
@pytest.mark.slow
@pytest.mark.parametrize("source", [REDUCED_PRODUCT, BROADCAST], ids=["wrong value", "crash"])
def test_the_pass_is_found(tmp_path: Path, source: str) -> None:
    explanation = explained(tmp_path, source, tables=(HLO_PASSES,))
    table = explanation.table(HLO_PASSES)
    assert table is not None
    assert table.conclusion == "disabling the pass `dot-library-rewriter` avoids the failure"
    assert verdicts(table)["without dot-library-rewriter"] == Verdict.PASSES
    (command,) = (row.command for row in table.rows if row.verdict == Verdict.PASSES)
    assert command.startswith("XLA_FLAGS=--xla_disable_hlo_passes=dot-library-rewriter ")


@pytest.mark.slow
def test_a_nan_is_traced_to_the_equation_that_makes_it(tmp_path: Path) -> None:
    explanation = explained(tmp_path, NAN, tables=(JIT, INTERMEDIATES))
    assert verdicts(explanation.table(JIT))["without `jax.jit`"] == Verdict.FAILS
    values = explanation.table(INTERMEDIATES)
    assert values is not None
    assert values.conclusion == "the first NaN is at `log` at repro.py:10"


def test_another_failure_is_neither_a_failure_nor_a_success(tmp_path: Path) -> None:
    source = """
        import os
        if os.environ.get("JAX_DISABLE_JIT"):
            raise OSError("eager")
        raise ValueError("jitted")
    """
    table = explained(tmp_path, textwrap.dedent(source), tables=(JIT,)).table(JIT)
    assert table is not None
    assert table.conclusion == "without `jax.jit`, the program fails in another way"
    (row,) = (row for row in table.rows if row.subject == "without `jax.jit`")
    assert (row.verdict, row.detail) == (Verdict.OTHER, "OSError: eager")


def test_options_that_the_file_sets_are_not_tried(tmp_path: Path) -> None:
    source = 'import os\nos.environ["JAX_DISABLE_JIT"] = "0"\nraise ValueError'
    rows = verdicts(explained(tmp_path, source, tables=(JIT,)).table(JIT))
    assert rows["without `jax.jit`"] == Verdict.UNTRIED


def test_unknown_flags_are_not_failures(tmp_path: Path) -> None:
    source = """
        import os, sys
        if "ynn" in os.environ.get("XLA_FLAGS", ""):
            print("F1 Unknown flag in XLA_FLAGS: --xla_cpu_ynn", file=sys.stderr, flush=True)
        os.abort()
    """
    explanation = explained(tmp_path, textwrap.dedent(source), tables=(FLAGS,))
    table = explanation.table(FLAGS)
    assert table is not None
    assert [row.detail for row in table.rows if row.verdict == Verdict.UNTRIED] == [
        "unknown flag --xla_cpu_ynn"
    ]
    assert table.conclusion == "none of these flags avoids the failure"


def test_aborts_in_different_places_are_different_failures(tmp_path: Path) -> None:
    source = """
        import os, sys
        place = "two.cc" if os.environ.get("JAX_DISABLE_JIT") else "one.cc"
        print(f"F1123 15:43:35.779718    7727 {place}:234] Check failed", file=sys.stderr, flush=True)
        os.abort()
    """
    rows = verdicts(explained(tmp_path, textwrap.dedent(source), tables=(JIT,)).table(JIT))
    assert (rows["as it is"], rows["without `jax.jit`"]) == (Verdict.FAILS, Verdict.OTHER)


def test_a_flaky_failure_is_said_to_be_one(tmp_path: Path) -> None:
    source = f"""
        import pathlib
        runs = pathlib.Path({str(tmp_path / "runs")!r})
        count = int(runs.read_text()) if runs.exists() else 0
        runs.write_text(str(count + 1))
        if count % 2 == 0:
            raise ValueError
    """
    explanation = explained(tmp_path, textwrap.dedent(source), tables=(JIT,))
    assert explanation.notes == (
        "the failure does not always occur: trials were run up to 5 times",
    )
    assert set(verdicts(explanation.table(JIT)).values()) == {Verdict.FAILS}


def test_a_file_that_finishes_has_no_tables(tmp_path: Path) -> None:
    explanation = explained(tmp_path, "pass")
    assert explanation.tables == ()
    assert explanation.notes == ("the file finishes without a failure here",)


def test_a_file_that_fails_otherwise_has_no_tables(tmp_path: Path) -> None:
    expected = RunFailure("exception", "ValueError", "expected")
    explanation = explained(tmp_path, "raise TypeError('other')", expected=expected)
    assert explanation.tables == ()
    assert explanation.notes == ("the file fails in another way here: TypeError: other",)


def test_other_interpreters_are_tried(tmp_path: Path) -> None:
    here = f"{sys.executable}"
    table = explained(
        tmp_path, "raise ValueError", tables=(INTERPRETERS,), pythons=(here, "/nonexistent")
    ).table(INTERPRETERS)
    assert table is not None
    assert [row.verdict for row in table.rows] == [Verdict.FAILS, Verdict.UNTRIED]
    assert f"jaxlib {jaxlib.__version__}" in table.rows[0].subject


def test_offline_it_says_what_was_not_tried(tmp_path: Path) -> None:
    folder = tmp_path / "environments"
    table = explained(
        tmp_path, "raise ValueError", tables=(VERSIONS,), environments=folder, offline=True
    ).table(VERSIONS)
    assert table is not None
    assert "offline: only versions that are already installed were tried" in table.notes
    assert not list(tmp_path.glob("environments/*-jax*"))
    environments = Environments.of(folder, sys.executable, offline=True)
    with pytest.raises(Unavailable, match="not installed, and offline"):
        environments.interpreter("0.9.2")


@pytest.mark.slow
def test_an_index_that_does_not_answer_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"file://{tmp_path}/nothing")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    table = explained(
        tmp_path, "raise ValueError", tables=(VERSIONS,), environments=tmp_path / "environments"
    ).table(VERSIONS)
    assert table is not None
    assert table.notes[0].startswith("not tried: no package index lists the versions of jaxlib")


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("passes fails fails", ("1", "0", ())),
        ("passes fails fails fails fails fails", ("1", "0", ())),
        ("passes other fails", ("2", "0", ("1",))),
        ("passes other other other other", ("5", "0", ("4", "3", "2", "1"))),
        ("fails fails fails passes", ("4", "3", ())),
        ("passes passes passes passes fails fails fails fails", ("4", "3", ())),
        ("fails fails", None),
        ("", None),
    ],
)
def test_the_boundary_between_versions(
    order: str, expected: tuple[str, str, tuple[str, ...]] | None
) -> None:
    all_verdicts = {str(i): word for i, word in enumerate(order.split())}
    tried: list[str] = []

    def attempt(version: str) -> str:
        tried.append(version)
        return all_verdicts[version]

    here = str(len(all_verdicts))
    found = versions.boundary(here, list(reversed(all_verdicts)), attempt)
    assert (found and (found.failing, found.passing, found.between)) == expected
    assert len(tried) == len(set(tried))


@pytest.mark.parametrize("culprits", [{"c"}, {"a", "h"}, set()])
def test_passes_are_found_by_group(culprits: set[str]) -> None:
    necessary = {"e"}

    def without(group: tuple[str, ...]) -> str:
        if necessary & set(group):
            return Verdict.OTHER
        return Verdict.PASSES if culprits & set(group) else Verdict.FAILS

    assert set(hlo_passes.search("abcdefgh", without)) == culprits


def test_passes_of_a_log() -> None:
    log = """\
I1 15:44:39.5 7 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_main: a b
I1 15:44:39.5 7 hlo_pass_pipeline.cc:181]   HLO pass dce
I1 15:44:39.5 7 hlo_pass_pipeline.cc:176] HLO pass: dce time: 7 us (7 us) (cumulative: 31 us)
I1 15:44:39.5 7 hlo_pass_pipeline.cc:181]   HLO pass algsimp
"""
    assert hlo_passes.logged(log) == (["dce", "algsimp"], ["algsimp"])


def test_machines_are_reached_over_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        "#!/bin/sh\n"
        'while [ "$1" != "--" ]; do shift; done\n'
        '[ "$2" = gone ] && { echo "no route" >&2; exit 255; }\n'
        'export WHERE="$2"\nexec sh -c "$3"\n'
    )
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{Path(sys.executable).parent}:/usr/bin:/bin")
    source = """
        import os, signal, pathlib
        match os.environ.get("WHERE"):
            case "crashes":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "passes":
                pass
            case _:
                raise ValueError(pathlib.Path(__file__).with_suffix(".npz").read_text())
    """
    (tmp_path / "repro.npz").write_text("data")
    hosts = ("ssh://fails", "passes", "crashes", "gone")
    table = explained(tmp_path, textwrap.dedent(source), tables=(TARGETS,), hosts=hosts).table(
        TARGETS
    )
    assert table is not None
    assert [(row.verdict, row.detail) for row in table.rows] == [
        (Verdict.FAILS, ""),
        (Verdict.PASSES, ""),
        (Verdict.OTHER, "killed by SIGSEGV"),
        (Verdict.UNTRIED, "cannot reach gone (no route)"),
    ]


def test_without_machines_it_says_so(tmp_path: Path) -> None:
    table = explained(tmp_path, "raise ValueError", tables=(TARGETS,)).table(TARGETS)
    assert table is not None
    assert table.notes == ("not tried: no machine is configured",)


def test_explanations_are_kept_as_json(tmp_path: Path) -> None:
    explanation = explained(tmp_path, "raise ValueError('x')", tables=(JIT, TARGETS))
    record = json.loads(json.dumps(explanation.record()))
    assert record["failure"] == {
        "kind": "exception",
        "name": "ValueError",
        "message": "x",
        "frame": "",
    }
    assert [(table["name"], len(table["rows"])) for table in record["tables"]] == [
        (JIT, 5),
        (TARGETS, 0),
    ]
    assert {row["verdict"] for row in record["tables"][0]["rows"]} == {"fails"}


def test_explanations_as_text(tmp_path: Path) -> None:
    source = 'import os\nif not os.environ.get("JAX_DISABLE_JIT"): raise ValueError("x")'
    text = explained(tmp_path, source, tables=(JIT, TARGETS)).text()
    assert text.replace(str(tmp_path), "DIR").replace(sys.executable, "python") == (
        """\
failure: ValueError: x

jit and eager: the failure needs `jax.jit`
  fails   as it is
  passes  without `jax.jit`
          $ JAX_DISABLE_JIT=1 python DIR/repro.py
  fails   with 64-bit types
  fails   with the highest precision of products
  fails   without most optimizations

Targets
  note: not tried: no machine is configured
"""
    )
