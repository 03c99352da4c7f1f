"""Writes a program from a snippet: decides what is uppercase, and fills the holes.

`snippets` says what a snippet may contain.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from textwrap import dedent
from typing import Any, TypeAlias

from jaxsight_dataset.generating.choices import COMPLEX, FLOATS, INTEGERS, Draws
from jaxsight_dataset.generating.snippets import Template
from jaxsight_dataset.generating.steps import Steps, Term
from jaxsight_dataset.program import Argument, Array

Type: TypeAlias = "Array | dict[str, Type] | list[Type] | tuple[Type, ...]"

HOLES = {"mapped", "mixed", "smooth", "prepared", "reduced", "moved", "scanned", "normalised"} | {
    *("compared", "number", "binary", "activated")
}
"""The steps that a snippet can ask for."""

_DRAWS = ("choose", "chance", "between", "sample", "dtype", "size", "shape", "floating")
_DECIDED = re.compile(r"(?<![A-Za-z])[A-Z][A-Z0-9]*(?![A-Za-z])")
_A = re.compile(r"\b([Aa]) (?=[aei]|o(?!ne)|un(?!i))")
_BUILTINS = {
    **{each.__name__: each for each in (len, min, max, range, round, float, str, int, tuple)},
    **{each.__name__: each for each in (sum, zip, list, enumerate, sorted, dict, isinstance)},
    "prod": math.prod,
}


def is_decided(name: str) -> bool:
    """Return whether a name of a snippet is one that is replaced."""
    return name.isupper()


class Expansion:
    """A program while it is written.

    Attributes:
        parameters: the arguments, by names.
        labels: what a reader should know.
        module: the statements above the function.
        body: the statements of the function.
    """

    def __init__(self, choices: Draws, template: Template) -> None:
        tree = template.snippet
        self.choices = choices
        self.steps = Steps(choices, self._let)
        self.parameters: dict[str, Argument] = {}
        self.labels: set[str] = set()
        self.module: list[ast.stmt] = []
        self.body: list[ast.stmt] = []
        self._to = self.body
        self._types: dict[str, Term] = {}
        self._invented: set[str] = set()
        self._taken = {"jax", "jnp", "lax", "np", "math", "partial"} | {
            getattr(node, field)
            for node in ast.walk(tree)
            for field in ("id", "arg", "name", "attr")
            if isinstance(getattr(node, field, None), str)
        }
        self._decided: dict[str, Any] = {
            "__builtins__": {},
            **_BUILTINS,
            **{name: getattr(choices, name) for name in _DRAWS},
            **template.tables,
            "below": lambda count: f"integers:{count}",
            "array": _array,
            "F": choices.floating(),
            "W": choices.dtype("float32", "float32", "float64"),
            "INT": choices.dtype(*INTEGERS),
            "CPX": choices.dtype(*COMPLEX),
            "BOOL": "bool",
            "INDEX": choices.dtype("int32", "int32", "int64"),
            "KEY": "key",
            "F32": "float32",
            "I32": "int32",
            "I64": "int64",
            "U32": "uint32",
        }
        self._write(tree)

    def _write(self, tree: ast.FunctionDef) -> None:
        """Write the whole program."""
        head = [each for each in tree.body if _assigns_decided(each)]
        for statement in head:
            self._statement(statement)
        for parameter in tree.args.args:
            assert parameter.annotation is not None
            name = self._replaced(parameter.arg)
            argument = self._type(parameter.annotation)
            self.parameters[name] = argument
            self._remember(name, argument, is_given=True)
        title = self._replaced(self._replaced(ast.get_docstring(tree) or ""))  # one in another
        self.title = _A.sub(r"\1n ", title)
        self.name = self._replaced(tree.name)
        rest = [each for each in tree.body[1:] if not _assigns_decided(each)]
        self._block(rest)

    # Statements

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._to and isinstance(self._to[-1], ast.Return):
                return  # what follows an `if` that is decided
            self._statement(statement)

    def _inside(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of a block inside of the current one."""
        outer, self._to = self._to, []
        types, self._types = self._types, dict(self._types)
        self._block(statements)
        inner, self._to, self._types = self._to, outer, types
        return inner

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([target], value) if _assigns_decided(statement) and (
                self._to is not self.module
            ):
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                result = self._evaluated(value)
                values = result if isinstance(target, ast.Tuple) else [result]
                for name, one in zip(names, values, strict=True):
                    assert isinstance(name, ast.Name)
                    self._decided[name.id] = one
            case ast.If(test, body, orelse) if self._is_decidable(test):
                self._block(body if self._evaluated(test) else orelse)
            case ast.If(test, body, orelse):
                condition = self._filled(test)
                self._to.append(ast.If(condition, self._inside(body), self._inside(orelse)))
            case ast.For(ast.Name(name), values, body) if is_decided(name):
                for value in self._evaluated(values):
                    self._decided[name] = value
                    self._block(body)
            case ast.For(target, values, body):
                where = self._filled(values)
                named = self._filled(target)
                self._to.append(ast.For(named, where, self._inside(body), []))
            case ast.With([ast.withitem(ast.Name("module"), _)], body):
                outer, self._to = self._to, self.module
                self._block(body)
                self._to = outer
            case ast.FunctionDef():
                self._function(statement)
            case ast.ClassDef():
                self._to.append(self._named(statement))
            case ast.AnnAssign(target, _, ast.Call(ast.Name(hole)) as call) if hole in HOLES:
                made = self._step(call)
                named = self._filled(target)
                self._types[ast.unparse(named)] = replace(made, text=ast.unparse(named))
                self._assign(named, _parsed(made.text))
            case ast.AnnAssign(target, annotation, ast.Call(ast.Name("formula"), [lines])):
                *before, last = ast.parse(dedent(self._evaluated(lines))).body
                self._block(before)
                assert isinstance(last, ast.Expr)
                self._statement(ast.AnnAssign(target, annotation, last.value, simple=1))
            case ast.AnnAssign(target, annotation, value):
                assert value is not None
                filled = self._filled(value)
                named = self._filled(target)
                self._remember(ast.unparse(named), self._type(annotation))
                self._assign(named, filled)
            case ast.Assign([target], value):
                filled = self._filled(value)
                self._assign(self._filled(target), filled)
            case ast.Return(ast.Call(ast.Name("more"), arguments, options)):
                chosen = {str(each.arg): self._evaluated(each.value) for each in options}
                values = [self._value(argument) for argument in arguments]
                results = [_parsed(each.text) for each in self.steps.more(*values, **chosen)]
                whole = results[0] if len(results) == 1 else ast.Tuple(results)
                self._to.append(ast.Return(whole))
            case ast.Expr(ast.Call(ast.Name("label"), [ast.Constant(str(label))])):
                self.labels.add(label)
            case ast.Expr(value):
                self._to.append(ast.Expr(self._filled(value)))
            case ast.Return(value):
                assert value is not None
                self._to.append(ast.Return(self._filled(value)))
            case _:
                raise TypeError(f"not a statement of a snippet: {ast.unparse(statement)}")

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        """Write an assignment; the new name of a value is replaced by that of the snippet."""
        match self._to[-1:], value:
            case [ast.Assign([ast.Name(name) as made])], ast.Name(read) if name == read and (
                isinstance(target, ast.Name) and name in self._invented
            ):
                made.id = target.id
            case _:
                self._to.append(ast.Assign([target], value))
        self._taken |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}

    def _function(self, function: ast.FunctionDef) -> None:
        outer, self._to = self._to, []
        types, self._types = self._types, dict(self._types)
        taken, self._taken = self._taken, set(self._taken)
        arguments = ast.arguments([], [], function.args.vararg, [], [], None, [])
        for parameter in function.args.args:
            name = self._replaced(parameter.arg)
            arguments.args.append(ast.arg(name))
            if parameter.annotation is not None:
                self._remember(name, self._type(parameter.annotation))
        arguments.defaults = [self._filled(each) for each in function.args.defaults]
        self._block(function.body)
        body, self._to, self._types, self._taken = self._to, outer, types, taken
        decorators = [self._filled(each) for each in function.decorator_list]
        name = self._replaced(function.name)
        self._taken.add(name)
        made = ast.FunctionDef(name, arguments, body, decorators, None, None)
        self._to.append(made)

    def _let(self, base: str, text: str) -> str:
        """Assign an expression to a new name in the current block."""
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}{number}", number + 1
        self._taken.add(name)
        self._invented.add(name)
        self._to.append(ast.Assign([ast.Name(name)], _parsed(text)))
        return name

    # Types

    def _type(self, annotation: ast.expr) -> Type:
        """Return the type that an annotation stands for."""
        match annotation:
            case ast.Dict(keys, items):
                pairs = zip(keys, items, strict=True)
                return {self._evaluated(key): self._type(item) for key, item in pairs if key}
            case ast.Tuple(items):
                return tuple(map(self._type, items))
            case ast.List(items):
                return list(map(self._type, items))
            case ast.Name("KEY"):
                return Array("key", (), "key")
            case ast.Name(name) if not isinstance(self._decided[name], str):
                known: Type = self._decided[name]
                return known
            case ast.Subscript(ast.Name(kind), dims):
                sizes = dims.elts if isinstance(dims, ast.Tuple) else [dims]
                parts = [
                    0 if isinstance(each, ast.Name) and each.id == "_" else self._evaluated(each)
                    for each in sizes
                ]
                return _array(self._decided[kind], *parts)
        raise TypeError(f"not a type: {ast.unparse(annotation)}")

    def _remember(self, text: str, kind: Type, is_given: bool = False) -> None:
        """Remember the type of an expression, and those of its parts."""
        match kind:
            case Array(dtype, shape):
                self._types[text] = Term(text, dtype, len(shape), is_given)
            case dict():
                for name, part in kind.items():
                    self._remember(f"{text}[{name!r}]", part, is_given)
            case _:
                for index, part in enumerate(kind):
                    self._remember(f"{text}[{index}]", part, is_given)

    def _value(self, node: ast.expr) -> Term:
        """Return an argument of a hole as a value of a known type."""
        if isinstance(node, ast.IfExp) and self._is_decidable(node.test):
            return self._value(node.body if self._evaluated(node.test) else node.orelse)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "choose":
                return self._value(self.choices.pick(node.args))
            if node.func.id in HOLES:
                return self._step(node)
        text = ast.unparse(self._filled(node))
        return self._types[text]

    # Expressions

    def _step(self, call: ast.Call) -> Term:
        """Return the random step that a hole asks for."""
        assert isinstance(call.func, ast.Name)
        write: Callable[..., Term] = getattr(self.steps, call.func.id)
        arguments = [
            self._evaluated(node)
            if isinstance(node, ast.Constant) or self._is_decidable(node)
            else self._value(node)
            for node in call.args
        ]
        arguments = [
            self._types.get(each, each) if isinstance(each, str) else each for each in arguments
        ]
        if call.func.id == "number" and len(arguments) == 1:
            arguments.append(self._decided["F"])
        options = {str(each.arg): self._evaluated(each.value) for each in call.keywords}
        return write(*arguments, **options)

    def _evaluated(self, node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<snippet>", "eval"), self._decided)

    def _is_decidable(self, node: ast.AST) -> bool:
        """Return whether an expression consists of what is decided when a program is written."""
        if any(isinstance(each, ast.Attribute | ast.Lambda) for each in ast.walk(node)):
            return False
        if isinstance(node, ast.Slice | ast.Tuple) and any(
            isinstance(each, ast.Slice) for each in (node, *getattr(node, "elts", ()))
        ):
            return False
        inner = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
        bound = {
            each.id
            for loop in ast.walk(node)
            if isinstance(loop, ast.comprehension)
            for each in ast.walk(loop.target)
            if isinstance(each, ast.Name)
        }
        is_drawn = any(is_decided(name) or name in _DRAWS for name in inner)
        return is_drawn and all(name in self._decided or name in bound for name in inner)

    def _filled(self, node: ast.expr) -> Any:
        """Return an expression of the program."""
        match node:
            case ast.IfExp(test, body, orelse) if self._is_decidable(test):
                return self._filled(body if self._evaluated(test) else orelse)
            case ast.Call(ast.Name("choose"), options):
                return self._filled(self.choices.pick(options))
            case ast.Call(ast.Name("sqrt"), [square]):
                return _root(self._evaluated(square))
            case ast.Call(ast.Name(hole)) if hole in HOLES:
                return _parsed(self._step(node).text)
            case ast.Name(name) if isinstance(self._decided.get(name), str) and is_decided(name):
                return _parsed(self._decided[name])
        if self._is_decidable(node) and not isinstance(node, ast.Starred):
            value = self._evaluated(node)
            if not isinstance(value, range):
                return _literal(value)
        return self._named(node)

    def _named(self, node: Any) -> Any:
        """Return a copy of a node with decided names replaced, and holes filled below it."""
        fields: dict[str, Any] = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                fields[name] = list(self._parts(value))
            elif isinstance(value, ast.expr):
                fields[name] = self._filled(value)
            elif isinstance(value, ast.AST):
                fields[name] = self._named(value)
            elif isinstance(value, str) and name != "kind":
                fields[name] = self._replaced(value)
            else:
                fields[name] = value
        made = type(node)(**fields)
        if isinstance(made, ast.Attribute) and made.attr == "bool":
            made.attr = "bool_"
        return made

    def _parts(self, nodes: list[Any]) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred) and self._is_decidable(node.value):
                yield from map(_literal, self._evaluated(node.value))
            elif isinstance(node, ast.expr):
                yield self._filled(node)
            else:
                yield self._named(node) if isinstance(node, ast.AST) else node

    def _replaced(self, text: str) -> str:
        """Return a name or a string with decided values in it."""

        def value(match: re.Match[str]) -> str:
            known = self._decided.get(match[0], match[0])
            return str(known) if isinstance(known, str | int | float) else match[0]

        return _DECIDED.sub(value, text)


def _assigns_decided(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign):
        return False
    [target] = statement.targets
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(name, ast.Name) and is_decided(name.id) for name in names)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _literal(value: Any) -> ast.expr:
    return _parsed(repr(float(f"{value:.6g}") if isinstance(value, float) else value))


def _root(square: int) -> ast.expr:
    """Return a square root as people write it."""
    root = math.isqrt(square)
    return _literal(float(root)) if root**2 == square else _parsed(f"math.sqrt({square})")


def _array(dtype: str, *parts: Any) -> Array:
    """Return the type of an array; sizes may be tuples of sizes, and a rule of values follows."""
    sizes: list[int] = []
    rule = default_values(dtype)
    for part in parts:
        if isinstance(part, str):
            rule = part if dtype in (*FLOATS, *COMPLEX) or part.partition(":")[1] else rule
        else:
            sizes += part if isinstance(part, tuple) else [part]
    return Array(dtype, tuple(sizes), rule)


def default_values(dtype: str) -> str:
    """Return the rule of values that suits a dtype."""
    if dtype == "bool":
        return "booleans"
    return "normal" if dtype in (*FLOATS, *COMPLEX) else "integers:100"
