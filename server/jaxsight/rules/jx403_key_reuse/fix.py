"""JX403: split a key that is used twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.fixing.syntax import reads_of


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield one `split` before the first use, with a key for each use.

    The drawn numbers change on purpose.
    """
    function = context.function(context.node)
    if function is None:
        context = context.of_subject()
        function = context.subject
    if function is None:
        return
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and context.called(node.func).startswith("jax.random.")
    ]
    keys = [call.args[0].id for call in calls if call.args and isinstance(call.args[0], ast.Name)]
    for key in dict.fromkeys(keys):
        if keys.count(key) > 1:
            random = context.text(calls[0].func).rpartition(".")[0] or "jax.random"
            uses = reads_of(key, function)
            statement = context.statement(uses[0])
            if statement is None:
                continue
            names = [context.fresh(f"{key}_{number}") for number in range(1, len(uses) + 1)]
            count = "" if len(names) == 2 else f", {len(names)}"
            split = f"{', '.join(names)} = {random}.split({key}{count})"
            edits = (context.replace(use, name) for use, name in zip(uses, names, strict=True))
            yield Candidate(
                f"Split `{key}` into {len(uses)} keys",
                (context.before(statement, split), *edits),
                same=False,
            )


REMEDY = Remedy.correcting("`jax.random.split` before the first use (unsafe)", candidates)
