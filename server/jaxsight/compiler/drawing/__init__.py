"""Pictures of kernel graphs, as in textbooks on fusion: grey boxes for kernels, white ones for loops, arrows with what passes."""

from jaxsight.compiler.drawing.dot import dot

__all__ = ["dot"]
