"""Follow the values of variables through a scope, in the order in which Python evaluates.

A variable has the values that it may be bound to, and those that it may hold, as a list does. What
happens in one branch alone is not certain afterwards, so it is forgotten. Loops run twice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from jaxsight.rules.jx421_read_after_donation.variables import (
    ON_HOST,
    Dead,
    Donor,
    ScopeState,
    Token,
    is_on_host,
    joined_state,
    leaves,
    path_of,
    unwrapped,
)
from jaxsight.rules.text.expressions import dotted

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
_DEEPEST = 5
"""Loops in one another that run twice each, so that a body runs 2**5 times at most."""


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


class ScopeFlow:
    """One scope. `reads` has the first read of a dead variable after each donation."""

    def __init__(self, donor_of: Callable[[ast.Call], Donor | None]) -> None:
        """Follow a scope; `donor_of` returns what a call of it donates to."""
        self._donor_of = donor_of
        self._state = ScopeState()
        self._contents: dict[Token, tuple[tuple[Token, str], ...]] = {}
        """What displays and objects hold that have not been changed since they were made: each
        value as often as it is in there, with its variable."""
        self._arrays: set[Token] = set()
        """What functions of JAX returned."""
        self._silent = 0
        self._breaks: list[list[ScopeState]] = []
        self._continues: list[list[ScopeState]] = []
        self.reads: list[DeadRead] = []

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Run statements in order."""
        for statement in body:
            if self._state.ended:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.AugAssign():
                self._read(node.target)
                self._evaluate(node.value)
                self._bind(node.target, None)
            case ast.AnnAssign(value=ast.expr() as value):
                self._evaluate(value)
                self._bind(node.target, value)
            case ast.Assign(targets=targets, value=value):
                self._evaluate(value)
                for assigned in targets:
                    self._bind(assigned, value)
            case ast.For() | ast.AsyncFor() | ast.While():
                self._repeat(node)
            case ast.If(test=test, body=body, orelse=orelse):
                self._evaluate(test)
                self._either(partial(self.run, branch) for branch in (body, orelse))
            case ast.Match(subject=subject, cases=cases):
                self._evaluate(subject)
                bodies = [*(case.body for case in cases), []]
                self._either(partial(self.run, branch) for branch in bodies)
            case ast.With() | ast.AsyncWith():
                for manager in node.items:
                    self._evaluate(manager.context_expr)
                    if manager.optional_vars is not None:
                        self._bind(manager.optional_vars, None)
                raises = any("raises" in ast.unparse(each.context_expr) for each in node.items)
                self._silently(node.body, silent=raises)
            case ast.Try() | ast.TryStar():
                self._try(node)
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                if isinstance(node, ast.Return):
                    self._evaluate(node.value)
                elif isinstance(node, ast.Break | ast.Continue):
                    states = self._breaks if isinstance(node, ast.Break) else self._continues
                    if states:
                        states[-1].append(self._state.copy())
                self._state.ended = True
            case ast.Delete(targets=targets):
                for target in targets:
                    self._forget(target)
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                self._state.values[name] = frozenset({object()})
            case ast.Expr(value=expression) | ast.Assert(test=expression):
                self._evaluate(expression)

    def _repeat(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        test = node.test if isinstance(node, ast.While) else None
        is_endless = isinstance(test, ast.Constant) and bool(test.value)
        self._evaluate(node.test if isinstance(node, ast.While) else node.iter)
        self._breaks.append([])
        for _ in range(2 if len(self._breaks) <= _DEEPEST else 1):
            self._continues.append([])
            if not isinstance(node, ast.While):
                self._bind(node.target, None)
            self.run(node.body)
            self._state = joined_state([self._state, *self._continues.pop()])
            if self._state.ended:
                break
            self._evaluate(test)
        breaks = self._breaks.pop()
        self._state = joined_state(breaks if is_endless else [self._state, *breaks])
        if not breaks and not is_endless:
            self._state.ended = False  # the loop may not have run
        self.run(node.orelse)

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        before = self._state.copy()
        types = [handler.type for handler in node.handlers]
        parts = (part for type_ in types if type_ is not None for part in ast.walk(type_))
        caught = {dotted(part).rpartition(".")[2] for part in parts}
        self._silently(node.body, silent=None in types or bool(caught & _CATCHES))
        self.run(node.orelse)
        after = self._state
        for handler in node.handlers:
            self._state = before.copy()
            self._silently(handler.body, silent=True)
        self._state = after
        self.run(node.finalbody)

    def _silently(self, body: Sequence[ast.stmt], *, silent: bool) -> None:
        self._silent += silent
        self.run(body)
        self._silent -= silent

    def _either(self, branches: Iterable[Callable[[], None]]) -> None:
        """Run branches from the same state, and keep what is certain after any of them."""
        before = self._state
        ends = []
        for run in branches:
            self._state = before.copy()
            run()
            ends.append(self._state)
        self._state = joined_state(ends)

    def _evaluate(self, node: ast.expr | None) -> None:
        """Evaluate an expression: report what it reads, and remember what it donates."""
        match node:
            case None | ast.Lambda() | ast.Constant():
                return
            case ast.Name() | ast.Attribute() | ast.Subscript():
                self._read(node)
            case ast.Call():
                self._call(node)
            case ast.BinOp(left=left, right=right):
                self._joined_after([left, right])
            case ast.Compare(left=left, comparators=comparators, ops=ops):
                if not any(isinstance(op, ast.Is | ast.IsNot) for op in ops):
                    self._joined_after([left, *comparators])
            case ast.IfExp(test=test, body=yes, orelse=no):
                self._evaluate(test)
                self._either(partial(self._evaluate, case) for case in (yes, no))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node)
            case ast.NamedExpr(target=target, value=value):
                self._evaluate(value)
                self._bind(target, value)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._evaluate(child)

    def _joined_after(self, operands: Sequence[ast.expr]) -> None:
        """Evaluate operands that are read together once all of them are there."""
        for operand in operands:
            self._evaluate(operand)
        for operand in operands:
            if path_of(operand):
                self._read(operand)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        before = dict(self._state.values)
        for _ in range(2):
            for generator in node.generators:
                self._evaluate(generator.iter)
                self._bind(generator.target, None)
                for condition in generator.ifs:
                    self._evaluate(condition)
            if isinstance(node, ast.DictComp):
                self._evaluate(node.key)
                self._evaluate(node.value)
            else:
                self._evaluate(node.elt)
        self._state.values = before

    def _call(self, node: ast.Call) -> None:
        last = dotted(node.func).rpartition(".")[2]
        donor = self._donor_of(node)
        holder = ""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            holder = path_of(node.func.value)
        if donor is None and not holder:  # a list that grows is not read
            self._evaluate(node.func)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            value = argument.value if isinstance(argument, ast.Starred) else argument
            if last not in _ASKS or not path_of(value):
                self._evaluate(value)
        if isinstance(node.func, ast.Attribute):
            self._change(node.func.value)
        if donor is not None:
            self._donate(node, donor)
        elif holder and node.args and (added := path_of(node.args[-1])):
            tokens = self._state.holds.get(holder, frozenset())
            self._state.holds[holder] = tokens | self._tokens(added)

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
                    tokens = self._state.values[path] = frozenset({object()})
                for token in tokens - {ON_HOST}:
                    for each, name in ((token, ""), *self._contents.get(token, ())):
                        if each in given:
                            held = name if given[each] is node else ""
                            dead = Dead(held or path, call, donor)
                            read = DeadRead(node, dead, is_holder=False, is_twice=True, held=held)
                            self._report(read)
                        given.setdefault(each, node)
                        self._state.dead.setdefault(each, Dead(path, call, donor))
        others = [argument for argument in call.args if argument not in donated]
        others += [keyword.value for keyword in call.keywords if keyword.value not in donated]
        for node in (leaf for argument in others for leaf in leaves(argument)):
            tokens = self._tokens(path) if (path := path_of(node)) else frozenset()
            if len(tokens) == 1 and (token := next(iter(tokens))) in given:
                dead = self._state.dead[token]
                self._report(DeadRead(node, dead, is_holder=False, is_twice=True))

    def _change(self, holder: ast.expr) -> None:
        """Forget what a container held when it was made: `state["w"] = …`, `state.pop("w")`."""
        if path := path_of(holder):
            for token in self._state.values.get(path, ()):
                self._contents.pop(token, None)

    def _tokens(self, path: str) -> frozenset[Token]:
        tokens = self._state.values.get(path)
        if tokens is None:
            tokens = self._state.values[path] = frozenset({("at first", path)})
        return tokens

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
                    self._evaluate(index)
                    part = value
                case ast.Name():
                    return
                case _:
                    self._evaluate(part)
                    return
            is_whole = False

    def _is_reported(self, node: ast.expr, path: str, *, is_whole: bool) -> bool:
        """Report a variable if all that it may be is dead, or something that it holds is."""
        state = self._state
        tokens = state.values.get(path, frozenset())
        if tokens and all(token in state.dead for token in tokens):
            self._report(DeadRead(node, state.dead[next(iter(tokens))], is_holder=False))
            return True
        held_tokens = state.holds.get(path, frozenset()) if is_whole else frozenset()
        dead = next((state.dead[token] for token in held_tokens if token in state.dead), None)
        if dead is not None:
            self._report(DeadRead(node, dead, is_holder=True))
        return dead is not None

    def _report(self, read: DeadRead) -> None:
        if not self._silent and all(
            reported.dead.call is not read.dead.call for reported in self.reads
        ):
            self.reads.append(read)

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                for index, element in enumerate(targets):
                    paired = values[index] if len(values) == len(targets) else None
                    self._bind(element, paired)
                return
            case ast.Starred(value=inner):
                self._bind(inner, None)
                return
        path = path_of(target)
        if not path:
            return
        if isinstance(target, ast.Subscript | ast.Attribute):
            self._change(target.value)
        source = path_of(unwrapped(value)) if value is not None else ""
        tokens = frozenset({object()})
        if source:
            tokens = self._tokens(source)
        elif is_on_host(value):
            tokens = frozenset({ON_HOST})
        held_tokens: frozenset[Token] = frozenset()
        parts = list(_parts(value)) if value is not None else []
        if parts:
            is_display = not isinstance(value, ast.Call)
            inside = [
                (self._tokens(held), held) for part in parts if (held := path_of(unwrapped(part)))
            ]
            if is_display:
                held_tokens = frozenset().union(*(tokens for tokens, _ in inside))
            self._contents[next(iter(tokens))] = tuple(
                (token, held)
                for within, held in inside
                if len(within) == 1
                for token in within - {ON_HOST}
                if is_display or token in self._arrays
            )
        elif source:
            held_tokens = self._state.holds.get(source, frozenset())
        if isinstance(value, ast.Call) and dotted(value.func).startswith(("jnp.", "jax.")):
            self._arrays |= tokens
        self._forget(target)
        self._state.values[path] = tokens
        if held_tokens:
            self._state.holds[path] = held_tokens

    def _forget(self, target: ast.expr) -> None:
        path = path_of(target)
        if not path:
            return
        for names in (self._state.values, self._state.holds):
            for key in [k for k in names if k == path or k.startswith((f"{path}.", f"{path}["))]:
                del names[key]
        self._state.values[path] = frozenset({object()})


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
