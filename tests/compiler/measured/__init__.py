"""Programs that were measured on an NVIDIA H100, and large workloads of other kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """A program: a function and the types of its arguments (`bf16[8,128]`, `key<fry>[]`)."""

    function: Function
    types: tuple[str, ...]
