"""Views of a jaxpr by jaxpr interpreters of other packages, as text.

They are user code: any error that they raise is an answer.
"""

from __future__ import annotations

from jaxsight.interpreters import views
from jaxsight.interpreters.compat.staging import is_jaxpr
from jaxsight.tracer.failures import UserError, clean, failure, refusal
from jaxsight.tracer.programs import jaxpr_text
from jaxsight.wire.messages.replies import Shown
from jaxsight.wire.messages.requests import Show


def viewed(request: Show, jaxpr: object) -> Shown:
    """Return the text of the jaxpr interpreter `request.view`, or the jaxpr that it returns.

    Raises:
        UserError: there is no such interpreter, or it failed; its stage is `view`.
    """
    if request.view not in views.names():
        names = ", ".join(views.names())
        there = f"available: {names}" if names else "no package registers one"
        words = f"unknown jaxpr interpreter {request.view} ({there})"
        raise refusal("view", words, type="LookupError")
    try:
        view = views.load(request.view)(jaxpr)
        text = None if is_jaxpr(view) else str(view)
    except BaseException as error:
        raise UserError(failure(error, "view")) from error
    return jaxpr_text.whole(request.id, view) if text is None else Shown(request.id, clean(text))
