"""JX471: write what replaces the deprecated use, where that is clear from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx471_deprecation_warning.rule import Deprecated


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `with jax.set_mesh(mesh):` for `with mesh:`, and `variable[...]` for `.value`."""
    line = context.finding.range.start.line
    match context.finding.data:
        case Deprecated.MESH_CONTEXT:
            for node in ast.walk(context.tree):
                if isinstance(node, ast.With) and context.range(node).start.line == line:
                    meshes = [item.context_expr for item in node.items]
                    names = [mesh for mesh in meshes if not isinstance(mesh, ast.Call)]
                    if len(names) == 1 and "jax" in context.imports:
                        text = f"{context.imports['jax']}.set_mesh({context.text(names[0])})"
                        yield Candidate(
                            "Set the mesh by `jax.set_mesh`", (context.replace(names[0], text),)
                        )
        case Deprecated.VARIABLE_VALUE:
            edits = [
                context.replace(node, f"{context.operand(node.value)}[...]")
                for node in ast.walk(context.tree)
                if isinstance(node, ast.Attribute)
                and node.attr == "value"
                and context.range(node).start.line == line
            ]
            if edits:
                yield Candidate("Use `variable[...]`", tuple(edits))


REMEDY = Remedy("`jax.set_mesh(mesh)`, `variable[...]`", candidates)
