"""Flags of absl belong to the file that defines them, and to one execution of it."""

from __future__ import annotations

import pytest

from tests.tracer.isolation.driver import Driver

pytest.importorskip("absl")

DEFINES = """\
from absl import flags
import jax.numpy as jnp
FLAGS = flags.FLAGS
flags.DEFINE_integer("size", 3, "A size.", short_name="s")
def f(x):
    return x * float(FLAGS["size"].value)
"""


def test_an_edited_flag_has_its_new_default(tracer: Driver) -> None:
    for size in (3, 5, 3):
        traced = tracer.trace(DEFINES.replace('"size", 3', f'"size", {size}'), file="own.py")
        assert f"mul a {size}.0" in traced.jaxpr
        assert traced.caveats == ()


def test_two_files_define_the_same_flag(tracer: Driver) -> None:
    for file in ("one.py", "other.py", "one.py"):
        assert tracer.trace(DEFINES, file=file).caveats == ()


def test_a_flag_without_its_definition_is_gone(tracer: Driver) -> None:
    tracer.trace(DEFINES, file="own.py")
    undefined = DEFINES.replace("flags.DEFINE", "flags.FLAGS and flags.DEFINE")
    without = "\n".join(line for line in undefined.splitlines() if "DEFINE" not in line) + "\n"
    assert "size" in tracer.fail(without, file="own.py").failure.message


def test_values_and_parsing_end_with_what_set_them(tracer: Driver) -> None:
    sets = DEFINES.replace("def f", "FLAGS(['program', '--size=7'])\ndef f")
    assert "mul a 7.0" in tracer.trace(sets, file="own.py").jaxpr
    assert "mul a 3.0" in tracer.trace(DEFINES, file="own.py").jaxpr
    reads = DEFINES.replace('FLAGS["size"].value', "FLAGS.size")
    assert "mul a 3.0" in tracer.trace(reads, file="own.py").jaxpr  # its default
    assert "mul a 7.0" in tracer.trace(sets.replace('["size"].value', ".size"), file="own.py").jaxpr


def test_flags_of_libraries_stay(tracer: Driver) -> None:
    logs = "from absl import logging\nimport jax.numpy as jnp\n"
    logs += "def f(x):\n    return x * float(logging.FLAGS['verbosity'].default)\n"
    for file in ("one.py", "other.py"):
        assert tracer.trace(logs, file=file).caveats == ()
