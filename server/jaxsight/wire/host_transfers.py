"""Transfers between the memory of the host and that of the device, in a kernel graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

TO_HOST, TO_DEVICE, WITHIN_HOST = "to host", "to device", "within host"

Transferred: TypeAlias = Literal[
    "copy", "slice", "update", "computation", "callback", "infeed", "outfeed", "send", "receive"
]
COPY: Final = "copy"
SLICE: Final = "slice"
UPDATE: Final = "update"
"""What is moved: a whole array, a part of one, or an array into a part of a larger one."""
COMPUTATION: Final = "computation"
"""The operands and results of a computation on the host."""


@dataclass(frozen=True, slots=True)
class HostTransfer:
    """A transfer between the host and the device; `bytes` are those of one execution."""

    name: str
    """The instruction's name in the HLO."""
    direction: str
    """`to host`, `to device`, or `within host` for a copy that does not cross the link."""
    what: Transferred
    type: str
    """The arrays that are moved, as HLO prints them without layouts: `f32[8,16], s32[]`."""
    bytes: int
    equations: tuple[str, ...] = ()
    """The paths of its equations; usually none, as XLA drops those of `device_put`."""
    feeds: tuple[str, ...] = ()
    """Without equations of its own, those that read its result, or else computed its operand."""
    is_async: bool = False
    """Whether kernels run between its start and its end."""
    kernel: int = -1
    """The kernel that makes the transfer, such as a callback; -1 if it is none."""
    loops: tuple[int, ...] = ()
    """The loops around it, outermost first."""
    branch: int = -1
    """The innermost branch around it; -1 if there is none."""
    runs: int = 1
    """Executions in one run of the program; an unknown trip count counts once."""
    at_least: int = 1
    """The same without loops of unknown trip count."""
    instruction: int = 0
    """Its line in the HLO text, from 0."""

    @property
    def is_offload(self) -> bool:
        """Whether it moves an array between memories, and is no call of the host."""
        return self.what in (COPY, SLICE, UPDATE)
