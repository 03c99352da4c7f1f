"""Answer an agent's question about a function: `jaxsight ask FILE:FUNCTION`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from jaxsight.cli import parameters as common
from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import CommandError, failing_on, or_nearest
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import Printer, as_json_line, print_json_line, versioned
from jaxsight.cli.sources.arguments import (
    Address,
    in_revision,
    parse_address,
    parse_against,
    paths_of,
)
from jaxsight.features.asking.asking import AgentQuestion, ComparedProgram, Topic, first_column
from jaxsight.features.asking.parts import LEAST_BUDGET
from jaxsight.source.module import Module

BUDGET = 2000
"""Characters of an answer by default, a choice: about 600 tokens; three are a short read."""

Budget = Annotated[int, f"(CHARACTERS>={LEAST_BUDGET}): Most characters of the answer."]


@command
async def ask(
    where: str,
    *,
    question: Topic = Topic.OVERVIEW,
    target: common.Target = None,
    against: common.Against = None,
    budget: Budget = BUDGET,
    python: common.Python = None,
    allow: common.Allow = None,
    which: common.WhichInputs = common.InputsChoice.ALL,
    as_json: common.AsJson = False,
    stdin_filename: common.StdinFunction = None,
) -> int:
    """Answer a question about a function in few characters, for agents.

    The answer has the inputs and their origin, shapes, the dearest kernels with their lines,
    findings with verified fixes as edits, what to try, and commands that answer more.
    [bold]--question compare[/bold] compares with the last commit, or text on stdin with the file.

    [bold]Examples[/bold]

        jaxsight ask model.py:loss
        jaxsight ask model.py:42 --question shapes
        jaxsight ask model.py:loss --question memory --target cuda:h100
        jaxsight ask model.py:loss --question compare --against HEAD~1
        jaxsight ask - --stdin-filename src/model.py:loss --json < model.py

    Args:
        where (FILE:LINE|FILE:FUNCTION): Function, line of one, or file; [cyan]-[/cyan] is the text
            on stdin.
        question (--question -q): What the answer is about.
    """
    address = parse_address(where, stdin_filename)
    is_line = address.function.isdecimal()
    line = max(int(address.function) - 1, 0) if is_line else None
    function = "" if is_line else address.function
    path, source = str(address.path), address.read()
    asked = AgentQuestion(path, function, line, question, target, stdin_filename or where)
    module = Module.parse(source)
    baseline = parse_against(against, address)
    paths = paths_of(address, baseline)
    async with start_run(paths, python, allow, which, targets=[target]) as run:
        run.choose_target(target)
        if baseline is not None or question is Topic.COMPARE:
            before = await _before(run, address, asked, module, baseline)
            asked = replace(asked, topic=Topic.COMPARE, before=before)
        run.session.open(path, source, in_background=False)
        try:
            answer = await run.get(run.session.ask(asked))
        except LookupError as error:
            names = [each.qualname for _, each in module.functions]
            message = f"{address.path.name}: {error.args[0]}"
            raise CommandError(f"{message}{or_nearest(function, names)}") from error
    if as_json:
        length = lambda record: len(as_json_line(versioned(record)))
        print_json_line(answer.record(budget, length))
    else:
        Printer().print(answer.text(budget))
    return 0


async def _before(
    run: CommandRun,
    address: Address,
    asked: AgentQuestion,
    module: Module,
    baseline: Address | None,
) -> ComparedProgram:
    """Return what a function is compared with.

    That is another function or a revision, and without `baseline` the file of the text on stdin, or
    the last commit.

    Raises:
        CommandError: there is no such function or revision.
    """
    function = asked.function
    if asked.line is not None:
        with failing_on(LookupError, about=f"{address.path.name}: "):
            around = module.function_at(first_column(module, asked.line))
        function = around[1].qualname if around is not None else ""
    if not function:
        raise CommandError("missing function: write FILE:FUNCTION to compare")
    if baseline is None and address.text is not None:
        baseline = replace(address, text=None)
        name = f"{address.path.name} as saved"
    else:
        baseline = baseline or in_revision(address, "HEAD")
        name = baseline.revision or f"{baseline.path.name}:{baseline.function}"
        function = function if baseline.revision else baseline.function
    path = str(baseline.path)
    run.session.open(path, baseline.read(), in_background=False)
    run.show_step(f"compiling {function} of {name}")
    return await run.get(run.session.compared(path, function, asked.target, name))
