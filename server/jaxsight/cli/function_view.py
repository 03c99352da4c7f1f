"""The jaxpr and the shapes of a function: what `jaxsight show` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.cells import cell_len

from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import CommandError, or_nearest
from jaxsight.cli.output.notes import print_inputs, print_notes
from jaxsight.cli.output.printing import Printer, print_document, print_json, print_markdown, styled
from jaxsight.cli.output.reports.text import LINE_END
from jaxsight.cli.sources.arguments import Address
from jaxsight.cli.traced_view import trace_view
from jaxsight.features import caveats, inputs
from jaxsight.features.hover.text import function_hover, updates
from jaxsight.features.inlay_hints.shapes import line_shapes
from jaxsight.features.model import VirtualText
from jaxsight.features.named_function import name_sizes
from jaxsight.queries.traces.located_answer import View
from jaxsight.text.inert import one_line, visible
from jaxsight.wire.messages.replies import Traced

HINT_GAP = 2
"""Least number of spaces between a line of the source and its shapes: one would look like code."""
ALIGNED_WIDTH = 76
"""Shapes are aligned after lines up to this width, a choice: longer ones push them out of view."""


class ViewName(StrEnum):
    """Views of a function, besides those of installed jaxpr interpreters."""

    HOVER = "hover"
    JAXPR = "jaxpr"
    SHAPES = "shapes"


@dataclass(frozen=True, slots=True)
class FunctionView:
    """A traced function, and the view of it that is printed."""

    view: View
    traced: Traced
    view_name: str
    document: VirtualText | None
    python: dict[str, str] | None
    """The interpreter that traced it."""

    @staticmethod
    async def of(
        run: CommandRun, address: Address, set_name: str | None, view_name: str
    ) -> FunctionView | None:
        """Trace a function; if that failed, `None` is returned and the error has been printed.

        Raises:
            CommandError: there is no such function or view, or no tracer starts.
        """
        view = await trace_view(run, address, set_name, Printer())
        if view is None:
            return None
        traced = view.answer.reply
        assert isinstance(traced, Traced)
        await run.get(name_sizes(run.session.engine, view))
        document = None
        if view_name not in (ViewName.HOVER, ViewName.SHAPES):
            showing = run.session.show(str(address.path), address.function, view_name)
            try:
                document = await run.get(showing)
            except LookupError as error:
                raise CommandError(f"{error}{or_nearest(view_name, ViewName)}") from error
        return FunctionView(view, traced, view_name, document, run.python(address.path))

    def print(self) -> None:
        """Print the view, below where its inputs are from and its caveats."""
        printer, view = Printer(), self.view
        to_stderr = self.document is not None
        if self.view_name != ViewName.HOVER or not view.assumed:  # else the hover begins with them
            print_inputs(Printer(stderr=True) if to_stderr else printer, view)
        print_notes(printer, view)
        match self.view_name:
            case ViewName.HOVER:
                hover = function_hover(view.subject, view, opens="`--what jaxpr` prints")
                print_markdown(printer, hover.markdown)
            case ViewName.SHAPES:
                _print_shapes(printer, view, self.traced)
            case _ if self.document is not None:
                print_document(self.document.text)

    def print_as_json(self) -> None:
        """Print one object: common keys, and those of the view."""
        view, traced, document = self.view, self.traced, self.document
        shown: dict[str, object] = {
            "filename": view.answer.question.path,
            "function": view.subject.name,
            "set": view.answer.question.set.name,
            "inputs": inputs.record(view),
            "parameters": [{"name": name, "value": value} for name, value in traced.parameters],
            "outputs": traced.outputs,
            "updates": list(traced.updates),
            "left_out": list(traced.left_out),
            "equations": traced.equations,
            "constants": [{"type": text, "bytes": size} for text, size in traced.constants],
            **caveats.record(view.caveats),
        }
        match self.view_name:
            case ViewName.HOVER:
                words = caveats.markdown(view.caveats)
                hover = function_hover(view.subject, view, "", words, "`--what jaxpr` prints")
                shown["markdown"] = hover.markdown
            case ViewName.JAXPR if document is not None:
                shown["jaxpr"] = document.text
            case ViewName.SHAPES:
                shown["shapes"] = [
                    {"row": line + 1, "name": name, "value": value}
                    for line, bound in line_shapes(view).items()
                    for name, value in bound
                ]
            case _ if document is not None:
                shown |= {"interpreter": self.view_name, "text": document.text}
        print_json({**shown, "python": self.python})


def _print_shapes(printer: Printer, view: View, traced: Traced) -> None:
    inside = view.subject.range
    last = inside.end.line + (1 if inside.end.column else 0)
    lines = LINE_END.split(view.module.text)[inside.start.line : last]
    shapes = {line - inside.start.line: bound for line, bound in line_shapes(view).items()}
    expanded = [visible(line.expandtabs(4)) for line in lines]
    widths = [cell_len(expanded[at]) for at in shapes]
    column = max((width for width in widths if width <= ALIGNED_WIDTH), default=0) + HINT_GAP
    for at, line in enumerate(expanded):
        gap = " " * max(column - cell_len(line), HINT_GAP)
        hint = f"{gap}# {one_line(_grouped(shapes[at]))}" if at in shapes else ""
        printer.print(styled(line, (hint, "cyan")))
    outputs = view.size_names.outputs or traced.outputs
    printer.print(styled((f"-> {one_line(outputs)}", "cyan")))
    if words := updates(traced):
        printer.print_line(words, "cyan")


def _grouped(shapes: Sequence[tuple[str, str]]) -> str:
    """Return `q, k: f32[8], n: i32[]`: adjacent names with the same shape share it."""
    groups: list[tuple[list[str], str]] = []
    for name, shape in shapes:
        if groups and groups[-1][1] == shape:
            groups[-1][0].append(name)
        else:
            groups.append(([name], shape))
    return ", ".join(f"{', '.join(names)}: {shape}" for names, shape in groups)
