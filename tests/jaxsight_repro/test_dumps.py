"""Programs that XLA or JAX dumped become repros, without their Python source."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxsight_repro.dumps.choosing import NoModule, choose
from tests.jaxsight_repro.dumps.outcomes import DUMPS, outcome
from tests.jaxsight_repro.programs import jaxsight

SQUARE_ROOT = """HloModule jit_root

ENTRY main {
  x = f32[8]{0} parameter(0)
  two = f32[] constant(2)
  twos = f32[8]{0} broadcast(two), dimensions={}
  shifted = f32[8]{0} subtract(x, twos)
  ROOT root = f32[8]{0} sqrt(shifted)
}
"""


def written(folder: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        file = folder / name
        file.write_text(SQUARE_ROOT)
        os.utime(file, (number, number))
    return folder


def test_the_module_that_was_being_compiled_is_chosen(tmp_path):
    written(
        tmp_path,
        "module_0000.jit_a.before_optimizations.txt",
        "module_0000.jit_a.cpu_after_optimizations.txt",
        "module_0000.jit_a.cpu_after_optimizations-buffer-assignment.txt",
        "module_0003.jit_step.before_optimizations.txt",
        "module_0003.jit_step.before_optimizations.hlo.pb",
    )
    chosen = choose(tmp_path)
    assert chosen.path.name == "module_0003.jit_step.before_optimizations.hlo.pb"
    assert chosen.why == (
        "module_0003.jit_step: it was being compiled when the run ended, of 2 modules"
    )
    named = choose(tmp_path, "jit_a")
    assert named.path.name == "module_0000.jit_a.before_optimizations.txt"


def test_several_modules_are_listed_the_last_one_first(tmp_path):
    written(
        tmp_path,
        "module_0001.jit_a.before_optimizations.txt",
        "module_0002.jit_b.before_optimizations.txt",
    )
    with pytest.raises(NoModule, match=r"module_0002.jit_b, module_0001.jit_a; choose one with"):
        choose(tmp_path)


def test_a_module_without_all_of_its_machine_code_was_being_compiled(tmp_path):
    """Names as jaxlib 0.10.2 wrote them when `examples/repro/crash.py` ended it."""
    written(
        tmp_path,
        "module_0010.jit_a.before_optimizations.txt",
        "module_0010.jit_a.cpu_after_optimizations.txt",
        "module_0010.jit_a.wrapped_broadcast_kernel_module.ir-with-opt.ll",
        "module_0010.jit_a.obj-file.wrapped_broadcast_kernel_module.o",
        "module_0012.jit_step.before_optimizations.txt",
        "module_0012.jit_step.cpu_after_optimizations.txt",
        "module_0012.jit_step.__compute_module_wrapped_add.ir-with-opt.ll",
        "module_0012.jit_step.obj-file.__compute_module_wrapped_add.o",
        "module_0012.jit_step.wrapped_reduce.12_kernel_module.ir-with-opt.ll",
        "module_0013.jit_b.before_optimizations.txt",
        "module_0013.jit_b.cpu_after_optimizations.txt",
    )
    assert choose(tmp_path).path.name == "module_0012.jit_step.before_optimizations.txt"


def test_the_last_module_of_a_finished_run_is_chosen_as_such(tmp_path):
    written(
        tmp_path,
        "module_0001.jit_a.before_optimizations.txt",
        "module_0001.jit_a.sm_9.0_gpu_after_optimizations.txt",
        "module_0004.jit_b.before_optimizations.txt",
        "module_0004.jit_b.sm_9.0_gpu_after_optimizations.txt",
    )
    assert choose(tmp_path).why == (
        "module_0004.jit_b: all modules are compiled, and it is the last one, "
        "which may have been running"
    )
    with pytest.raises(NoModule, match=r"no module named step; the run has module_0004.jit_b"):
        choose(tmp_path, "step")


def test_a_folder_without_dumps_says_how_to_dump(tmp_path):
    with pytest.raises(NoModule, match=r"no dumped module in .*; run the program with XLA_FLAGS="):
        choose(tmp_path)


def test_a_dump_fails_as_its_check_says(tmp_path):
    dump = tmp_path / "root.txt"
    dump.write_text(SQUARE_ROOT)
    done = jaxsight(tmp_path, "repro", "from-hlo", "root.txt", "--check", "nan")
    assert done.code == 0, done.stderr
    assert done.stdout == "repro.py: AssertionError: NaN in result[0]\n"
    text = (tmp_path / "repro.py").read_text()
    assert "The dump has no arguments: those of `inputs` are assumed." in text
    assert "return jnp.sqrt(x - 2.0)" in text


@pytest.mark.slow
def test_an_export_that_does_not_fail_says_so(tmp_path):
    exported = jax.export.export(jax.jit(jax.nn.softmax))(jax.ShapeDtypeStruct((3,), jnp.float32))
    (tmp_path / "softmax.exported").write_bytes(exported.serialize())
    done = jaxsight(tmp_path, "repro", "from-hlo", "softmax.exported", "--check", "crash")
    assert done.code == 1
    assert done.stdout == "repro.py: does not fail in the same way: finished, expected crash\n"
    assert "return jax.nn.softmax(x)" in (tmp_path / "repro.py").read_text()


def test_a_file_that_is_no_program_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    done = jaxsight(tmp_path, "repro", "from-hlo", "notes.txt")
    assert done.code == 2
    assert done.stderr.splitlines() == [
        "error: cannot read the program: expected HLO, StableHLO or a serialized export"
    ]


@pytest.mark.parametrize(
    "name",
    ["loop_of_updates.hlo", pytest.param("wrapped_slices.hlo", marks=pytest.mark.slow)],
)
def test_a_public_report_runs_with_the_values_of_its_dump(name):
    (path,) = (path for path in DUMPS if path.name == name)
    found = outcome(path)
    assert (found.source, found.values) == ("yes", "equal bits")
