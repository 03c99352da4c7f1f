"""Call the functions that programs begin with."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Mapping

from jaxsight.tracer.dry_runs.starting import test_functions
from jaxsight.tracer.dry_runs.starting.command_lines import default_config
from jaxsight.tracer.dry_runs.values.united import Value
from jaxsight.tracer.dry_runs.values.unknown import Unknown
from jaxsight.wire.messages.inputs import EntryPoint

logger = logging.getLogger(__name__)

_ARGUMENTS = frozenset({"argv", "_argv", "unused_argv", "_", "args", "_args", "unused_args"})
"""Parameters of main functions that take the command line."""


class EntryCalls:
    """Calls of the functions that a program begins with."""

    def __init__(
        self,
        entry: EntryPoint,
        own_names: Collection[str],
        run: Callable[..., object],
        read: Callable[[str], str],
    ) -> None:
        """Prepare the calls of an entry.

        Args:
            entry: where the program begins.
            own_names: the names that the file binds.
            run: calls a function with arguments.
            read: returns the text of a file.
        """
        self._entry, self._own_names, self._run, self._read = entry, own_names, run, read

    def each(self, names: Mapping[str, Value]) -> None:
        """Call the functions of the program: a test that fails is not the end of the others.

        Those with lists of parameters are called again once all have been called.
        """
        for turn in range(test_functions.TURNS):
            for function in self._entry.function.split():
                try:
                    self._call(names, function, turn)
                except Exception as error:  # noqa: BLE001 - user code
                    logger.debug("%s ended: %r", function, error)

    def _call(self, names: Mapping[str, Value], function: str, turn: int) -> None:
        """Call a function, or a test's method, with the arguments that a program would give it."""
        first, *rest = function.split(".")
        target = names[first]
        of_list = False
        if rest and isinstance(target, type):
            of_list = not hasattr(target, rest[0])
            if of_list:
                made = test_functions.made_of(target, rest[0], self._own_names)
                if turn >= len(made):
                    return
                rest = [made[turn]]
            target = test_functions.instance(target, rest[0])
            for name in test_functions.SET_UP:
                if callable(set_up := getattr(target, name, None)):
                    self._run(set_up)
        for part in rest:
            target = getattr(target, part)
        if turn and not of_list and turn >= test_functions.cases(target, self._own_names):
            return
        arguments = {} if of_list else self._arguments(target, names, turn=turn)
        self._run(target, **arguments)

    def _arguments(
        self,
        function: Callable[..., object],
        names: Mapping[str, object],
        depth: int = 4,
        turn: int = 0,
    ) -> dict[str, object]:
        """Return the arguments of a main function or a test, by its parameters; of fixtures too."""
        given: dict[str, object] = dict(
            test_functions.parametrized(function, turn, self._own_names)
        )
        try:
            # Those that a wrapper gives the function are not its own.
            parameters = [*inspect.signature(function, follow_wrapped=False).parameters.values()]
            if any(each.kind is each.VAR_KEYWORD for each in parameters):
                parameters = [*inspect.signature(function).parameters.values()]
        except (TypeError, ValueError):
            return {}
        kinds = inspect.Parameter
        for parameter in parameters:
            name = parameter.name
            if parameter.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD, kinds.POSITIONAL_ONLY):
                continue
            if name in given or parameter.default is not kinds.empty:
                continue
            fixture = test_functions.fixture_of(names.get(name))
            if fixture is not None and depth:
                try:
                    made = fixture(**self._arguments(fixture, names, depth - 1))
                    # What follows the `yield` of a fixture is for after the test.
                    given[name] = next(made) if inspect.isgenerator(made) else made
                except Exception:  # noqa: BLE001 - user code
                    given[name] = Unknown()
            elif name in _ARGUMENTS:
                given[name] = [self._entry.file]
            elif name == "config":
                given[name] = default_config(self._entry.file, self._read)
            else:
                given[name] = Unknown()
        return given
