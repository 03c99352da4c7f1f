"""Find the values that the partitioner replicated to reshard them, in what XLA logs.

XLA logs them as warnings (`PartitionedHlo::ReshardNoCache` in
`xla/service/spmd/spmd_partitioner.cc`), which it does not write to standard error if
`TF_CPP_MIN_LOG_LEVEL` is above 1.
"""

from __future__ import annotations

import re

from jaxsight.compiler.hlo.distributed.shardings import tiles
from jaxsight.hlo.shapes import dims, without_layout
from jaxsight.hlo.text import instruction
from jaxsight.wire.meshes import Rematerialization

_LOGGED = re.compile(
    r"\[spmd\] Involuntary full rematerialization\..*? from sharding (?P<source>\{.*?\}) to "
    r"(?P<target>\{.*?\}) (?:efficiently|without .*?) for HLO operation:? "
    r"(?P<instruction>[^\n]*)",
    re.IGNORECASE,
)


def read(log: str) -> tuple[Rematerialization, ...]:
    """Return the values in XLA's log, without duplicates.

    Their equation is `parameter 0` for a parameter of the program, and empty if it is not known.
    """
    values: dict[Rematerialization, None] = {}
    for match in _LOGGED.finditer(log):
        logged = instruction(f" {match['instruction']}", 0)
        if logged is None:
            continue
        path = logged.equation
        if logged.opcode == "parameter" and not path and logged.op_name:
            path = f"parameter {logged.number}"
        elif not path[:1].isdigit():
            path = ""  # It is in a function, and its name begins there.
        value = Rematerialization(
            path, _whole(logged.shape, match["source"]), match["source"], match["target"]
        )
        values[value] = None
    return tuple(values)


def _whole(part: str, sharding: str) -> str:
    """Return the type of a whole value from that of one device's part, which XLA logs.

    Dimensions that the devices do not divide evenly are those of the padded value.
    """
    text = without_layout(part)
    name, _, inside = text.partition("[")
    sizes = dims(inside)
    divided = tiles(sharding, len(sizes))
    return f"{name}[{','.join(str(size * by) for size, by in zip(sizes, divided, strict=True))}]"
