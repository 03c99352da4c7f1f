"""Example inputs from calls at the top level of a module, as scripts and notebooks have them.

`show_hlo_info(jax.jit(f), x)` and `state = step(state, batch)` say what functions are called with.
The arguments become expressions that are evaluated in the module: a name that the module binds once
is kept, and any other is replaced by the expression that it was assigned before the call. In a
loop, that is its first turn. A call whose arguments cannot be written so is left out. Nothing is
run here.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jaxsight.examples.inlining import LONGEST, inlined
from jaxsight.examples.jax_use import JaxUse
from jaxsight.examples.sets import OutsideSet
from jaxsight.source.analysis.syntax_trees import (
    DEFINITIONS,
    blocks_of,
    dotted_name,
    first_name,
    is_main_guard,
    last_name,
    own_nodes,
    statements_in,
)
from jaxsight.source.functions import Function
from jaxsight.source.module import Module
from jaxsight.source.statements import tree_of
from jaxsight.text.inert import clause
from jaxsight.text.names import bound_in, bound_in_scope, free_in, parameters_of, with_defaults
from jaxsight.text.parsing import expression_in

_FUNCTIONS = 40
"""Functions of a file that get example inputs from such calls, a choice: all of most files."""
_SETS = 3
"""Example sets of a function from such calls, a choice: further calls differ in values."""
_CALLS = 200
"""Calls of a file that are considered, a choice: tables of tests have more, which are alike."""
_LABEL = 60
"""Characters of a call in the name of a set, a choice: it is part of a lens."""
_DEEPEST = 8
"""Assignments that a name is followed through, a choice: each makes the inputs longer."""
_KEEP_INPUTS = frozenset(
    {
        *("jit", "pjit", "grad", "value_and_grad", "make_jaxpr", "checkpoint", "remat"),
        *("filter_jit", "filter_grad", "filter_value_and_grad", "filter_make_jaxpr"),
        "filter_checkpoint",
    }
)
"""Transformations whose result is called with the same arguments as the function."""
_TAKE_INPUTS = frozenset({"eval_shape", "vjp", "linearize", "filter_eval_shape"})
"""Functions of JAX that take a function and its arguments."""
_METHODS = frozenset({"lower", "trace"})
"""Methods of a jitted function that take its arguments."""
_COMPILE = frozenset({"jit", "pjit", "filter_jit"})
_PASS_OTHERS = frozenset({"map", "filter", "reduce", "partial", "scan", "vmap", "pmap", "xmap"})
"""Functions that call a function with other arguments than they take after it."""
_MAIN = "main"
"""A function whose calls count as those of the top level."""
_SLOW = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)
_TRAINS = re.compile(r"\b(?:train|fit|run|main)(?!\w*step)\w*\(")
"""Calls that probably run a whole program, of which nobody waits for the result here."""
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Expr)
_NOT_ALONE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Starred)
"""Expressions that mean something else, or nothing, in another place."""

Place = tuple[int, str]
"""The first line of a function's chunk, and its qualified name."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A call in a statement: the names of the statement itself are replaced.

    `function` is `f`, or `model.loss`. `helper` is the function that takes it and its arguments.
    `traced` says that the call is by a transformation of JAX.
    """

    function: str
    positional: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]
    helper: str
    traced: bool
    text: str


def calls_in(module: Module) -> Mapping[Place, tuple[OutsideSet, ...]]:
    """Return the example sets of functions that the top level of a module calls.

    Only functions that use JAX have some.
    """
    calls = [*_calls(module)]
    if not calls:
        return {}
    resolver = _Resolver(module)
    sets: dict[Place, dict[str, tuple[str, bool]]] = {}
    for index, call in calls[:_CALLS]:
        resolved = resolver.resolved(index, call)
        if resolved is None:
            continue
        place, text, traced = resolved
        if place in sets or len(sets) < _FUNCTIONS:
            sets.setdefault(place, {}).setdefault(text, (call.text, not traced))
    made: dict[Place, tuple[OutsideSet, ...]] = {}
    for place, of_place in sets.items():
        # Those of a loop's first turn come last: others are certain.
        in_order = sorted(of_place.items(), key=lambda item: "next(iter(" in item[0])
        made[place] = tuple(
            OutsideSet("module", f"as in `{clause(call, _LABEL)}`", text, True, plain)
            for text, (call, plain) in in_order[:_SETS]
        )
    return made


def _calls(module: Module) -> Iterator[tuple[int, _Written]]:
    """Yield the calls at the top level and in `main`, with the number of chunks before them."""
    for index, chunk in enumerate(module.chunks):
        kind = chunk.name_effects.form.kind
        if chunk.broken is not None or chunk.mark == "never":
            continue
        if kind in ("other", "assign"):
            for call in _written(chunk.text):
                yield index, call
        elif kind == "def" and chunk.functions and chunk.functions[0].qualname == _MAIN:
            for call in _written(chunk.text):
                yield len(module.chunks), call


@functools.lru_cache(maxsize=4096)  # statements of the open files
def _written(text: str) -> tuple[_Written, ...]:
    """Return the calls in a top-level statement that may be calls of the module's functions.

    Those in the body of a function are as in a call of it without arguments.
    """
    if "(" not in text:
        return ()
    calls: list[_Written] = []
    body = tree_of(text).body
    match body:
        case [ast.FunctionDef(args=parameters, body=inner)]:
            values = {p.arg: default for p, default in with_defaults(parameters)}
            _Statement(calls, dict.fromkeys(parameters_of(parameters)) | values).block(inner)
        case _:
            _Statement(calls, {}).block(body)
    return tuple(calls)


def _value_in(text: str, name: str) -> ast.expr | None:
    """Return the expression that a top-level statement, or several on a line, assign to a name.

    It means what it does before them. Returns `None` if there is none.
    """
    body = tree_of(text).body
    if not all(isinstance(statement, _SIMPLE) for statement in body):
        return None
    reader = _Statement([], {})
    reader.block(body)
    return reader.values.get(name)


class _Statement:
    """Reads the calls of a statement in the order of its first run."""

    def __init__(self, calls: list[_Written], values: dict[str, ast.expr | None]) -> None:
        self.calls = calls
        self.values = values
        """The names that the statement has bound, with their expressions where these are known."""

    def block(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, DEFINITIONS):
                self.values[statement.name] = None
                continue
            for node in _evaluated_once(statement):
                if isinstance(node, ast.Call):
                    self._read(node)
                elif isinstance(node, _COMPREHENSIONS):
                    self._first_turn(node)
            self._bind(statement)
            for inner in blocks_of(statement):
                self.block(inner)
            if not isinstance(statement, ast.If) or not is_main_guard(statement.test):
                # Blocks may not have run, or several times.
                inside = (name for block in blocks_of(statement) for name in bound_in_scope(*block))
                self.values |= dict.fromkeys(inside)

    def _first_turn(self, comprehension: _Comprehension) -> None:
        """Read the calls in the first turn of a comprehension."""
        outside = dict(self.values)
        for generator in comprehension.generators:
            first = inlined(_first_of(generator.iter), self.values)
            self.values.update(_assigned(generator.target, first))
        for part in ("elt", "key", "value"):
            if (element := getattr(comprehension, part, None)) is not None:
                for node in ast.walk(element):
                    if isinstance(node, ast.Call):
                        self._read(node)
        self.values = outside

    def _bind(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                whole = inlined(value, self.values)
                for target in targets:
                    self.values.update(_assigned(target, whole))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.values.update(_assigned(target, inlined(value, self.values)))
            case ast.For(target=target, iter=items):
                self.values.update(_assigned(target, inlined(_first_of(items), self.values)))
            case _:
                self.values |= dict.fromkeys(bound_in_scope(statement, blocks=False))

    def _read(self, call: ast.Call) -> None:
        text = ast.unparse(call)
        if len(text) > LONGEST:
            return
        function, arguments, helper = _called(call)
        if not function or any(isinstance(n, _NOT_ALONE) for a in arguments for n in ast.walk(a)):
            return
        bound = self.values.get(function)
        if bound is not None and (kept := _kept(bound)):
            function = kept
        elif first_name(function) in self.values:
            return
        positional = [inlined(argument, self.values) for argument in arguments]
        keywords = [(k.arg, inlined(k.value, self.values)) for k in call.keywords]
        if all(positional) and all(name and value for name, value in keywords):
            self.calls.append(
                _Written(
                    function,
                    tuple(ast.unparse(value) for value in positional if value is not None),
                    tuple((n, ast.unparse(v)) for n, v in keywords if n and v is not None),
                    helper,
                    bool(helper) or dotted_name(call.func) != function,
                    text,
                )
            )


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _first_of(items: ast.expr) -> ast.expr:
    return ast.Call(_name("next"), [ast.Call(_name("iter"), [items], [])], [])


def _evaluated_once(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without those inside of functions and comprehensions."""
    inner: set[int] = set()
    for node in own_nodes(statement):
        match node:
            case (
                ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp()
            ) if id(node) not in inner:
                inner |= {id(each) for each in ast.walk(node)} - {id(node)}
    return (node for node in own_nodes(statement) if id(node) not in inner)


def _assigned(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names of a target with their expressions; `None` for those without one."""
    match target:
        case ast.Name(id=name):
            yield name, value
        case ast.Tuple(elts=items) | ast.List(elts=items) if value is not None:
            starred = any(isinstance(item, ast.Starred) for item in items)
            for number, item in enumerate(items):
                part = ast.Subscript(value, ast.Constant(number), ast.Load())
                yield from _assigned(item, None if starred else part)
        case _:
            yield from dict.fromkeys(bound_in(target)).items()


def _called(call: ast.Call) -> tuple[str, list[ast.expr], str]:
    """Return the function that a call calls, its positional arguments, and what helps to call it.

    The function is `f` for `f(x)`, `jax.jit(f)(x)`, `jax.jit(f).lower(x)`, `jax.eval_shape(f, x)`
    and `show(jax.jit(f), x)`; empty if there is none.
    """
    target = call.func
    if isinstance(target, ast.Attribute) and target.attr in _METHODS:
        return _kept(target.value), call.args, ""
    if isinstance(target, ast.Call):
        return _kept(target), call.args, ""
    name = dotted_name(target)
    if not name or isinstance(target, ast.Subscript):
        return "", [], ""
    is_own = name.count(".") == 1 and last_name(target) == "jit" and first_name(name) != "jax"
    if not call.args or (last_name(target) in _KEEP_INPUTS | _PASS_OTHERS and not is_own):
        return ("" if call.args else name), [], ""
    first, *others = call.args
    if last_name(target) in _TAKE_INPUTS:
        return _kept(first), others, ""
    if isinstance(first, ast.Call) and last_name(first.func) in _COMPILE and (kept := _kept(first)):
        return kept, others, name
    if isinstance(first, ast.Attribute) and first.attr in _COMPILE:
        return dotted_name(first), others, name
    return name, call.args, ""


def _kept(value: ast.expr) -> str:
    """Return the function that a value is, or is a transformation of; empty for other values."""
    match value:
        case ast.Name() | ast.Attribute():
            return dotted_name(value)
        case ast.Call(func=function, args=[inner, *_]) if last_name(function) in _KEEP_INPUTS:
            return _kept(inner)
    return ""


class _Resolver:
    """Finds the functions that calls mean, and what their arguments are at the call."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._bindings = module.bindings
        self._jax_use = JaxUse.of(module)

    def resolved(self, index: int, call: _Written) -> tuple[Place, str, bool] | None:
        """Return the place of the function that chunk `index` calls, and its example inputs.

        The last value says whether the call traces the function, as that of `jax.jit(f)` does.
        """
        if call.helper and (
            self._bindings.origins.get(first_name(call.helper), "").partition(".")[0] == "jax"
            or hasattr(builtins, call.helper)
        ):
            return None
        meant = self._function(call.function, index)
        if meant is None:
            return None
        number, function, instance = meant
        chunk = self._module.chunks[number]
        if not call.traced and not self._jax_use.by(chunk, function):
            return None
        lines = _lines(function, instance, call)
        if lines is None:
            return None
        values = [(name, self._value(source, index, _DEEPEST)) for name, source in lines]
        if not values or any(value is None for _, value in values):
            return None
        text = "\n".join(f"{name} = {value}" for name, value in values)
        traced = call.traced or (not instance and function.qualname != call.function)
        return (chunk.first_line, function.qualname), text, traced

    def _function(
        self, name: str, index: int, deepest: int = _DEEPEST
    ) -> tuple[int, Function, str] | None:
        """Return a function's chunk, the function, and the expression of its instance."""
        first, _, method = name.partition(".")
        definer = self._definer(first, index)
        if definer is None or "." in method or deepest == 0:
            return None
        chunk = self._module.chunks[definer]
        form = chunk.name_effects.form
        if form.kind == "def" and not method:
            function = _named(chunk.functions, first)
            return (definer, function, "") if function is not None else None
        if form.kind == "def":
            return self._attribute(name, definer, index, deepest)
        value = _value_in(chunk.text, first)
        if form.kind == "class" or value is None:
            return None
        if not method and (kept := _kept(value)):
            return self._function(kept, definer, deepest - 1)
        return self._method(value, first, method or "__call__", definer)

    def _attribute(
        self, name: str, begin: int, end: int, deepest: int
    ) -> tuple[int, Function, str] | None:
        """Return the function that an attribute of a function is: `f.jit = jax.jit(f)`."""
        for index in range(end - 1, begin, -1):
            chunk = self._module.chunks[index]
            if not chunk.text.startswith(name) or chunk.broken is not None:
                continue
            match tree_of(chunk.text).body:
                case [ast.Assign(targets=[target], value=value)] if dotted_name(target) == name:
                    kept = _kept(value)
                    return self._function(kept, index, deepest - 1) if kept else None
        return None

    def _method(
        self, value: ast.expr, instance: str, method: str, index: int
    ) -> tuple[int, Function, str] | None:
        """Return a method of an object that a call of a class creates."""
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
            return None
        definer = self._definer(value.func.id, index)
        if definer is None or self._module.chunks[definer].name_effects.form.kind != "class":
            return None
        functions = self._module.chunks[definer].functions
        function = _named(functions, f"{value.func.id}.{method}")
        if function is None or function.kind != "method":
            return None
        return definer, function, instance

    def _definer(self, name: str, index: int) -> int | None:
        """Return the chunk that binds a name as chunk `index` sees it, if that is certain."""
        reaching = self._bindings.reaching(name, index)
        if len(reaching) != 1 or self._module.chunks[reaching[0]].broken is not None:
            return None
        return reaching[0] if reaching[0] < index else None

    def _value(self, source: str, index: int, deepest: int) -> str | None:
        """Return an expression that has the value at the end of the module that `source` has here.

        Returns `None` if there is none, or if it probably takes long.
        """
        if _TRAINS.search(source):
            return None
        values: dict[str, ast.expr | None] = {}
        for name in free_in(source):
            definers = self._bindings.definers.get(name, [])
            if not definers:
                if hasattr(builtins, name) or self._bindings.stars:
                    continue
                return None
            definer = self._definer(name, index)
            if definer is None or deepest == 0:
                return None
            chunk = self._module.chunks[definer]
            kind = chunk.name_effects.form.kind
            body = tree_of(chunk.text).body
            if len(definers) == 1 or name in self._bindings.origins:
                slow = any(isinstance(statement, _SLOW) for statement in statements_in(body))
                if slow or (kind == "assign" and _TRAINS.search(chunk.text)):
                    return None
                continue
            part = _value_in(chunk.text, name)
            followed = part and self._value(ast.unparse(part), definer, deepest - 1)
            if not followed:
                return None
            values[name] = expression_in(followed)
        whole = inlined(expression_in(source), values)
        return ast.unparse(whole) if whole is not None else None


def _named(functions: Iterable[Function], qualname: str) -> Function | None:
    named = (function for function in functions if function.qualname == qualname)
    return next((function for function in named if not function.refused), None)


def _lines(function: Function, instance: str, call: _Written) -> list[tuple[str, str]] | None:
    """Return the arguments of a call by parameter; `None` if they do not fit, or are for `*args`.

    Keywords that the function lacks are those of the helper that calls it.
    """
    parameters = list(function.parameters)
    lines: list[tuple[str, str]] = []
    if instance and parameters:
        lines.append((parameters.pop(0).name, instance))
    positional = [p.name for p in parameters if p.kind in ("positional_only", "positional")]
    if len(call.positional) > len(positional):
        return None
    lines += zip(positional, call.positional, strict=False)
    named = {p.name for p in parameters if p.kind in ("positional", "keyword_only")}
    takes_any = any(p.kind == "var_keyword" for p in parameters)
    for name, value in call.keywords:
        if name in named or (takes_any and not call.helper):
            lines.append((name, value))
        elif not call.helper:
            return None
    return lines if len(lines) == len(dict(lines)) else None
