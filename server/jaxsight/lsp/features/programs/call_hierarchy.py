"""Call hierarchies: of traced Python functions, and of functions and computations of programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lsprotocol import types

from jaxsight.features.call_hierarchy import traced_calls
from jaxsight.features.printed_programs.editor_views import calls, function_at
from jaxsight.features.printed_programs.program import FUNCTION
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.printed import ReadProgram
from jaxsight.lsp.documents.text import DocumentWindow
from jaxsight.source.module import PlacedFunction
from jaxsight.text.inert import one_line

Item = types.CallHierarchyItem


async def _prepare(
    context: ClientContext, params: types.CallHierarchyPrepareParams
) -> list[Item] | None:
    uri = params.text_document.uri
    view = context.documents.window_of(uri)
    if view is not None:
        position = view.position(params.position)
        function = (await traced_calls(context.session.engine, view.path)).at(position)
        view = context.documents.window_of(uri)
        return [_python_item(view, function)] if function is not None and view else None
    opened = await context.program(uri)
    if opened is None:
        return None
    key = function_at(opened.program, opened.offset(params.position))
    return [_item(opened, key)] if key is not None else None


async def _incoming(
    context: ClientContext, params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall] | None:
    grouped = await _grouped(context, params.item, lambda call: call[::-1])
    return None if grouped is None else [types.CallHierarchyIncomingCall(*g) for g in grouped]


async def _outgoing(
    context: ClientContext, params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall] | None:
    grouped = await _grouped(context, params.item, lambda call: call)
    return None if grouped is None else [types.CallHierarchyOutgoingCall(*g) for g in grouped]


_Ends = tuple[str, str]
"""The names of a caller and of what it calls, as `Item.data` holds them."""


async def _grouped(
    context: ClientContext, item: Item, from_item: Callable[[_Ends], _Ends]
) -> list[tuple[Item, list[types.Range]]] | None:
    """Return the other functions of a function's calls, which `from_item` turns to begin with it.

    Returns `None` if the document is not served.
    """
    known = await _calls(context, item.uri)
    if known is None:
        return None
    calls, item_of = known
    data: object = item.data  # what the item was made with, which the client sends back
    name = data.get("name") if isinstance(data, dict) else None
    own = name if isinstance(name, str) else item.name
    groups: dict[str, list[types.Range]] = {}
    for ends, range in calls:
        here, other = from_item(ends)
        if here == own:
            groups.setdefault(other, []).append(range)
    return [(item_of(name), ranges) for name, ranges in groups.items()]


async def _calls(
    context: ClientContext, uri: str
) -> tuple[list[tuple[_Ends, types.Range]], Callable[[str], Item]] | None:
    """Return the calls in a document, and what makes the items of functions by name."""
    view = context.documents.window_of(uri)
    if view is not None:
        traced = await traced_calls(context.session.engine, view.path)
        view = context.documents.window_of(uri)
        if view is None:
            return None
        items = {
            placed.function.qualname: _python_item(view, placed) for placed in traced.functions
        }
        listed = [
            (
                (call.caller.function.qualname, call.callee.function.qualname),
                view.to_range(call.range),
            )
            for call in traced.calls
        ]
        return listed, items.__getitem__
    opened = await context.program(uri)
    if opened is None:
        return None
    listed = await opened.compute(
        lambda: [
            ((call.caller, call.callee), opened.range(call.start, call.end))
            for call in calls(opened.program)
        ]
    )
    return listed, partial(_item, opened)


def _python_item(view: DocumentWindow, placed: PlacedFunction) -> Item:
    return Item(
        name=placed.function.qualname.rpartition(".")[2],
        detail="traced by jaxsight",
        kind=types.SymbolKind.Function,
        uri=view.uri,
        range=view.to_range(placed.range),
        selection_range=view.to_range(placed.name_range),
        data={"name": placed.function.qualname},
    )


def _item(opened: ReadProgram, key: str) -> Item:
    block = opened.program.functions[key]
    name = key.removeprefix(FUNCTION)
    start = end = block.start
    if block.name_start >= 0:
        start, end = opened.program.word(block.name_start)
        name = opened.program.text[start:end]
    elif opened.shows is not None:
        name = opened.shows.function
    return Item(
        name=one_line(name) or opened.program.language,
        detail="entry" if block.is_entry else "",
        kind=types.SymbolKind.Function,
        uri=opened.uri,
        # A jaxpr comes after its name, and an item's range contains its selection.
        range=opened.range(min(block.start, start), max(block.end, end)),
        selection_range=opened.range(start, end),
        data={"name": key},
    )


def register(context: ClientContext) -> None:
    """Serve the three requests."""
    context.serve(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, partial(_prepare, context))
    context.serve(types.CALL_HIERARCHY_INCOMING_CALLS, partial(_incoming, context))
    context.serve(types.CALL_HIERARCHY_OUTGOING_CALLS, partial(_outgoing, context))
