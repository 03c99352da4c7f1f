"""Find the values that the partitioner replicated to reshard them, in what XLA logs.

XLA logs them as warnings (`PartitionedHlo::ReshardNoCache` in
`xla/service/spmd/spmd_partitioner.cc`), which it does not write to standard error if
`TF_CPP_MIN_LOG_LEVEL` is above 1.
"""

from __future__ import annotations

import re

from jaxsight.compiler.hlo.distributed.shardings import tiles
from jaxsight.compiler.hlo.shapes import dims, without_layout
from jaxsight.wire.chunks import equation_path
from jaxsight.wire.meshes import Rematerialization

_LOGGED = re.compile(
    r"\[spmd\] Involuntary full rematerialization\..*? from sharding (?P<source>\{.*?\}) to "
    r"(?P<target>\{.*?\}) (?:efficiently|without .*?) for HLO operation:? "
    r"%?\S+ = (?P<type>\S+) (?P<opcode>[\w-]+)\((?P<operands>[^)]*)\)(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
_OP_NAME = re.compile(r'op_name="([^"]*)"')


def read(log: str) -> tuple[Rematerialization, ...]:
    """Return the values in XLA's log, without duplicates.

    Their equation is `parameter 0` for a parameter of the program, and empty if it is not known.
    """
    values: dict[Rematerialization, None] = {}
    for match in _LOGGED.finditer(log):
        name = _OP_NAME.search(match["rest"])
        path = equation_path(name[1]) if name else ""
        if match["opcode"] == "parameter" and not path and name:
            path = f"parameter {match['operands']}"
        elif not path[:1].isdigit():
            path = ""  # It is in a function, and its name begins there.
        value = Rematerialization(
            path, _whole(match["type"], match["source"]), match["source"], match["target"]
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
