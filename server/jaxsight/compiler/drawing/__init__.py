"""Drawings of kernel graphs: grey boxes for kernels, white ones for loops, arrows for values."""

from jaxsight.compiler.drawing.dot import dot
from jaxsight.compiler.drawing.graphviz import NoGraphviz, drawn_by_graphviz

__all__ = ["NoGraphviz", "dot", "drawn_by_graphviz"]
