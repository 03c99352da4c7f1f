"""What executing a piece of a module does to the module's names: binds them, changes what they stand for.

Read off the statements at once, for every piece, so it must not look into function bodies. Nothing here follows a name to
another piece.
"""

from __future__ import annotations
import __future__ as futures

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxsight.engine.definitions import Static, static_of_jit
from jaxsight.engine.syntax import (
    annotations_of,
    blocks_of,
    captured,
    dotted_name,
    is_main_guard,
    is_text,
    last_name,
    names_loaded,
    names_stored,
    own_nodes,
    root_name,
)

_CONFIGURED = frozenset({"os.environ", "environ", "sys.path"})
_CONFIGURED_ATTRIBUTES = ("jax.config.", "config.jax_")
_CONFIGURING_CALLS = frozenset(
    {
        *("jax.config.update", "jax.config.parse_flags_with_absl", "config.update"),
        *("jax.set_mesh", "jax.sharding.set_mesh"),
        *("os.putenv", "os.unsetenv", "site.addsitedir"),
        *("warnings.filterwarnings", "warnings.simplefilter", "numpyro.enable_x64"),
    }
)
_REGISTRARS = ("register", "def")
"""How the names of functions begin that tell a library about their arguments: `register_pytree_node`, `defjvp`, `def_impl`."""
_MARK = re.compile(r"#[ \t]*jaxsight:[ \t]*always\b")
_GUESSED = re.compile(
    r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)"
    r"|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)"
    r"|^import[ \t]+([^\n#]*)"
    r"|^from[ \t]+[\w.]+[ \t]+import[ \t]+\(?([^\n#)]*)",
    re.MULTILINE,
)
_AS = re.compile(r"(\w+)[\w.]*(?:[ \t]+as[ \t]+(\w+))?")


@dataclass(frozen=True, slots=True)
class Surface:
    """What executing a piece does to the module's names.

    `binds` are bound for certain and lose their former value; `may_bind` perhaps, or in addition to it (`import a.b` adds
    to `a`). `assigns_into` are changed by `x.attr = …` or `x[…] = …`, `calls_on` by a statement `x.method(…)` or a decorator
    `@x.method`.
    """

    binds: tuple[str, ...] = ()
    may_bind: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """Those of the bound names that an import binds."""
    assigns_into: tuple[str, ...] = ()
    calls_on: tuple[str, ...] = ()
    registers: tuple[tuple[str, str], ...] = ()
    """Names that a library is told about, each after the name that the library is reached by."""
    aliases: tuple[tuple[str, str], ...] = ()
    """`a = b.c`: what is done to the first name is done to the second."""
    mentions: tuple[str, ...] = ()
    """Names inside annotations that are strings."""
    static: tuple[tuple[str, Static], ...] = ()
    """`f = jax.jit(f, static_argnums=…)`."""
    future_flags: int = 0
    star: bool = False
    configures: bool = False
    marked: bool = False
    """`# jaxsight: always` stands on its first or last line."""
    loops: bool = False
    executes: bool = False
    """It runs code of the module's, not only definitions and imports."""
    defines: bool = False
    """It is a single `def` or `class`."""
    is_text: bool = False
    """It is a lone string: the module's docstring, if it stands first."""
    documented: bool = False
    """It speaks of some `__doc__`, so docstrings matter."""
    broken: bool = False


def is_mark(line: str) -> bool:
    """Whether a line asks by a comment that the statement on it or below it always runs."""
    return _MARK.search(line) is not None


def surface_of(tree: ast.Module, text: str) -> Surface:
    """What the statements of a piece do to the module's names."""
    reader = _Reader(walrus=":=" in text)
    reader.block(tree.body, sure=True)
    marked = False
    if "jaxsight:" in text:
        marked = is_mark(text.partition("\n")[0]) or is_mark(text.rpartition("\n")[2])
    return reader.surface(tree.body, marked=marked, documented="__doc__" in text)


def guessed_surface(text: str) -> Surface:
    """The names that a text which does not parse seems to bind."""
    names: list[str] = []
    for found in _GUESSED.finditer(text):
        defined, assigned, imported, members = found.groups()
        if defined or assigned:
            names.append(defined or assigned)
        else:
            names.extend(m.group(2) or m.group(1) for m in _AS.finditer(imported or members or ""))
    return Surface(binds=tuple(dict.fromkeys(names)), broken=True)


class _Reader:
    """Collects a `Surface` from statements."""

    def __init__(self, *, walrus: bool) -> None:
        self.walrus = walrus
        self.binds: dict[str, bool] = {}
        self.imports: dict[str, None] = {}
        self.assigns_into: dict[str, None] = {}
        self.calls_on: dict[str, None] = {}
        self.registers: dict[tuple[str, str], None] = {}
        self.aliases: dict[tuple[str, str], None] = {}
        self.mentions: dict[str, None] = {}
        self.static: list[tuple[str, Static]] = []
        self.future_flags = 0
        self.star = self.configures = self.inert = False

    def surface(self, body: Sequence[ast.stmt], *, marked: bool, documented: bool) -> Surface:
        return Surface(
            binds=tuple(name for name, sure in self.binds.items() if sure),
            may_bind=tuple(name for name, sure in self.binds.items() if not sure),
            imports=tuple(self.imports),
            assigns_into=tuple(self.assigns_into),
            calls_on=tuple(self.calls_on),
            registers=tuple(self.registers),
            aliases=tuple(self.aliases),
            mentions=tuple(self.mentions),
            static=tuple(self.static),
            future_flags=self.future_flags,
            star=self.star,
            configures=self.configures,
            marked=marked,
            loops=any(isinstance(s, ast.For | ast.AsyncFor | ast.While) for s in body),
            executes=not self.inert and any(_executes(s) for s in body),
            documented=documented,
            is_text=len(body) == 1 and is_text(body[0]),
            defines=len(body) == 1 and isinstance(body[0], _DEFINITIONS),
        )

    def block(self, body: Iterable[ast.stmt], *, sure: bool) -> None:
        for statement in body:
            self.statement(statement, sure=sure)

    def statement(self, statement: ast.stmt, *, sure: bool) -> None:
        if self.walrus:
            self.walruses(statement, sure=sure)
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.bind(statement.name, sure=sure)
                self.decorators(statement.decorator_list)
                self.annotations(statement)
            case ast.ClassDef():
                self.bind(statement.name, sure=sure)
                self.decorators(statement.decorator_list)
                for inner in statement.body:
                    self.annotations(inner)
            case ast.Import(names=names):
                for alias in names:
                    self.imported(
                        alias.asname or alias.name.partition(".")[0],
                        sure=sure and alias.asname is not None,
                    )
            case ast.ImportFrom(module=module, names=names):
                for alias in names:
                    if module == "__future__":
                        feature = getattr(futures, alias.name, None)
                        self.future_flags |= getattr(feature, "compiler_flag", 0)
                    if alias.name == "*":
                        self.star = True
                    else:
                        self.imported(alias.asname or alias.name, sure=sure)
            case ast.Assign(targets=targets):
                for target in targets:
                    self.target(target, sure=sure)
                self.assigned(targets, statement.value)
            case ast.AnnAssign(target=target, value=value):
                self.annotations(statement)
                if value is not None:
                    self.target(target, sure=sure)
                    self.assigned([target], value)
            case ast.AugAssign(target=target):
                self.target(target, sure=sure)
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
                self.target(target, sure=False)
                for one in names_stored(target):
                    for other in names_loaded(iterated):
                        self.aliases[one, other] = None
                self.block(statement.body, sure=False)
                self.block(statement.orelse, sure=False)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    if item.optional_vars is not None:
                        self.target(item.optional_vars, sure=sure)
                self.block(statement.body, sure=sure)
            case ast.If(test=test, orelse=orelse) if is_main_guard(test):
                self.inert = not orelse
                self.block(orelse, sure=sure)
            case ast.If() | ast.While():
                self.block(statement.body, sure=False)
                self.block(statement.orelse, sure=False)
            case ast.Try() | ast.TryStar():
                for block in blocks_of(statement):
                    self.block(block, sure=False)
                self.block(statement.finalbody, sure=sure)
            case ast.Match(cases=cases):
                for case in cases:
                    for name in sorted(captured(case.pattern)):
                        self.bind(name, sure=False)
                    self.block(case.body, sure=False)
            case ast.Delete(targets=targets):
                for target in targets:
                    if not isinstance(target, ast.Name):
                        self.target(target, sure=False)
            case ast.Expr(value=ast.Call() as call):
                self.call(call)
            case _ if isinstance(named := getattr(statement, "name", None), ast.Name):
                self.bind(named.id, sure=sure)  # `type X = …`

    def bind(self, name: str, *, sure: bool) -> None:
        self.binds[name] = sure or self.binds.get(name, False)

    def imported(self, name: str, *, sure: bool) -> None:
        self.bind(name, sure=sure)
        self.imports[name] = None

    def target(self, target: ast.expr, *, sure: bool) -> None:
        """An assignment's target: binds names, or changes what a name stands for."""
        match target:
            case ast.Name(id=name):
                self.bind(name, sure=sure)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.target(part, sure=sure)
            case ast.Starred(value=value):
                self.target(value, sure=sure)
            case _:
                self.changed(target)

    def changed(self, target: ast.expr) -> None:
        dotted = dotted_name(target)
        if dotted in _CONFIGURED or dotted.startswith(_CONFIGURED_ATTRIBUTES):
            self.configures = True
        root = root_name(target)
        if root:
            self.assigns_into[root] = None
        if isinstance(target, ast.Subscript):
            # `batching.primitive_batchers[add_p] = rule` tells a library about `add_p`.
            for name in names_loaded(target.slice):
                self.registers[root, name] = None

    def assigned(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        match targets, value:
            case [ast.Name(id=name)], ast.Name() | ast.Attribute() | ast.Subscript():
                root = root_name(value)
                if root:
                    self.aliases[name, root] = None
            case [ast.Name(id=name)], ast.Call(args=[ast.Name(id=function), *_]):
                if name == function and (static := static_of_jit(value)):
                    self.static.append((name, static))

    def decorators(self, decorators: Iterable[ast.expr]) -> None:
        """`@f.defjvp` and `@partial(f.defjvp, …)` tell `f` about the function below."""
        for decorator in decorators:
            match decorator:
                case ast.Attribute() | ast.Call(func=ast.Attribute()):
                    self.called_on(decorator)
                case ast.Call(args=[ast.Attribute() as method, *_]):
                    self.called_on(method)

    def call(self, call: ast.Call) -> None:
        dotted = dotted_name(call.func)
        receiver, _, method = dotted.rpartition(".")
        if dotted in _CONFIGURING_CALLS or receiver in _CONFIGURED:
            self.configures = True
        self.called_on(call)
        if (method or last_name(call.func)).startswith(_REGISTRARS):
            arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
            match arguments:
                case [ast.Name(id=name), *_]:
                    self.registers[root_name(call.func), name] = None

    def called_on(self, node: ast.expr) -> None:
        function = node.func if isinstance(node, ast.Call) else node
        if isinstance(function, ast.Attribute) and (root := root_name(function)):
            self.calls_on[root] = None

    def annotations(self, statement: ast.stmt) -> None:
        for annotation in annotations_of(statement):
            for node in ast.walk(annotation):
                match node:
                    case ast.Constant(value=str(text)) if text.strip():
                        self.mentioned(text.strip())

    def mentioned(self, annotation: str) -> None:
        try:
            tree = ast.parse(annotation, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return  # a string that is no annotation, such as the dimensions of a jaxtyping array
        for name in names_loaded(tree.body):
            self.mentions[name] = None

    def walruses(self, statement: ast.stmt, *, sure: bool) -> None:
        """Names bound by `:=` in a statement's own expressions (also inside comprehensions, as Python has it)."""
        if isinstance(statement, _DEFINITIONS):
            return
        for node in own_nodes(statement):
            match node:
                case ast.NamedExpr(target=ast.Name(id=name)):
                    self.bind(name, sure=sure and isinstance(statement, ast.Assign | ast.Expr))


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _executes(statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            defaults = (*args.defaults, *args.kw_defaults)
            plain = ast.Constant | ast.Name | None
            return bool(statement.decorator_list) or not all(isinstance(d, plain) for d in defaults)
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return False
        case ast.Assign(value=ast.Constant()) | ast.AnnAssign(value=ast.Constant() | None):
            return False
    return True
