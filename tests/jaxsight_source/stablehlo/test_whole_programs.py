"""Programs that people write are the same StableHLO after they are read and written."""

from __future__ import annotations

import jax
import pytest
from jax import export
from jax.extend.core import jaxpr_as_fun

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from jaxsight_source.stablehlo.proof import prove
from jaxsight_source.stablehlo.reading import read
from jaxsight_source.written import load
from tests.jaxsight_source.stablehlo.whole_programs import PROGRAMS, WholeProgram


@pytest.mark.parametrize(
    ("program", "is_text"),
    [(program, bool(place % 3 == 0)) for place, program in enumerate(PROGRAMS)],
    ids=lambda value: value.function.__name__ if isinstance(value, WholeProgram) else "",
)
def test_the_written_program_is_the_same_stablehlo(program: WholeProgram, is_text: bool):
    jitted = jax.jit(program.function)
    original: str | bytes
    if is_text:
        original = jitted.lower(*program.structs).as_text()
    else:
        original = export.export(jitted)(*program.structs).mlir_module_serialized
    found = read(original)
    assert not found.opaque
    with found.types():
        written = write(
            jaxpr_as_fun(found.jaxpr),
            program.structs,
            {},
            SourceOptions(name=found.name, run=False),
        )
    proof = prove(original, found, load(written))
    assert proof.difference == ""
    assert proof.ran or "loop" in proof.not_run
