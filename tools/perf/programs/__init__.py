"""The programs that are measured: files as people have them, each with one function that has
example inputs.

`ARGUMENTS` at the end of each is what the baseline calls the function with.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent

FACTOR = "0.5000"
"""Stands once in each program, in the body of its function: the edits change it."""


@dataclass(frozen=True, slots=True)
class Program:
    """A file and the function in it that is hovered."""

    file: str
    function: str

    @property
    def text(self) -> str:
        return (_FOLDER / self.file).read_text(encoding="utf-8")

    @property
    def definition(self) -> str:
        """The function's own text."""
        text = self.text
        return text[text.index(self.heading) : text.index("ARGUMENTS =")]

    @property
    def heading(self) -> str:
        """`def f`: what an editor searches for to come to the function."""
        return f"def {self.function}("


SMALL = Program("small.py", "layer")
ADAM = Program("adam.py", "update")
TRANSFORMER = Program("transformer.py", "gradient")
MLP = Program("mlp.py", "step")
BUSY = Program("busy.py", "unrolled")


def edited(number: int) -> str:
    """A factor that no program had before, by the edit's number."""
    return f"0.{5001 + number}"


def lengthened(text: str, lines: int) -> str:
    """The program in the middle of a file of about so many lines: helpers around it that it does
    not use.
    """
    head, _, rest = text.partition("\n\n\n")
    count = max((lines - text.count("\n")) // _HELPER.count("\n"), 0)
    helpers = [_HELPER.replace("NUMBER", str(number)) for number in range(count)]
    half = count // 2
    return f"{head}\n\n\n{''.join(helpers[:half])}{rest}\n\n{''.join(helpers[half:])}"


_HELPER = '''\
def helper_NUMBER(x, scale=NUMBER.0):
    """Normalizes and mixes.

    Args:
        x: activations of any batch.
        scale: a factor.
    """
    mean = x.mean(axis=-1, keepdims=True)
    centered = x - mean
    variance = (centered**2).mean(axis=-1, keepdims=True)
    normalized = centered * jax.lax.rsqrt(variance + 1e-6)
    # Mixing keeps the norm.
    if scale > 1:
        normalized = normalized / scale
    return jnp.where(normalized > 0, normalized * scale, jnp.expm1(normalized))


CONSTANT_NUMBER = [NUMBER, "text"]


'''
