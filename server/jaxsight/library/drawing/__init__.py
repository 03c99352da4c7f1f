"""Drawings of kernel graphs: grey boxes for kernels, white ones for loops, arrows for values."""

from jaxsight.library.drawing.dot import dot
from jaxsight.library.drawing.graphviz import NoGraphviz, drawn_by_graphviz

__all__ = ["NoGraphviz", "dot", "drawn_by_graphviz"]
