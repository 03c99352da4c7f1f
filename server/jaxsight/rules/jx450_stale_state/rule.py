"""JX450: a compiled function reads state that changes later: it keeps what it was when traced.

Found in the text of the module: variables, attributes of a static `self`, static arguments that are
changed in place. Where a change is seen between two calls, it is certain; where another function
makes it, the message says that later changes are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxsight.rules.jx450_stale_state.frames import Instant, ScopeFrame, StateChange, joined
from jaxsight.rules.jx450_stale_state.reads import (
    Assignment,
    StateFacts,
    StateRead,
    node_at,
    state_facts,
)
from jaxsight.rules.rule import ModuleViolation, NodeViolation, Rule
from jaxsight.rules.text.jitted import JittedModule, jitted_module
from jaxsight.rules.text.statements import Statement, imports_of
from jaxsight.rules.text.traced import TracedFunction, TracedModule, traced_module
from jaxsight.rules.wording import quoted

RULE = Rule(__name__, "Compiled function reads state that changes later.", severity="warning")

_PYTREES = frozenset({"register_pytree_node_class", "register_pytree_with_keys_class"})
"""Decorators of classes whose objects are still compared by identity where they are static."""
_SHORT = 20
"""Characters of each of the two names in a message."""


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield reads of what changes after it was traced, once for each variable and attribute."""
    module = traced_module(statements)
    if not any(function.compiled for function in module.functions.values()):
        return
    imports = imports_of(statements)
    facts = [statement.read(state_facts, imports) for statement in statements]
    yield from _Module(module, jitted_module(statements), facts).violations()


@dataclass(frozen=True, slots=True)
class _Reader:
    """A compiled function that reads a variable or an attribute."""

    function: TracedFunction
    read: StateRead

    @property
    def name(self) -> str:
        return self.function.function.name


class _Module:
    def __init__(
        self, module: TracedModule, jitted: JittedModule, facts: Sequence[StateFacts]
    ) -> None:
        self._module = module
        self._facts = facts
        self._jitted = dict(jitted.functions)
        self._instances = {("", name): class_ for name, class_ in jitted.instances}
        self._instances |= {(of, name): made for each in facts for of, name, made in each.instances}
        self._compared = {name for each in facts for name in each.compared}
        self._assignments = [each for fact in facts for each in fact.assignments]
        self._parameter_reads = {read for fact in facts for read in fact.parameter_reads}
        self._method_reads = {
            (function, read.name.partition(".")[2])
            for fact in facts
            for function, read in fact.reads
            if read.owner
        }
        self._readers = [
            _Reader(module.functions[function], read)
            for fact in facts
            for function, read in fact.reads
            if function in module.functions and module.functions[function].compiled
        ]
        self._outside: dict[str, list[_Reader]] = {}
        for reader in self._readers:
            if not reader.read.owner:
                self._outside.setdefault(reader.read.holder, []).append(reader)
        self._local = {(of, name): inner for fact in facts for of, name, inner in fact.local}
        self._reached: dict[str, frozenset[str]] = {}
        self._by_calls: list[tuple[tuple[str, str], ModuleViolation]] = []
        """What methods change, for where the read itself is not reported."""

    def violations(self) -> Iterator[ModuleViolation]:
        """Yield the findings, certain ones first."""
        reported: set[tuple[str, str]] = set()
        for found in (self._in_frames(), self._in_functions(), self._counted(), self._by_calls):
            for key, violation in found:
                if key not in reported:
                    reported.add(key)
                    yield violation

    def _in_frames(self) -> Iterator[tuple[tuple[str, str], ModuleViolation]]:
        """Yield what a scope changes between two calls of a function."""
        frames = [dict(fact.frames) for fact in self._facts]
        yield from self._in_frame("", joined(each[""] for each in frames), None)
        for number, each in enumerate(frames):
            for name, frame in each.items():
                function = self._module.functions.get(name)
                if name and (function is None or not function.kinds):
                    yield from self._in_frame(name, frame, number)

    def _in_frame(
        self, of: str, frame: ScopeFrame, number: int | None
    ) -> Iterator[tuple[tuple[str, str], ModuleViolation]]:
        if any(call.name.endswith(("clear_cache", "clear_caches")) for call in frame.calls):
            return
        yield from self._objects(of, frame, number)
        readers = self._outside.get(of)
        if not readers:
            return
        called: dict[str, frozenset[str]] = {}
        for name in {call.name for call in frame.calls}:
            jitted = self._jitted.get(name)
            local = self._local.get((of, name), "")
            called[name] = self._reach(local or (jitted.of if jitted is not None else "") or name)
        for reader in readers:
            read = reader.read
            names = {name for name, reached in called.items() if reader.name in reached}
            calls = [call.moment for call in frame.calls if call.name in names]
            since = self._made(frame, names, reader.name, of)
            if calls and since is not None:
                change = frame.changed_between(read.name, calls, since)
                if change is not None:
                    name = self._compiled(reader.function).named("the lambda")
                    kept = f"calls of {quoted(name.strip('`'), most=_SHORT)} keep its first value"
                    yield (of, read.name), self._stale(reader, f"changes, but {kept}")

    def _reach(self, name: str) -> frozenset[str]:
        """Return the functions that a function calls, itself included."""
        known = self._reached.get(name)
        if known is not None:
            return known
        reached, waiting = set[str](), [name]
        while waiting:
            at = waiting.pop()
            function = self._module.functions.get(at)
            if at in reached or function is None:
                continue
            reached.add(at)
            waiting += (call.callee for call in function.function.calls)
            waiting += (handing.callee for handing in function.function.handings)
        self._reached[name] = frozenset(reached)
        return self._reached[name]

    def _made(
        self, frame: ScopeFrame, names: Collection[str], reader: str, of: str
    ) -> Instant | None:
        """Return when the function was made whose program has the read."""
        outer = f"{of}.<locals>." if of else ""
        own = reader.removeprefix(outer).partition(".")[0]
        around = self._module.functions.get(f"{outer}{own}")
        is_compiled = around is not None and around.compiled
        if "<locals>" in reader.removeprefix(outer) and not is_compiled:
            return None  # made anew by another function, perhaps in each call
        made = [moment for name in {*names, own} if (moment := frame.bound_at(name)) is not None]
        return max(made, key=lambda moment: moment.number, default=None)

    def _objects(
        self, of: str, frame: ScopeFrame, number: int | None
    ) -> Iterator[tuple[tuple[str, str], ModuleViolation]]:
        """Yield changes of objects that are static arguments of calls before and after."""
        by_methods = list(self._set_by_methods(of, frame))
        setters = {(each.moment.number, each.name): method for method, each in by_methods}
        frame = replace(frame, changes=(*frame.changes, *(change for _, change in by_methods)))
        attributes = {change.name for change in frame.changes if change.name.count(".") == 1}
        for name in sorted(attributes):
            owner, _, attribute = name.partition(".")
            calls = [
                (call.name, call.moment)
                for call in frame.calls
                if self._keeps(of, call.name, dict(call.arguments), owner, attribute)
            ]
            since = frame.bound_at(owner)
            if not calls or since is None:
                continue
            change = frame.changed_between(name, [moment for _, moment in calls], since)
            if change is not None:
                class_ = self._instances[of, owner]
                function = quoted(calls[0][0], most=_SHORT)
                setter = setters.get((change.moment.number, name))
                changes = (
                    f"{quoted(setter, most=_SHORT)} changes {quoted(attribute, most=12)}"
                    if setter
                    else f"{quoted(name, most=_SHORT)} changes"
                )
                violation = NodeViolation(
                    node_at(change.place),
                    f"{changes}, and {function} may reuse the program of another value"
                    if class_ in self._compared
                    else f"{changes}, but {function} keeps its traced value",
                    help=f"pass the value as an argument, or make a new object for `{owner}`",
                    notes=(
                        f"JAX looks up programs by the hash of `{owner}`, which must not change"
                        if class_ in self._compared
                        else "static arguments are compared by identity, unless they have `__eq__`",
                    ),
                )
                at = number if number is not None else change.moment.statement
                found = (class_, f"self.{attribute}"), ModuleViolation(at, violation)
                if setter:
                    self._by_calls.append(found)
                else:
                    yield found

    def _set_by_methods(self, of: str, frame: ScopeFrame) -> Iterator[tuple[str, StateChange]]:
        """Yield the attributes that calls of methods assign, each with what is called."""
        for call in frame.calls:
            owner, _, method = call.name.partition(".")
            class_ = self._instances.get((of, owner), "")
            function = self._module.functions.get(f"{class_}.{method}")
            if not class_ or function is None or function.kinds:
                continue
            reached = self._reach(function.function.name)
            assigned = [
                each
                for each in self._assignments
                if each.owner == class_ and each.function in reached
            ]
            if any(each.renews for each in assigned):
                continue
            for each in assigned:
                name = f"{owner}.{each.name.partition('.')[2]}"
                constant = each.constant or (call.constants if each.is_name else "")
                if each.always:
                    yield call.name, StateChange(name, call.place, call.moment, constant)

    def _keeps(
        self, of: str, name: str, arguments: Mapping[int | str, str], owner: str, attribute: str
    ) -> bool:
        """Whether a call compiles what it reads of an attribute of an object."""
        first, _, method = name.partition(".")
        class_ = self._instances.get((of, owner), "")
        if not class_ or not self._is_plain(class_, _PYTREES):
            return False
        if method:
            jitted = self._jitted.get(f"{class_}.{method}")
            return (
                first == owner
                and jitted is not None
                and any(
                    reader.read.owner == class_
                    and reader.function.outside
                    and reader.read.name.partition(".")[2] == attribute
                    and reader.name in self._reach(jitted.of or f"{class_}.{method}")
                    for reader in self._readers
                )
            )
        jitted = self._jitted.get(name)
        if jitted is None:
            return False
        function = jitted.of or name
        static = {
            jitted.parameters[at]
            for at in jitted.how.static
            if -1 < at < len(jitted.parameters) and arguments.get(at) == owner
        }
        static |= {word for word in jitted.how.static_names if arguments.get(word) == owner}
        read = {
            attr
            for reader, parameter, attr in self._parameter_reads
            if reader == function and parameter in static
        }
        return attribute in read or any(
            (f"{class_}.{method}", attribute) in self._method_reads for method in read
        )

    def _is_plain(self, name: str, decorators: Collection[str] = ()) -> bool:
        """Whether a class has no bases, and no decorators but these."""
        class_ = self._module.classes.get(name)
        return (
            class_ is not None
            and not class_.bases
            and all(each.rpartition(".")[2] in decorators for each in class_.decorators)
        )

    def _in_functions(self) -> Iterator[tuple[tuple[str, str], ModuleViolation]]:
        """Yield what other functions assign."""
        kept = self._kept()
        traced = {name for name, each in self._module.functions.items() if each.kinds}
        for reader in self._readers:
            read, function = reader.read, reader.function
            if read.owner:
                in_init = reader.name.startswith(f"{read.owner}.__init__.<locals>.")
                is_method = function.function.owner == read.owner and function.outside
                if not in_init and not (is_method and reader.name in kept):
                    continue
                if read.owner in self._compared or not self._is_plain(read.owner):
                    continue
            elif (
                read.holder
                or "<locals>" in reader.name
                or (function.function.itself and reader.name not in kept)
            ):
                continue
            assignments = [
                each
                for each in self._assignments
                if (each.name, each.owner) == (read.name, read.owner)
                and (read.owner or not each.holder)
            ]
            later = (
                e
                for e in assignments
                if not e.is_first and not e.renews and e.function not in traced
            )
            change = next(later, None)
            if change is not None and self._starts(read, assignments):
                by = quoted(change.function.rpartition(".")[2], most=_SHORT)
                yield (
                    (read.owner, read.name),
                    self._stale(
                        reader, f"is read while tracing: what {by} assigns later is ignored"
                    ),
                )

    def _kept(self) -> set[str]:
        """Return the functions whose programs outlive the calls of those that jit them.

        A method that jits a bound method compiles it anew in each call.
        """
        roots = {jitted.of or name for name, jitted in self._jitted.items()}
        for name, function in self._module.functions.items():
            if any(how.compiled for how in function.function.decorated):
                roots.add(name)
            if name.endswith("__init__"):
                handings = function.function.handings
                roots |= {handing.callee for handing in handings if handing.tracing.compiled}
        return {name for root in roots for name in self._reach(root)}

    def _starts(self, read: StateRead, assignments: Sequence[Assignment]) -> bool:
        """Whether the state has a value from the start, which a trace may have kept."""
        if not read.owner:
            root = read.name.partition(".")[0]
            frames = (dict(fact.frames)[""] for fact in self._facts)
            changes = (change for frame in frames for change in frame.changes)
            first = next((change for change in changes if change.name == root), None)
            return first is not None and first.constant != "None"
        return any(
            not each.is_nothing and each.function.endswith(("__init__", "__post_init__"))
            for each in assignments
        )

    def _counted(self) -> Iterator[tuple[tuple[str, str], ModuleViolation]]:
        """Yield state that a compiled function assigns itself and computes with."""
        for assignment in self._assignments:
            function = self._module.functions.get(assignment.function)
            if function is None or not function.compiled:
                continue
            if assignment.owner and not (function.outside and self._is_plain(assignment.owner)):
                continue
            if assignment.holder and not assignment.owner:
                continue
            if self._module.is_live(assignment.sources):
                continue  # a tracer: JX415
            used = any(
                (reader.read.name, reader.read.owner) == (assignment.name, assignment.owner)
                and reader.read.place[0] != assignment.place[0]
                for reader in self._readers
            )
            if used:
                name = quoted(assignment.name, most=_SHORT)
                violation = NodeViolation(
                    node_at(assignment.place),
                    f"{name} is assigned while tracing only: compiled calls do not change it",
                    help=f"pass {name} as an argument, and return its new value",
                    notes=(function.note("the lambda"),),
                )
                key = (assignment.owner, assignment.name)
                yield key, ModuleViolation(function.statement, violation)

    def _compiled(self, function: TracedFunction) -> TracedFunction:
        """Return the function with a name around a lambda that is compiled with it."""
        parent = self._module.functions.get(function.function.parent)
        is_lambda = function.named("").strip("`") == ""
        return parent if is_lambda and parent is not None and parent.compiled else function

    def _stale(self, reader: _Reader, words: str) -> ModuleViolation:
        name = quoted(reader.read.name, most=_SHORT)
        function = self._compiled(reader.function)
        or_pytree = f", or make `{reader.read.owner}` a pytree" if reader.read.owner else ""
        violation = NodeViolation(
            node_at(reader.read.place),
            f"{name} {words}",
            help=f"pass {name} to {function.named('the lambda')} as an argument{or_pytree}",
            notes=(
                "a compiled call uses the value that it had when the function was traced",
                function.note("the lambda"),
            ),
        )
        return ModuleViolation(function.statement, violation)
