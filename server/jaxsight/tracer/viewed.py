"""What other packages' interpreters make of a jaxpr, as a text.

They are user code: whatever they raise is an answer.
"""

from __future__ import annotations

from typing import Any

from jaxsight.interpreters import views
from jaxsight.tracer import protocol, shown
from jaxsight.tracer.compat import jaxprs
from jaxsight.tracer.failures import UserError, clean, failure, refusal


def viewed(request: protocol.Show, jaxpr: Any) -> protocol.Shown:
    """The text that the interpreter called `request.what` returns, or the jaxpr that it does,
    printed.

    Raises `UserError` of stage `view`.
    """
    if request.what not in views.names():
        known = ", ".join(views.names())
        there = f"there are {known}" if known else "no package registers one"
        words = f"no interpreter is called {request.what} in this environment: {there}"
        raise refusal("view", words, type="LookupError")
    try:
        made = views.load(request.what)(jaxpr)
        text = None if jaxprs.is_jaxpr(made) else str(made)
    except BaseException as error:
        raise UserError(failure(error, "view")) from error
    return shown.whole(request, made) if text is None else protocol.Shown(request.id, clean(text))
