"""Tracks the tree of calls while a program runs."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jaxsight_repro.capturing.call_tree import apis, failing, public_functions, wrapping
from jaxsight_repro.capturing.call_tree.apis import CallArguments
from jaxsight_repro.capturing.call_tree.building import Building, Threads
from jaxsight_repro.capturing.call_tree.packing import NOTHING, Values
from jaxsight_repro.capturing.call_tree.records import (
    Arguments,
    Bind,
    ErrorMark,
    FailedStep,
    FunctionRef,
    Item,
    JaxCall,
    TrackedTree,
    UserCall,
)
from jaxsight_repro.capturing.call_tree.wrapping import Wrapped, wrapper_of
from jaxsight_repro.compat import api_hooks, primitive_binds

if TYPE_CHECKING:  # JAX is not imported before the program imports it
    from jaxsight_source.compat.jaxpr_types import Context, Primitive

_MOST_CALLS = 4
"""Calls of a function that are kept for later ones that JAX answers from its caches, a choice."""

_RULES = frozenset(
    {"subfuns", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "out_trees", "fun", "call"}
)
"""Parameters of binds that are functions, which may hold tracers."""


class Tracker:
    """Records the calls of JAX's functions that take functions, and what runs in these."""

    def __init__(self) -> None:
        self.active = False
        self._threads = Threads()
        self._installed = False
        self._jax: ModuleType | None = None
        self._tracer: type = object
        self._pullbacks: tuple[type, ...] = ()
        self._trace_context = primitive_binds.TraceContext()
        self._current_context: Callable[[], Context | None] = lambda: None
        self._failed: tuple[ErrorMark, TrackedTree] | None = None
        self.on_call: Callable[[bool], None] = lambda starts: None
        """Is called when an outermost call starts, and when it ends, while `current` has it."""

    def install(self) -> None:
        """Start recording; JAX need not be imported yet."""
        self.active = True
        if not self._installed:
            self._installed = True
            api_hooks.install(self._boundary, apis.APIS, self._ready)

    def uninstall(self) -> None:
        """Stop recording. What is wrapped stays so, and calls the original."""
        self.active = False

    def failed(self, error: BaseException) -> TrackedTree | None:
        """Return the tree of the outermost call that an exception passed through, if any."""
        seen: set[int] = set()
        cause: BaseException | None = error
        while cause is not None and id(cause) not in seen:
            if self._failed is not None and self._failed[0] is ErrorMark.of(cause):
                return self._failed[1]
            seen.add(id(cause))
            cause = cause.__cause__ or cause.__context__
        if self._jax is None:
            return None
        # The error may be one that a function of JAX raised outside of all calls.
        building = self._new_building("")
        step = failing.step_of(error, building.values, self._tracer, _jit_options, eagerly=True)
        if step is None or (isinstance(step, FailedStep) and step.kind == "raise"):
            return None
        tree = building.tree(error)
        tree.root = step
        building.forget()
        return tree

    def _new_building(self, name: str) -> Building:
        assert self._jax is not None
        values = Values(lambda value: isinstance(value, self._tracer), self._jax, self._pullbacks)
        building = Building(JaxCall(name, None, Arguments()), values)
        values.function_of = building.function_of
        return building

    def current(self) -> TrackedTree | None:
        """Return the tree of the call that runs on this thread, as far as it is known."""
        building = self._threads.state.building
        return None if building is None else building.tree()

    # What JAX calls.

    def _ready(self) -> None:
        self._jax = importlib.import_module("jax")
        self._tracer = primitive_binds.tracer_type()
        self._current_context = primitive_binds.current_context()
        self._trace_context = primitive_binds.trace_context()
        primitive_binds.observe(self._bind)
        for name, attributes in apis.CUSTOM.items():
            api_hooks.wrap_calls(name, functools.partial(self._custom, name, attributes))
        with contextlib.suppress(AttributeError):
            self._pullbacks = (api_hooks.wrap_pullbacks(self._pullback),)
        api_hooks.wrap_jitted(self._jitted, self._jit_method)
        for module in (__file__, wrapping.__file__, primitive_binds.__file__):
            api_hooks.exclude(module)

    def _boundary(self, fun: Callable[..., Any], name: str) -> Callable[..., object]:
        """Wrap a function of JAX: one that is called with functions, or that returns one."""
        api = apis.APIS.get(name)
        if api is None:
            return fun

        def called(*args: object, **kwargs: object) -> object:
            if self._is_internal():
                return fun(*args, **kwargs)
            wrapped = self._with_functions(api, args, kwargs)
            if wrapped is None:
                if api.curried and not args and not any(n in kwargs for _, n in api.functions):
                    return functools.partial(called, **kwargs)  # a decorator with options
                return fun(*args, **kwargs)
            if not api.curried:
                with self._call(api.name, None, wrapped) as done:
                    return done(fun(*wrapped[0], **wrapped[1]))
            before = self._threads.state.jit_options
            if api.name == "jax.jit":
                self._threads.state.jit_options = wrapped
            try:
                made = fun(*wrapped[0], **wrapped[1])
            except Exception:
                with self._call(api.name, None, wrapped):
                    raise
            finally:
                self._threads.state.jit_options = before
            if api.name != "jax.jit":
                return self._transformed(api, wrapped, made)
            with contextlib.suppress(AttributeError):
                made.__wrapped__ = made.__wrapped__.__wrapped__
                made._jaxsight_options = wrapped
            return made

        outer = functools.wraps(fun)(called)
        setattr(outer, api_hooks.WRAPPED, True)
        return outer

    def _is_internal(self) -> bool:
        """Return whether calls are not recorded now: JAX's own code calls, or nothing records."""
        state = self._threads.state
        if not self.active or state.inside or self._jax is None:
            return True
        return state.body is not None and self._trace_context.trace is not state.trace

    def _wrap(self, fun: object) -> object:
        """Return the wrapper of a function, if it is the user's."""
        if not callable(fun) or isinstance(fun, type) or not wrapping.is_users(fun):
            return fun
        return wrapper_of(fun, self._user_call)

    def _with_functions(
        self, api: apis.Api, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> CallArguments | None:
        """Return the arguments with the user's functions wrapped; None if there are none."""
        count = 0

        def replaced(fun: object) -> object:
            nonlocal count
            wrapped = self._wrap(fun)
            count += isinstance(wrapped, Wrapped)
            return wrapped

        arguments = api.with_functions(args, kwargs, replaced)
        return arguments if count else None

    def _transformed(
        self, api: apis.Api, outer: CallArguments, made: Callable[..., object]
    ) -> Callable[..., object]:
        """Wrap the function that a transformation returned."""

        @functools.wraps(made)
        def transformed(*args: object, **kwargs: object) -> object:
            if self._is_internal():
                return made(*args, **kwargs)
            with self._call(api.name, outer, (args, kwargs)) as done:
                return done(made(*args, **kwargs))

        fun = getattr(made, "__wrapped__", None)
        if isinstance(fun, Wrapped):
            transformed.__wrapped__ = fun.__wrapped__
        transformed._jaxsight_made_by = (api.name, *outer)  # type: ignore[attr-defined]
        transformed.__dict__.pop("_jaxsight_wrapper", None)
        return transformed

    def _jitted(
        self, miss: Callable[..., tuple[object, ...]], fun: Callable[..., object]
    ) -> Callable[..., tuple[object, ...]]:
        """Wrap the function that a jitted one calls if it has no compiled program."""
        options = self._threads.state.jit_options
        if options is None or not isinstance(fun, Wrapped):
            return miss

        def cache_miss(*args: object, **kwargs: object) -> tuple[object, ...]:
            if self._is_internal():
                return miss(*args, **kwargs)
            with self._call("jax.jit", options, (args, kwargs)) as done:
                results = miss(*args, **kwargs)
                done(results[0])
                return results

        return cache_miss

    def _jit_method(self, private: Callable[..., object], name: str) -> Callable[..., object]:
        @functools.wraps(private)
        def called(jitted: object, *args: object, **kwargs: object) -> object:
            options = getattr(jitted, "_jaxsight_options", None)
            if not self.active or self._threads.state.inside or options is None:
                return private(jitted, *args, **kwargs)
            with self._call("jax.jit", options, (args, kwargs), name):
                return private(jitted, *args, **kwargs)

        return called

    def _pullback(self, original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def called(pullback: object, *args: object, **kwargs: object) -> object:
            building = self._threads.state.building
            is_known = building is not None and building.values.has_number(pullback)
            if self._is_internal() or not is_known:
                return original(pullback, *args, **kwargs)
            with self._call("pullback", None, ((pullback, *args), kwargs)) as done:
                return done(original(pullback, *args, **kwargs))

        return called

    def _custom(
        self, name: str, attributes: tuple[str, ...], original: Callable[..., object]
    ) -> Callable[..., object]:
        """Wrap the `__call__` of `jax.custom_jvp` or `jax.custom_vjp`."""

        @functools.wraps(original)
        def called(custom: object, *args: object, **kwargs: object) -> object:
            if self._is_internal():
                return original(custom, *args, **kwargs)
            if not wrapping.is_users(getattr(custom, "fun", None)):
                # One of JAX's own, such as `jax.nn.relu`.
                is_recorded = self._threads.state.body is not None
                path = public_functions.path_of(custom) if is_recorded else None
                if path is None:
                    return original(custom, *args, **kwargs)
                with self._call(path, None, (args, kwargs)) as done:
                    return done(original(custom, *args, **kwargs))
            rules = []
            for attribute in attributes:
                rule = getattr(custom, attribute, None)
                if rule is not None:
                    rule = self._wrap(rule)
                    setattr(custom, attribute, rule)
                rules.append(rule)
            options = {"nondiff_argnums": getattr(custom, "nondiff_argnums", ())}
            with self._call(name, (tuple(rules), options), (args, kwargs)) as done:
                return done(original(custom, *args, **kwargs))

        return called

    # Recording.

    @contextlib.contextmanager
    def _call(
        self, name: str, outer: CallArguments | None, inner: CallArguments, method: str = ""
    ) -> Iterator[Callable[[object], object]]:
        """Record a call of JAX while it runs; yield a function that records its result."""
        state = self._threads.state
        building = state.building
        root = building is None
        if building is None:
            building = self._new_building(name)
        values = building.values
        call = building.root if root else JaxCall(name, None, Arguments())
        call.method = method
        if outer is not None:
            call.outer = values.arguments(*outer)
        call.inner = values.arguments(*inner)
        if state.body is not None:
            state.body.append(call)
        before = state.building, state.body, state.call, state.inside, state.binds
        state.building, state.call, state.inside = building, call, True
        records = state.body is not None and name in apis.BINDS_PROGRAMS
        state.binds = call.binds if records else None

        def done(result: object) -> object:
            if name in apis.RETURN_FUNCTIONS and isinstance(result, tuple):
                values.made = result[1]
            call.bound = values.packed(result) if call.binds else None
            call.result = values.packed(result, values.result)
            values.made = NOTHING
            return result

        raised: BaseException | None = None
        if root:
            self.on_call(True)
        try:
            yield done
        except BaseException as error:
            call.failed, call.error = True, ErrorMark.of(error)
            raised = error
            raise
        finally:
            self._recall(building, call)
            if root:
                self.on_call(False)
            state.building, state.body, state.call, state.inside, state.binds = before
            if root:
                if raised is not None:
                    self._failed = ErrorMark.of(raised), building.tree(raised)
                building.forget()
            raised = None

    def _recall(self, building: Building, call: JaxCall) -> None:
        """Add earlier calls of functions that JAX did not call, as its caches have their jaxprs."""
        called = {user.function for user in call.users}
        for operand in call.operands():
            if not isinstance(operand, FunctionRef) or operand.number in called:
                continue
            function = building.functions[operand.number]
            if function.calls or function.made_by is not None:
                continue
            for user, values in building.wrappers[operand.number].history:
                if values is not building.values:
                    building.others.append(values)
                    recalled = UserCall(
                        operand.number, user.arguments, user.body, user.result, user.failed
                    )
                    function.calls.append(recalled)

    def _user_call(
        self, wrapper: Wrapped, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Call a user's function, and record its body."""
        state = self._threads.state
        building, parent = state.building, state.call
        if not self.active or building is None or parent is None:
            return wrapper.__wrapped__(*args, **kwargs)
        function = building.function(wrapper)
        values = building.values
        call = UserCall(
            function.number,
            values.arguments(args, kwargs, values.result),  # each has a new number
            context=self._current_context(),
            axes=primitive_binds.current_axes(),
            checks_variance=primitive_binds.checks_variance(),
        )
        parent.users.append(call)
        function.calls.append(call)
        wrapper.history = [*wrapper.history[1 - _MOST_CALLS :], (call, values)]
        before = state.body, state.inside, state.trace
        state.body, state.inside, state.trace = call.body, False, self._trace_context.trace
        try:
            result = wrapper.__wrapped__(*args, **kwargs)
            state.inside = True
            with contextlib.suppress(Exception):  # JAX reports results that it cannot flatten
                call.result = values.packed(result)
            return result
        except (Exception, KeyboardInterrupt) as error:
            state.inside = True
            call.failed = True
            self._add_step(call, error, values)
            raise
        finally:
            state.body, state.inside, state.trace = before

    def _add_step(self, call: UserCall, error: BaseException, values: Values) -> None:
        """Add the step that raised an error, unless it is a call that is recorded."""
        last = call.body[-1] if call.body else None
        if isinstance(last, JaxCall) and last.failed and last.error is ErrorMark.of(error):
            return
        step = failing.step_of(error, values, self._tracer, _jit_options)
        if step is not None:
            if isinstance(last, Bind) and last.failed:
                call.body.pop()
            call.body.append(step)

    def _bind(self, original: primitive_binds.Bind) -> primitive_binds.Bind:
        """Wrap what binds primitives: record those that a user's function binds.

        It runs once per equation, also of JAX's own functions, and most of what capturing costs is
        its time.
        """
        threads, context = self._threads, self._trace_context
        current_context = self._current_context

        def bind(primitive: Primitive, /, *args: object, **params: object) -> object:
            state = threads.state
            inside = state.inside
            binds = state.binds
            body: list[Bind] | list[Item] | None = binds if inside else state.body
            if body is None or context.trace is not state.trace or not self.active:
                return original(primitive, *args, **params)
            building = state.building
            assert building is not None
            values = building.values
            kept = params
            if not _RULES.isdisjoint(params):
                kept = {name: value for name, value in params.items() if name not in _RULES}
            record = Bind(primitive, kept, values.operands(args), (), current_context())
            body.append(record)
            state.inside, state.binds = True, None
            try:
                results = original(primitive, *args, **params)
            except BaseException:
                record.failed = True
                raise
            finally:
                state.inside, state.binds = inside, binds
            listed = results if isinstance(results, (list, tuple)) else (results,)
            record.results = tuple([values.define(result) for result in listed])
            return results

        return bind


def _jit_options(fun: object) -> CallArguments | None:
    """Return the arguments of `jax.jit` for a function that it returned, or None."""
    return getattr(fun, "_jaxsight_options", None)
