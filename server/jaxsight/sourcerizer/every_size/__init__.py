"""Writes a program for every size: the text for some sizes, with its numbers as expressions.

A program with symbolic dimensions is written for several assignments of sizes (`writing`). Where
the texts differ in numbers only, each number is an expression of the sizes (`fitting`), which the
function reads from its arguments' shapes (`texts`). The text is then compared with the program: for
these sizes and further ones, and with its symbolic dimensions.
"""

from jaxsight.sourcerizer.every_size.writing import generalized

__all__ = ["generalized"]
