"""How many instructions a GPU's multiprocessors issue for an HLO operation.

A lane issues an instruction in each clock; the throughput of a chip follows from its cores and
units ([guide] in `gpus`).

Sources:
* [h100]: eight of an operation in a chain over 2^24 float32 on an H100 at 1.98 GHz: the time times
  the lanes. The code is the same on all of NVIDIA's GPUs, so the numbers are used for all.
* [rest]: what remains of [h100] for a chain with other operations in it: `logistic` without its
  division, `gelu` without its polynomial.
* [bound]: at most as many, as the chain is bound by memory bandwidth.
* [guess]: not measured; from the length of NVIDIA's libdevice functions.
"""

from __future__ import annotations

from collections.abc import Mapping

_FLOAT32: Mapping[str, float] = {
    "atan2": 41,  # [h100] 164.6 µs
    "cbrt": 25,  # [guess]
    "cosine": 29.5,  # [h100] 118.6 µs
    "divide": 10,  # [rest] of logistic, 83.2 µs
    "erf": 28,  # [h100] 113.5 µs
    "exponential": 8,  # [bound] 46.7 µs, [rest] of logistic
    "exponential-minus-one": 33,  # [h100] 133.8 µs
    "log": 25,  # [h100] 104.4 µs, with an addition
    "log-plus-one": 31.5,  # [h100] 127.0 µs
    "logistic": 20,  # [h100] 83.2 µs
    "multiply-add": 0.5,  # for each of its two operations
    "power": 60,  # [guess]
    "reduce-window": 10,  # a load with its bounds in each step: cumsum of rows, 164.7 µs
    "remainder": 30,  # [guess]
    "rsqrt": 4,  # [guess] one instruction, and three for denormal numbers
    "sine": 28.5,  # [h100] 113.9 µs
    "sqrt": 8,  # [bound] 44.9 µs, [rest] of erf_inv, 273.8 µs
    "tan": 40,  # [guess]
    "tanh": 26,  # [rest] of gelu, 135.8 µs
}
_INTEGER: Mapping[str, float] = {
    "divide": 6,  # [guess] by a constant: a wide multiplication, shifts, and a correction
    "remainder": 8,  # [guess]
    "reduce-window": 10,
    "shift-left": 0.5,  # with another shift, a rotation of threefry, which is one instruction
    "shift-right-logical": 0.5,
    "shift-right-arithmetic": 1,
    "power": 20,  # [guess]
    "multiply-add": 0.5,
}
_COMPLEX = 4
"""Real instructions for each complex one: those of a product."""
_WIDE = 2
"""Instructions of 64-bit integers for each one of 32 bits."""
_DOUBLE = 1.5
"""Instructions of float64 functions for each one of float32: longer polynomials [guess]."""
_EACH: Mapping[str, float] = {
    # a comparison of XLA's sorting network for each of its operands, with loads, stores and the
    # branches of its bounds: rows of 256 to 4096 float32 with their positions [h100]
    "sort": 28,
    "transpose": 250,  # of a byte: int8[4096, 4096] in 127.6 µs on an H100
}
"""Of any dtype."""


def instructions(opcode: str, dtype: str) -> float:
    """Return the instructions of one operation on one element."""
    if opcode in _EACH:
        return _EACH[opcode]
    if dtype.startswith("c"):
        return _COMPLEX * (_FLOAT32.get(opcode, 1))
    if dtype.startswith(("f", "bf")):
        count = _FLOAT32.get(opcode, 1)
        return count * _DOUBLE if dtype == "f64" and count > 1 else count
    return _INTEGER.get(opcode, 1) * (_WIDE if dtype in ("s64", "u64") else 1)
