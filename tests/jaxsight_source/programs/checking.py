"""One program under one setting, through the gate or to its refusal."""

from __future__ import annotations

import re
from typing import Any

from jaxsight_source.errors import Unsourceable
from tests.corpora.jaxsight_source.programs.registry import Program
from tests.jaxsight_source import gate


def check(program: Program, x64: bool, **options: Any) -> gate.Passed | None:
    """What passed; None for a program that is refused as it says it is.

    Raises:
        Fails: the text does not hold what it must, or there is one where a refusal was expected.
    """
    with gate.x64(x64):
        call = program.make()
        try:
            with gate.recursion(call.recursion), gate.on(call.mesh):
                passed = gate.check(
                    call, imports=program.imports, gradient=program.gradient, **options
                )
        except Unsourceable as error:
            if program.refused and re.search(program.refused, str(error)):
                return None
            raise
    if program.refused:
        raise gate.Fails(f"is written now, though it says: {program.refused}")
    return passed
