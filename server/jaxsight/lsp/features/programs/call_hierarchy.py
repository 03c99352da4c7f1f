"""Call hierarchies: of traced Python functions, and of functions and computations of programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from lsprotocol import types

from jaxsight.features.call_hierarchy import traced_calls
from jaxsight.features.printed_programs.navigation import calls, function_at
from jaxsight.features.printed_programs.program import FUNCTION
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.printed import ReadProgram
from jaxsight.lsp.documents.text import DocumentWindow
from jaxsight.source.module import PlacedFunction
from jaxsight.text.inert import one_line

Item = types.CallHierarchyItem


@dataclass(frozen=True, slots=True)
class _Call:
    """A call, with the names of both functions, which `Item.data` holds."""

    caller: str
    callee: str
    range: types.Range


@dataclass(frozen=True, slots=True)
class _Calls:
    """All calls in a document, and the item of each function by name."""

    calls: list[_Call]
    item: Callable[[str], Item]


async def _prepare(
    context: ClientContext, params: types.CallHierarchyPrepareParams
) -> list[Item] | None:
    uri = params.text_document.uri
    view = context.documents.view(uri)
    if view is not None:
        position = view.position(params.position)
        function = (await traced_calls(context.session.engine, view.path)).at(position)
        view = context.documents.view(uri)
        return [_python_item(view, function)] if function is not None and view else None
    opened = await context.program(uri)
    if opened is None:
        return None
    key = function_at(opened.program, opened.offset(params.position))
    return [_item(opened, key)] if key is not None else None


async def _incoming(
    context: ClientContext, params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall] | None:
    known, name = await _calls(context, params.item.uri), _name(params.item)
    if known is None:
        return None
    grouped = _grouped((call.caller, call.range) for call in known.calls if call.callee == name)
    return [types.CallHierarchyIncomingCall(known.item(name), ranges) for name, ranges in grouped]


async def _outgoing(
    context: ClientContext, params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall] | None:
    known, name = await _calls(context, params.item.uri), _name(params.item)
    if known is None:
        return None
    grouped = _grouped((call.callee, call.range) for call in known.calls if call.caller == name)
    return [types.CallHierarchyOutgoingCall(known.item(name), ranges) for name, ranges in grouped]


def _grouped(ranges: Iterable[tuple[str, types.Range]]) -> Iterable[tuple[str, list[types.Range]]]:
    groups: dict[str, list[types.Range]] = {}
    for name, range in ranges:
        groups.setdefault(name, []).append(range)
    return groups.items()


async def _calls(context: ClientContext, uri: str) -> _Calls | None:
    """Return the calls in a document; `None` if it is not served."""
    view = context.documents.view(uri)
    if view is not None:
        traced = await traced_calls(context.session.engine, view.path)
        view = context.documents.view(uri)
        if view is None:
            return None
        items = {
            placed.function.qualname: _python_item(view, placed) for placed in traced.functions
        }
        listed = [
            _Call(
                call.caller.function.qualname,
                call.callee.function.qualname,
                view.to_range(call.range),
            )
            for call in traced.calls
        ]
        return _Calls(listed, items.__getitem__)
    opened = await context.program(uri)
    if opened is None:
        return None
    listed = await opened.compute(
        lambda: [
            _Call(call.caller, call.callee, opened.range(call.start, call.end))
            for call in calls(opened.program)
        ]
    )
    return _Calls(listed, partial(_item, opened))


def _name(item: Item) -> str:
    """Return the name that an item was made with, which the client sends back."""
    data: Any = item.data
    name = data.get("name") if isinstance(data, dict) else None
    return name if isinstance(name, str) else item.name


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
