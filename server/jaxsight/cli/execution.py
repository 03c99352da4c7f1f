"""Run the function of a command, and end the process with its exit status."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, ParamSpec

from jaxsight.cli.errors import UNUSABLE, CommandError
from jaxsight.cli.output.printing import Printer, tolerate
from jaxsight.text.inert import Formatter

if TYPE_CHECKING:
    from jaxsight.cli.resident.session_pool import SessionPool

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells report it: 128 + SIGINT."""

P = ParamSpec("P")


def command(
    function: Callable[P, int | Coroutine[object, None, int]],
) -> Callable[P, NoReturn]:
    """Return a function for click that calls `function` and exits with the status it returns.

    The signature and the docstring, which have the options and the help, are the same.
    """

    @functools.wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> NoReturn:
        # The engine's warnings (such as a tracer that died) are findings, and not in the log.
        handler = logging.StreamHandler()
        handler.setFormatter(Formatter("%(name)s: %(message)s"))
        logging.basicConfig(level=logging.ERROR, handlers=[handler])
        tolerate()
        try:
            outcome = function(*arguments, **options)
            if isinstance(outcome, int):
                code = outcome
            elif THIS_PROCESS.run is not None:
                code = THIS_PROCESS.run(outcome)
            else:
                import asyncio  # which some commands do not wait for (30 ms)

                code = asyncio.run(outcome)
        except CommandError as error:
            Printer(stderr=True).labelled("error", "bold red", str(error))
            code = UNUSABLE
        except KeyboardInterrupt:
            code = INTERRUPTED
        sys.exit(code)

    return run


@dataclass(slots=True)
class ThisProcess:
    """What a server sets for all commands of its process."""

    run: Callable[[Coroutine[object, None, int]], int] | None = None
    """Runs a command in an event loop that stays."""
    sessions: SessionPool | None = None


THIS_PROCESS = ThisProcess()
