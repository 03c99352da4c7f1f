"""The calls of the user's functions that equations were created in, as a tree without repetition.

JAX keeps a traceback for each equation. In a jaxpr inside an equation, such as the body of a scan
or of a jitted function, tracebacks begin at the traced function (since JAX 0.10), or are those of
the first call: the calls around the outer equation are around the inner ones too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from jaxsight.tracer.failures import is_library, is_own, span_of
from jaxsight.tracer.observation import scopes
from jaxsight.tracer.observation.scopes import Scope
from jaxsight.wire.chunks import Span
from jaxsight.wire.messages.replies import Call
from jaxsight_source.compat.jaxpr_types import Equation, Jaxpr
from jaxsight_source.compat.locations import Caller, callers, is_backward, places

_DEEPEST = 24
"""Calls around an equation that are kept, the outermost ones."""


@dataclass(frozen=True, slots=True)
class OuterScope:
    """What is around an equation."""

    call: int = -1
    """Its innermost call."""
    depth: int = 0
    """The number of the user's frames, the traced function's included."""
    frame: Caller | None = None
    """The user's innermost frame."""
    scope: Scope | None = None
    """Its scope; `None` for what is around the outermost equations."""
    backward: bool = False
    """Whether it belongs to a backward pass."""


class CallTree:
    """Collects the calls around equations, outer equations first."""

    def __init__(
        self,
        equations: Iterable[Equation],
        is_own: Callable[[str], bool] = is_own,
        span_in: Callable[[str, int, int, int, int], Span | None] = span_of,
    ) -> None:
        """Begin with no calls.

        Args:
            equations: the outermost ones of the program.
            is_own: returns whether a frame's file is one of the user's.
            span_in: returns the span of a place in a file.
        """
        self.calls: dict[Call, int] = {}
        """The calls in order, with their numbers."""
        self._is_own, self._span_in = is_own, span_in
        self._frames: dict[int, tuple[object, tuple[tuple[Caller, ...], bool]]] = {}
        self._spans: dict[int, tuple[object, Span | None]] = {}
        self._depths: dict[int, int] = {}
        """The depth of the equation with which a jaxpr was traced; 0 for the outermost one."""
        own = (self._own_frames(each)[0] for each in equations)
        begins = Counter(frames[0][:2] for frames in own if frames)
        self._root = begins.most_common(1)[0][0] if begins else ("", "")
        """The name and the file of the traced function."""

    def scope_of(self, equation: Equation, outer: OuterScope, jaxpr: Jaxpr) -> OuterScope:
        """Return what is around an equation.

        Args:
            equation: the equation.
            outer: what is around the equation that its jaxpr belongs to.
            jaxpr: that jaxpr.
        """
        base = self._depths.setdefault(id(jaxpr), outer.depth)
        scope = scopes.scope(equation, outer.scope)
        backward = outer.backward or is_backward(equation)
        frames, in_library = self._own_frames(equation)
        if not frames:
            return replace(outer, scope=scope, backward=backward)
        is_whole = frames[0][:2] == self._root
        callers_of = (outer.frame, *frames) if not is_whole else (None, *frames)
        call = outer.call
        for at in range(max(base, 1) if is_whole else 0, min(len(frames), _DEEPEST)):
            caller = callers_of[at]
            found = Call(frames[at][0], call, self._place(caller))
            call = self.calls.setdefault(found, len(self.calls))
        if is_whole and len(frames) == 1 and base == 0 and in_library:
            found = Call("", call, self._place(frames[0]))
            call = self.calls.setdefault(found, len(self.calls))
        depth = len(frames) if is_whole else outer.depth + len(frames)
        return OuterScope(call, max(depth, outer.depth), frames[-1], scope, backward)

    def span(self, equation: Equation) -> Span | None:
        """Return the place of an equation: that of its innermost frame in the user's files."""
        # Equations created by one call share its traceback.
        traceback = equation.source_info.traceback
        kept = self._spans.get(id(traceback))
        if kept is None:
            spans = (self._span_in(file, *place) for file, place in places(equation))
            kept = traceback, next((span for span in spans if span is not None), None)
            self._spans[id(traceback)] = kept
        return kept[1]

    def _own_frames(self, equation: Equation) -> tuple[tuple[Caller, ...], bool]:
        """Return the user's frames, outermost first, and whether one of a library is below them."""
        traceback = equation.source_info.traceback
        kept = self._frames.get(id(traceback))
        if kept is None:
            frames = callers(equation)
            own = tuple(frame for frame in frames if self._is_own(frame[1]))
            below = frames[-1] if frames else None
            # Keep the traceback alive, so that its address is not reused.
            kept = traceback, (own, below is not None and is_library(below[1]))
            self._frames[id(traceback)] = kept
        return kept[1]

    def _place(self, frame: Caller | None) -> Span | None:
        """Return the place that a frame has come to."""
        return self._span_in(frame[1], *frame[2]) if frame is not None else None
