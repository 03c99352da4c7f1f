"""Pictures of kernel graphs, as in textbooks on fusion: grey boxes for kernels, white ones for
loops, arrows with what passes.
"""

from jaxsight.compiler.drawing.dot import dot
from jaxsight.compiler.drawing.graphviz import NoGraphviz, drawn_by_graphviz

__all__ = ["NoGraphviz", "dot", "drawn_by_graphviz"]
