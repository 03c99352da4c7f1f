"""A tree while it is recorded, and where each thread is in it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jaxsight_repro.capturing.call_tree import records, wrapping
from jaxsight_repro.capturing.call_tree.apis import CallArguments
from jaxsight_repro.capturing.call_tree.packing import Values
from jaxsight_repro.capturing.call_tree.wrapping import Wrapped

if TYPE_CHECKING:  # JAX is not imported before the program imports it
    from jaxsight_source.compat.jaxpr_types import Aval


class Threads(threading.local):
    """The state of each thread: an object of its own, which is read faster than thread locals."""

    def __init__(self) -> None:
        self.state = ThreadState()


class ThreadState:
    """Where a thread is in the tree."""

    __slots__ = ("binds", "body", "building", "call", "inside", "jit_options", "trace")

    def __init__(self) -> None:
        self.building: Building | None = None
        self.body: list[records.Item] | None = None
        """The body of the user's function that runs, if any."""
        self.call: records.JaxCall | None = None
        """The innermost call of JAX."""
        self.trace: object = None
        """What that function is traced by: within JAX's own jitted functions, it is another."""
        self.binds: list[records.Bind] | None = None
        """The primitives that the innermost call of JAX binds, if they are recorded."""
        self.inside = False
        """Whether JAX's own code runs, whose calls are not recorded."""
        self.jit_options: CallArguments | None = None


class Building:
    """A tree that is being recorded."""

    def __init__(self, root: records.JaxCall, values: Values) -> None:
        self.root = root
        self.values = values
        self.functions: dict[int, records.TrackedFunction] = {}
        self.others: list[Values] = []
        """The values of earlier trees, to which calls from JAX's caches refer."""
        self.numbers: dict[int, int] = {}
        self.wrappers: list[Wrapped] = []

    def function(self, wrapper: Wrapped) -> records.TrackedFunction:
        """Return the function of a wrapper."""
        number = self.numbers.get(id(wrapper))
        if number is None:
            number = len(self.functions)
            self.numbers[id(wrapper)] = number
            self.wrappers.append(wrapper)
            fun = wrapper.__wrapped__
            name, parameters = wrapping.name_of(fun), wrapping.parameters_of(fun)
            self.functions[number] = records.TrackedFunction(number, name, parameters)
            made_by = getattr(fun, "_jaxsight_made_by", None)
            if made_by is not None:
                api, args, kwargs = made_by
                self.functions[number].made_by = api, self.values.arguments(args, kwargs)
        return self.functions[number]

    def function_of(self, value: object) -> int | None:
        return self.function(value).number if isinstance(value, Wrapped) else None

    def forget(self) -> None:
        """Drop the functions: they live as long as without a tracker."""
        self.wrappers.clear()
        self.values.forget()

    def tree(self, error: BaseException | None = None) -> records.TrackedTree:
        """Return what has been recorded so far."""
        avals: dict[int, Aval] = {}
        arrays: dict[int, object] = {}
        for values in (*self.others, self.values):
            avals.update(values.avals)
            arrays.update(values.arrays)
        return records.TrackedTree(
            self.root, dict(self.functions), avals, arrays, str(error) if error else ""
        )
