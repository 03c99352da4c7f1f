"""Programs that the compiler treats badly: time, memory, kernels, and the HLO that it emits."""

from __future__ import annotations

import re

from jaxsight.repro.checks.base import Assertion, Check, InvalidCheck
from jaxsight.repro.checks.endings import seconds

_TIME = """\
import time

lowered = jax.jit(main).lower(*inputs())
start = time.perf_counter()
lowered.compile()
took = time.perf_counter() - start
if took > {limit}:
    raise AssertionError(f"compiled in {{took:.1f}} s")
"""

_MEMORY = """\
import resource

lowered = jax.jit(main).lower(*inputs())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lowered.compile()
used = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
if used > {limit}:
    raise AssertionError(f"compiling took {{used}} bytes")
"""

_TEMPORARIES = """\
compiled = jax.jit(main).lower(*inputs()).compile()
used = compiled.memory_analysis().temp_size_in_bytes
if used > {limit}:
    raise AssertionError(f"temporaries of {{used}} bytes per device")
"""

_KERNELS = """\
text = jax.jit(main).lower(*inputs()).compile().as_text()
entry = text[text.index("\\nENTRY ") :].split("\\n}}")[0].splitlines()[1:]
free = (" parameter(", " constant(", " tuple(", " get-tuple-element(", " bitcast(")
kernels = sum(" = " in line and not any(name in line for name in free) for line in entry)
if kernels > {limit}:
    raise AssertionError(f"compiled to {{kernels}} kernels")
"""

_HLO = """\
import re

text = jax.jit(main).lower(*inputs()).compile().as_text()
if re.search({pattern!r}, text):
    raise AssertionError("the HLO matches")
"""

_UNITS = {"": 1, "b": 1} | {
    f"{prefix}{suffix}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for suffix, base in (("", 1024), ("b", 1000), ("ib", 1024))
}


def compile_time(text: str, limit: str) -> Check:
    """Return the check `compile-time>S`."""
    return _assertion(text, _TIME, "compiled in ", seconds(limit))


def compile_memory(text: str, limit: str) -> Check:
    """Return the check `compile-memory>BYTES`."""
    return _assertion(text, _MEMORY, "compiling took ", size(limit))


def temporaries(text: str, limit: str) -> Check:
    """Return the check `temp>BYTES`."""
    return _assertion(text, _TEMPORARIES, "temporaries of ", size(limit))


def kernels(text: str, target: str, limit: str) -> Check:
    """Return the check `kernels:TARGET>N`."""
    _require_local(target)
    return _assertion(text, _KERNELS, "compiled to ", count(limit))


def hlo(text: str, target: str, pattern: str) -> Check:
    """Return the check `hlo:TARGET:REGEX`."""
    _require_local(target)
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidCheck(f"invalid regular expression {pattern!r}: {error}") from None
    lines = tuple(_HLO.format(pattern=pattern).splitlines())
    return Assertion(text, lines, prefix="the HLO matches")


def _assertion(text: str, source: str, prefix: str, limit: float) -> Check:
    return Assertion(text, tuple(source.format(limit=limit).splitlines()), prefix=prefix)


def _require_local(target: str) -> None:
    """Raise `InvalidCheck` for a target that a standalone file cannot compile for."""
    if target != "cpu":
        raise InvalidCheck(f"unsupported target {target!r}; expected cpu")


def size(text: str) -> int:
    """Read a number of bytes, such as `65536`, `64KiB` or `1.5 GB`."""
    amount = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if amount is None or amount[2].lower() not in _UNITS:
        raise InvalidCheck(f"invalid size {text!r}; expected bytes, such as 64MiB")
    return int(float(amount[1]) * _UNITS[amount[2].lower()])


def count(text: str) -> int:
    """Read a whole number that is not negative."""
    if not re.fullmatch(r"\s*\d+\s*", text):
        raise InvalidCheck(f"invalid number {text!r}; expected a whole number, such as 10")
    return int(text)
