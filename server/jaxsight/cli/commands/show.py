"""Print the jaxpr and shapes of a function: `jaxsight show FILE:FUNCTION`."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from jaxsight.cli import parameters as common
from jaxsight.cli.command_run import start_run
from jaxsight.cli.errors import FOUND
from jaxsight.cli.execution import command
from jaxsight.cli.sources.arguments import parse_address

_VIEW = "jaxsight.cli.function_view"


@command
async def show(
    function: common.Function,
    *,
    set_name: common.SetName = None,
    view_name: str = "hover",
    python: common.Python = None,
    allow: common.Allow = None,
    which: common.WhichInputs = common.InputsChoice.ALL,
    as_json: common.AsJson = False,
    stdin_filename: common.StdinFunction = None,
) -> int:
    """Show the jaxpr and the shapes of a function.

    The function is traced with its example inputs, else as it is called, else with assumed inputs.

    [bold]Examples[/bold]

        jaxsight show model.py:loss
        jaxsight show model.py:Attention.__call__ --what shapes
        jaxsight show model.py:attention --set decode --what jaxpr
        jaxsight show - --stdin-filename src/model.py:loss < model.py

    Args:
        view_name (--what WHAT): View to print. [cyan]hover[/cyan]: signature and jaxpr, as in the
            editor; [cyan]jaxpr[/cyan]: the whole jaxpr; [cyan]shapes[/cyan]: the source with the
            shapes of assigned values; or the name of a jaxpr interpreter that an installed package
            registers.
    """
    address = parse_address(function, stdin_filename)
    address = replace(address, text=address.read())
    async with start_run([address.path], python, allow, which, ahead=[_VIEW]) as run:
        module = import_module(_VIEW)
        shown = await module.FunctionView.of(run, address, set_name, view_name)
    if shown is None:
        return FOUND
    shown.print_as_json() if as_json else shown.print()
    return 0
