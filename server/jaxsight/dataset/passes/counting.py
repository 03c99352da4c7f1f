"""Counts what a program consists of after each pass of XLA."""

from __future__ import annotations

import re
from collections import Counter

from jaxsight.compiler.hlo.distributed.collectives import COLLECTIVES, STARTS
from jaxsight.compiler.hlo.text import parse
from jaxsight.compiler.hlo.walk import walk
from jaxsight.dataset.compat import pass_dumps
from jaxsight.dataset.program import Record
from jaxsight.dataset.rows.describe import Rejected, attempt, versions

_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[^\s=]+ = ", re.MULTILINE)
_ELEMENT = " get-tuple-element("
"""An instruction that XLA of JAX 0.12 does not print in dumps, but writes as `%tuple#1`."""


def count(stablehlo: str) -> Record:
    """Return the columns of the table of passes that are known in this process.

    Args:
        stablehlo: a module, which is compiled for this machine's CPU, and not run.

    Raises:
        Rejected: it cannot be compiled, or XLA did not dump what it compiled.
    """
    states, hlo = attempt("compile", lambda: pass_dumps.compile_with_dumps(stablehlo))
    passes = [
        {"position": at, "pipeline": state.pipeline, "name": state.name, **_counts(state.hlo)}
        for at, state in enumerate(states)
    ]
    if not passes[-1].items() >= _counts(hlo).items():
        raise Rejected("incomplete dump", "the last pass that XLA dumped leaves another program")
    return {"passes": passes, "versions": versions()}


def _counts(hlo: str) -> dict[str, int]:
    """Return the counts of a module, whose instructions may not be scheduled or fused yet.

    After the last pass, the operations are the kernels that `compiler.hlo.read` finds.
    """
    walked = walk(parse(hlo))
    opcodes = Counter(unit.instruction.opcode for unit in walked.units)
    return {
        "instruction_count": len(_INSTRUCTION.findall(hlo)) - hlo.count(_ELEMENT),
        "operation_count": len(walked.units),
        "fusion_count": opcodes["fusion"],
        "dot_count": opcodes["dot"],
        "convolution_count": opcodes["convolution"],
        "copy_count": opcodes["copy"],
        "custom_call_count": opcodes["custom-call"],
        "collective_count": sum(opcodes[name] for name in (*COLLECTIVES, *STARTS)),
        "loop_count": len(walked.loops),
    }
