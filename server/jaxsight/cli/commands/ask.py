"""Answer an agent's question about a function: `jaxsight ask FILE:FUNCTION`."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxsight.cli.command_run import start_run
from jaxsight.cli.errors import CommandError, failing_on, or_nearest
from jaxsight.cli.execution import command
from jaxsight.cli.options import Allow, AsJson, InputsChoice, Python, StdinFunction, WhichInputs
from jaxsight.cli.output.printing import Printer, as_json_line, print_json_line, versioned
from jaxsight.cli.sources.arguments import parse_address
from jaxsight.cli.trusted_paths import hosts
from jaxsight.features.asking.answer import LEAST_BUDGET
from jaxsight.features.asking.known import AgentQuestion, Topic
from jaxsight.source.module import Module

BUDGET = 2000
"""Characters of an answer by default, a choice: about 600 tokens; three are a short read."""

Where = Annotated[
    str,
    typer.Argument(
        metavar="FILE:LINE|FILE:FUNCTION",
        help="Function, line of one, or file; [cyan]-[/cyan] is the text on stdin.",
    ),
]

Question = Annotated[Topic, typer.Option("--question", "-q", help="What the answer is about.")]

Budget = Annotated[
    int, typer.Option(metavar="CHARACTERS", min=LEAST_BUDGET, help="Most characters of the answer.")
]

OneTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="Target device, as listed by [cyan]jaxsight targets[/cyan].",
        show_default="the project's",
    ),
]


@command
async def ask(
    where: Where,
    question: Question = Topic.OVERVIEW,
    target: OneTarget = None,
    budget: Budget = BUDGET,
    python: Python = None,
    allow: Allow = None,
    which: WhichInputs = InputsChoice.ALL,
    as_json: AsJson = False,
    stdin_filename: StdinFunction = None,
) -> int:
    """Answer a question about a function in few characters, for agents.

    The answer has the inputs and their origin, shapes, the dearest kernels with their lines,
    findings with verified fixes as edits, what to try, and commands that answer more.

    [bold]Examples[/bold]

        jaxsight ask model.py:loss
        jaxsight ask model.py:42 --question shapes
        jaxsight ask model.py:loss --question memory --target cuda:h100
        jaxsight ask - --stdin-filename src/model.py:loss --json < model.py
    """
    address = parse_address(where, stdin_filename)
    is_line = address.function.isdecimal()
    line = max(int(address.function) - 1, 0) if is_line else None
    name = "" if is_line else address.function
    path, source = str(address.path), address.read()
    asked = AgentQuestion(path, name, line, question, target, name=stdin_filename or where)
    allowed = [*(allow or ()), *hosts([target] if target else ())]
    async with start_run([address.path], python, allowed, which) as run:
        if target:
            with failing_on(LookupError):
                run.session.choose_target(target)
        run.session.open(path, source, in_background=False)
        names = [function.qualname for _, function in Module.parse(source).functions]
        try:
            answer = await run.get(run.session.ask(asked))
        except LookupError as error:
            message = f"{address.path.name}: {error.args[0]}"
            raise CommandError(f"{message}{or_nearest(name, names)}") from error
    if as_json:
        length = lambda record: len(as_json_line(versioned(record)))
        print_json_line(answer.record(budget, length))
    else:
        Printer().print(answer.text(budget))
    return 0
