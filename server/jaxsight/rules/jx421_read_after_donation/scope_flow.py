"""Follow the values of variables through a scope, in the order in which Python evaluates.

A variable has the values that it may be bound to; containers hold values. What happens in one
branch alone is not certain afterwards, so it is forgotten.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from jaxsight.rules.jx421_read_after_donation.variables import (
    ON_HOST,
    Dead,
    DonatedVariables,
    Donor,
    Token,
    Tokens,
    at_first,
    is_on_host,
    leaves,
    unwrapped,
)
from jaxsight.rules.text.expressions import dotted, path_of
from jaxsight.source.abstract_interpretation.interpreter import AbstractInterpreter, Comprehension

_HARMLESS = frozenset(
    {
        "shape", "dtype", "ndim", "size", "nbytes", "itemsize", "sharding", "aval", "weak_type",
        "is_deleted", "delete", "apply_fn", "tx", "apply", "optimizer", "config", "cfg",
        "committed", "__class__",
    }
)  # fmt: skip
"""Attributes that a deleted array still has, and those of states that are no arrays."""
_ASKS = frozenset(
    {
        "isinstance", "type", "id", "len", "hasattr", "callable", "zeros_like", "ones_like",
        "full_like", "empty_like", "shape", "ndim", "size", "eval_shape", "structure",
        "tree_structure", "result_type", "ShapeDtypeStruct", "lower", "typeof", "make_jaxpr",
    }
)  # fmt: skip
"""Functions that read no buffer of a deleted array."""
_GROWS = frozenset({"append", "add", "insert"})
_CATCHES = frozenset(
    {"RuntimeError", "ValueError", "Exception", "BaseException", "JaxRuntimeError"}
)


@dataclass(frozen=True, slots=True)
class DeadRead:
    """A variable that is read after its value, or a value that it holds, was donated."""

    node: ast.expr
    dead: Dead
    is_holder: bool
    is_twice: bool = False
    """It is passed a second time in the call that donates it."""
    held: str = ""
    """What it holds twice, of itself."""


class ScopeFlow(AbstractInterpreter[DonatedVariables, Tokens]):
    """One scope. `reads` has the first read of a dead variable after each donation."""

    # A loop that never runs is not meant.
    SKIPS_LOOPS = False

    def __init__(self, donor_of: Callable[[ast.Call], Donor | None]) -> None:
        """Follow a scope; `donor_of` returns what a call of it donates to."""
        super().__init__(DonatedVariables())
        self._donor_of = donor_of
        self._elements: dict[Token, tuple[Tokens, ...]] = {}
        """The values of the elements of tuples and lists."""
        self._contents: dict[Token, tuple[tuple[Token, str], ...]] = {}
        """What displays and objects hold that have not been changed since they were made: each
        value as often as it is in there, with its variable."""
        self._arrays: set[Token] = set()
        """What functions of JAX returned."""
        self._silent = 0
        self.reads: list[DeadRead] = []

    def statement(self, node: ast.stmt) -> None:
        """Run a statement; nothing is reported where an error is expected."""
        silent = False
        match node:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                silent = any("raises" in ast.unparse(each.context_expr) for each in items)
            case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
                types = [handler.type for handler in handlers]
                parts = (part for type_ in types if type_ is not None for part in ast.walk(type_))
                caught = {dotted(part).rpartition(".")[2] for part in parts}
                silent = None in types or bool(caught & _CATCHES)
        self._silent += silent
        super().statement(node)
        self._silent -= silent

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.state.names[node.name] = frozenset({node})

    def delete(self, target: ast.expr) -> None:
        self._change(target)
        self.assign(target, frozenset({target}), None)

    def either(self, values: Sequence[Tokens]) -> Tokens:
        return frozenset().union(*values)

    def augmented(self, node: ast.AugAssign, _old: Tokens, _new: Tokens) -> Tokens:
        return self._made(node.target)

    def iterate(self, target: ast.expr, _value: Tokens, _iterable: ast.expr) -> None:
        self.bind(target, self._made(target), None)

    def unpacked(
        self, value: Tokens, targets: Sequence[ast.expr], _source: ast.expr | None
    ) -> Sequence[Tokens]:
        elements = self._elements.get(next(iter(value)), ()) if len(value) == 1 else ()
        if len(elements) == len(targets):
            return elements
        return [self._made(target) for target in targets]

    def assign(self, target: ast.expr, value: Tokens, _source: ast.expr | None) -> None:
        if path := path_of(target):
            if isinstance(target, ast.Subscript | ast.Attribute):
                self._change(target.value)
            self.state.forget(path)
            self.state.names[path] = value

    def expression(self, node: ast.expr) -> Tokens:
        """Evaluate an expression: report what it reads, and remember what it donates."""
        match node:
            case ast.Lambda():
                pass
            case ast.Name() | ast.Attribute() | ast.Subscript():
                self._read(node)
                if path := path_of(node):
                    return self._tokens(path)
            case ast.Call():
                self._call(node)
                if (inner := unwrapped(node)) is not node:
                    return self._tokens(path) if (path := path_of(inner)) else self._made(node)
            case ast.BinOp(left=left, right=right):
                self._joined_after([left, right])
            case ast.Compare(left=left, comparators=comparators, ops=ops):
                if not any(isinstance(op, ast.Is | ast.IsNot) for op in ops):
                    self._joined_after([left, *comparators])
            case ast.Tuple() | ast.List():
                self._elements[node] = tuple(map(self.evaluate, node.elts))
            case _:
                self.parts(node)
        return frozenset({ON_HOST}) if is_on_host(node) else self._made(node)

    def _made(self, node: ast.expr) -> Tokens:
        """Return the value that an expression makes, and note what it holds."""
        state, inside = self.state, list[tuple[Tokens, str]]()
        state.dead.pop(node, None)
        state.holds.pop(node, None)
        self._contents.pop(node, None)
        is_display = not isinstance(node, ast.Call)
        for part in _parts(node):
            if held := path_of(unwrapped(part)):
                inside.append((self._tokens(held), held))
        if is_display and inside:
            state.holds[node] = frozenset().union(*(tokens for tokens, _ in inside))
        self._contents[node] = tuple(
            (token, held)
            for within, held in inside
            if len(within) == 1
            for token in within - {ON_HOST}
            if is_display or token in self._arrays
        )
        if isinstance(node, ast.Call) and dotted(node.func).startswith(("jnp.", "jax.")):
            self._arrays.add(node)
        return frozenset({node})

    def _joined_after(self, operands: Sequence[ast.expr]) -> None:
        """Evaluate operands that are read together once all of them are there."""
        for operand in operands:
            self.evaluate(operand)
        for operand in operands:
            if path_of(operand):
                self._read(operand)

    def comprehension(self, node: Comprehension) -> Tokens:
        """Evaluate the element twice: the second one reads what the first one donated."""
        super().comprehension(node)
        return super().comprehension(node)

    def _call(self, node: ast.Call) -> None:
        last = dotted(node.func).rpartition(".")[2]
        donor = self._donor_of(node)
        holder = ""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            holder = path_of(node.func.value)
        if donor is None and not holder:  # a list that grows is not read
            self.evaluate(node.func)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            value = argument.value if isinstance(argument, ast.Starred) else argument
            if last not in _ASKS or not path_of(value):
                self.evaluate(value)
        if isinstance(node.func, ast.Attribute):
            self._change(node.func.value)
        if donor is not None:
            self._donate(node, donor)
        elif holder and node.args and (added := path_of(node.args[-1])):
            for token in self._tokens(holder):
                held = self.state.holds.get(token, frozenset())
                self.state.holds[token] = held | self._tokens(added)

    def _donate(self, call: ast.Call, donor: Donor) -> None:
        certain = list(takewhile(lambda node: not isinstance(node, ast.Starred), call.args))
        donated = [certain[at] for at in sorted(donor.positions) if 0 <= at < len(certain)]
        donated += [keyword.value for keyword in call.keywords if keyword.arg in donor.keywords]
        given: dict[Token, ast.expr] = {}
        for argument in donated:
            for node in leaves(argument):
                path = path_of(node)
                tokens = self._tokens(path) if path else frozenset()
                if len(tokens) > 1:  # one of them: no other variable is certain to be it
                    tokens = self.state.names[path] = frozenset({node})
                for token in tokens - {ON_HOST}:
                    for each, name in ((token, ""), *self._contents.get(token, ())):
                        if each in given:
                            held = name if given[each] is node else ""
                            dead = Dead(held or path, call, donor)
                            read = DeadRead(node, dead, is_holder=False, is_twice=True, held=held)
                            self._report(read)
                        given.setdefault(each, node)
                        self.state.dead.setdefault(each, Dead(path, call, donor))
        others = [argument for argument in call.args if argument not in donated]
        others += [keyword.value for keyword in call.keywords if keyword.value not in donated]
        for node in (leaf for argument in others for leaf in leaves(argument)):
            tokens = self._tokens(path) if (path := path_of(node)) else frozenset()
            if len(tokens) == 1 and (token := next(iter(tokens))) in given:
                dead = self.state.dead[token]
                self._report(DeadRead(node, dead, is_holder=False, is_twice=True))

    def _change(self, holder: ast.expr) -> None:
        """Forget what a container held when it was made: `state["w"] = …`, `state.pop("w")`."""
        if path := path_of(holder):
            for token in self.state.names.get(path, ()):
                self._contents.pop(token, None)

    def _tokens(self, path: str) -> Tokens:
        return self.state.names.setdefault(path, at_first(path))

    def _read(self, node: ast.expr) -> None:
        """Report a variable whose value is dead, and what is looked up in such a variable."""
        is_whole = True
        part: ast.expr = node
        while True:
            path = path_of(part)
            if path and self._is_reported(part, path, is_whole=is_whole):
                return
            match part:
                case ast.Attribute(value=value, attr=attr):
                    if attr in _HARMLESS or attr.endswith("_fn"):
                        return
                    part = value
                case ast.Subscript(value=value, slice=index):
                    self.evaluate(index)
                    part = value
                case ast.Name():
                    return
                case _:
                    self.evaluate(part)
                    return
            is_whole = False

    def _is_reported(self, node: ast.expr, path: str, *, is_whole: bool) -> bool:
        """Report a variable if all that it may be is dead, or something that it holds is."""
        state = self.state
        tokens = state.names.get(path, frozenset())
        if tokens and all(token in state.dead for token in tokens):
            self._report(DeadRead(node, state.dead[next(iter(tokens))], is_holder=False))
            return True
        held = {each for token in tokens for each in state.holds.get(token, ())} if is_whole else ()
        dead = next((state.dead[token] for token in held if token in state.dead), None)
        if dead is not None:
            self._report(DeadRead(node, dead, is_holder=True))
        return dead is not None

    def _report(self, read: DeadRead) -> None:
        if not self._silent and all(
            reported.dead.call is not read.dead.call for reported in self.reads
        ):
            self.reads.append(read)


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """Yield what a display holds, or an object that a class makes of its arguments."""
    match value:
        case ast.Tuple() | ast.List() | ast.Dict() | ast.Set():
            yield from leaves(value)
        case ast.Call(func=function, args=arguments, keywords=keywords):
            name = dotted(function).rpartition(".")[2]
            if name[:1].isupper() or name == "create":
                for part in (*arguments, *(keyword.value for keyword in keywords)):
                    yield from leaves(part)
