"""The shape of what each assignment binds, at the end of the name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from jaxsight.features import caveats, inputs, shardings
from jaxsight.features.hover import trees as array_trees
from jaxsight.features.hover.random_keys import key_note
from jaxsight.features.hover.text import value_notes
from jaxsight.features.inlay_hints.kind import HintDocument, LabelPart, fitted, line_end
from jaxsight.features.model import Hint
from jaxsight.features.shardings import chosen_axes, is_replicated, words
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.text import Range
from jaxsight.text import pytree_display as trees
from jaxsight.text.inert import one_line
from jaxsight.text.markdown import prose, span
from jaxsight.wire.observations import ExprValue, Observation

_SHOWN_VALUES = 2
"""Values of a label where several calls reach a place: more do not fit `inlayHints.width` (40)."""
_SEPARATOR = " | "
_LEAST = 12
"""Characters that one of several values needs to tell anything: `f32[128,256]`."""


def shape_hints(
    targets: Iterable[tuple[Range, Observation]],
    view: View,
    width: int,
    kernels: LocatedFigures | None = None,
) -> Iterator[Hint]:
    """Yield a hint for each assignment target that holds an array, or a pytree of arrays.

    Args:
        targets: ranges of assignment targets with what was observed there.
        view: the function that they were observed in.
        width: the characters of a label.
        kernels: its kernels, which may be those of an older text.
    """
    notice = caveats.notice(view)
    for range, observation in targets:
        pairs = zip(view.values(observation), view.named(observation), strict=True)
        if not (arrays := [(value, name) for value, name in pairs if trees.has_array(value.text)]):
            continue
        values, names = [value for value, _ in arrays], [name for _, name in arrays]
        axes, choice = _choice(kernels, range, values, view)
        key = key_note(view, range, (value.text for value in values))
        suffix = f" ({key})" if key else axes
        tooltip = _tooltip(values, names, observation.more)
        mark = f": {caveats.mark(view)}"
        yield Hint(
            range,
            f"{mark}{_label(values, names, observation.more, suffix, width - len(mark))}",
            "\n\n".join(filter(None, (notice, tooltip, key, choice, inputs.caller(view)))),
            view.stale,
            attached=True,
        )


def _choice(
    kernels: LocatedFigures | None, range: Range, values: list[ExprValue], view: View
) -> tuple[str, str]:
    """Return the axes that the partitioner chose, ` @ (data, -)`, and a paragraph about them.

    Until the current text is compiled they are those of the last program, with a mark. Both are
    empty for a replicated value, and if the choice is unknown.
    """
    chosen = shardings.chosen_sharding(kernels, range, values) if kernels is not None else None
    if kernels is None or chosen is None or is_replicated(chosen):
        return "", ""
    mark = "" if view.stale else caveats.mark(kernels.view)
    notice = "" if view.stale else caveats.notice(kernels.view)
    text = "\n\n".join(filter(None, (notice, prose(words(kernels, chosen)))))
    return f" {mark}{chosen_axes(chosen)}", text


def _label(values: list[ExprValue], names: list[str], more: int, suffix: str, width: int) -> str:
    """Return the first types and a suffix, as far as they fit, with `…` for what does not."""
    texts = {one_line(name): value.tree for value, name in zip(values, names, strict=True)}
    whole = _SEPARATOR.join(texts) + (f"{_SEPARATOR}{trees.ELLIPSIS}" if more else "")
    if len(texts) <= _SHOWN_VALUES and len(whole) + len(suffix) <= width:
        return f"{whole}{suffix}"
    shown = list(texts.items())[:_SHOWN_VALUES]
    rest = f"{_SEPARATOR}{trees.ELLIPSIS}"
    room = (width - len(rest) - len(_SEPARATOR) * (len(shown) - 1)) // len(shown)
    if room < _LEAST and len(shown) > 1:
        shown, room = shown[:1], width - len(rest)
    is_all = len(shown) == len(texts) and not more
    if is_all and len(shown) == 1:
        room += len(rest)
    parts = [trees.folded(array_trees.brief(tree, text, room), room) for text, tree in shown]
    label = _SEPARATOR.join(dict.fromkeys(parts)) + ("" if is_all else rest)
    if not suffix or len(label) + len(suffix) <= width:
        return f"{label}{suffix}"
    return label if label.endswith(trees.ELLIPSIS) else f"{label} {trees.ELLIPSIS}"


def _tooltip(values: list[ExprValue], names: list[str], more: int) -> str:
    """Return the types with what is known about them, those with names of sizes in both forms."""
    lines = []
    for value, name in zip(values, names, strict=True):
        types = dict.fromkeys((name, value.text))
        lines.append(" · ".join([*map(span, types), *value_notes(value)]))
        if value.tree is not None:
            lines.append(array_trees.block(value.tree))
    if more:
        lines.append(f"and {more} more")
    return "\n\n".join(lines)


def hints(shown: HintDocument) -> Iterator[Hint]:
    """Yield a hint for each target, of the current trace or else of the last one that saw it.

    Where several functions reach it, the function that contains it comes first.
    """
    shapes: dict[Range, Hint] = {}
    certain: set[Range] = set()
    fresh: set[Range] = set()
    kept = inputs.without_repeats(shown.views)
    for view in sorted(shown.views, key=lambda view: (view.stale, bool(view.assumed))):
        if view.stale and view not in kept:
            continue  # its caller's last trace says what is left of it
        own = view.subject_range
        targets: list[tuple[Range, Observation]] = []
        for place, observation in view.observed.items():
            if observation.kind != "target" or not shown.holds(place):
                continue
            if not view.stale:
                fresh.add(place)
            elif place in fresh:
                continue
            if place in shapes and (view.stale or place.start not in own):
                continue
            if view.assumed and place in certain:
                continue
            if shown.document.module.slice_text(place) == "_":
                continue
            targets.append((place, observation))
        # If the newest trace failed, the kernels are those of the last one. What is not compiled by
        # itself has those of the program that it is a part of.
        of_function = (other for other in shown.views if other.subject.id == view.subject.id)
        compiled = (view, *of_function, *(shown.programs if view.compiled_as == "inside" else ()))
        kernels = next(filter(None, map(shown.kernels, compiled)), None)
        for hint in shape_hints(targets, view, shown.wanted.width, kernels):
            shapes[hint.range] = hint
            if not view.assumed:
                certain.add(hint.range)
    if shown.wanted.shape_position == "line-end":
        yield from _at_line_ends(shapes.values(), shown)
    else:
        yield from shapes.values()


def _at_line_ends(hints: Iterable[Hint], shown: HintDocument) -> Iterator[Hint]:
    """Yield a hint at the end of each line, with names if there are several.

    Editors may draw hints of one place in any order, so they are one hint.
    """
    module = shown.document.module
    lines: dict[int, list[Hint]] = {}
    for hint in hints:
        lines.setdefault(hint.range.end.line, []).append(hint)
    for line, on_line in lines.items():
        end = line_end(module, line)
        if len(on_line) == 1:
            (hint,) = on_line
            yield replace(hint, range=end, label=hint.label.removeprefix(": "), attached=False)
            continue
        named = [
            (f"{module.slice_text(hint.range)}{hint.label}", hint)
            for hint in sorted(on_line, key=lambda hint: hint.range)
        ]
        (first, _), *more = named
        parts = [LabelPart(first, 0), *(LabelPart(label) for label, _ in more)]
        yield Hint(
            end,
            fitted(parts, shown.wanted.width, ", "),
            "\n\n".join(f"{span(label)}\n\n{hint.tooltip}" for label, hint in named),
            any(hint.stale for hint in on_line),
        )


# The shapes of what a function binds, line by line, for clients without inlay hints.


_SHAPE_WIDTH = 50
"""Characters of a shape, a choice: more than `inlayHints.width` (40), as no code follows it
here."""


def line_shapes(view: View) -> dict[int, list[tuple[str, str]]]:
    """Return the names with their shapes that each line (from 0) of the function binds."""
    inside = view.subject.range
    targets = [
        (range, observation)
        for range, observation in sorted(view.observed.items(), key=lambda entry: entry[0])
        if observation.kind in ("target", "parameter") and range.start in inside
    ]
    by_line: dict[int, list[tuple[str, str]]] = {}
    for hint in shape_hints(targets, view, _SHAPE_WIDTH):
        name = view.module.slice_text(hint.range)
        by_line.setdefault(hint.range.end.line, []).append((name, hint.label.removeprefix(": ")))
    return by_line
