"""The effects of executing a statement on the module's names.

They are read from the statements of every statement at once, so function bodies are not visited.
Names are not followed to other statements.
"""

from __future__ import annotations
import __future__ as futures

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from jaxsight.source.analysis.library_functions import RULES
from jaxsight.source.analysis.side_effects import SideEffects, effects_of
from jaxsight.source.analysis.syntax_trees import (
    DEFINITIONS,
    annotations_of,
    blocks_of,
    dotted_name,
    first_name,
    is_main_guard,
    is_text,
    own_nodes,
    targets_of,
)
from jaxsight.source.definitions import Static, static_of_jit
from jaxsight.text.names import bound_in, read_in
from jaxsight.text.parsing import expression_in

# The form of a top-level statement: a function, a class, an import or an assignment.

_HOOKS = frozenset({"__init_subclass__", "__set_name__", "__prepare__", "__class_getitem__"})
"""Methods that run when a class is created or subscripted."""
_INACTIVE_KEYWORDS = frozenset({"frozen", "eq", "order", "kw_only", "total", "pytree"})
"""Keywords of a class that only choose what is generated for it."""


@dataclass(frozen=True, slots=True)
class StatementForm:
    """The form of a single statement, as far as roles depend on it.

    One of kind `assign` assigns one value to one name.
    """

    kind: Literal["def", "class", "import", "assign", "other"]
    wrapped_by: tuple[str, ...] = ()
    """Decorators, or the function whose call is assigned."""
    wraps: tuple[str, ...] = ()
    """The names that this call takes."""
    bases: tuple[str, ...] = ()
    active: bool = False
    """Whether creating the class, or one derived from it, runs code.

    It has a metaclass, keywords or hooks (`__init_subclass__`, `__set_name__`).
    """


def form_of(body: Sequence[ast.stmt]) -> StatementForm:
    """Return the form of a top-level statement; `other` for several on a line."""
    if len(body) != 1:
        return StatementForm("other")
    match body[0]:
        case (
            ast.FunctionDef(decorator_list=decorators)
            | ast.AsyncFunctionDef(decorator_list=decorators)
        ):
            return StatementForm("def", wrapped_by=tuple(map(_wrapper, decorators)))
        case ast.ClassDef() as definition:
            return _class_form(definition)
        case ast.Import() | ast.ImportFrom():
            return StatementForm("import")
        case (
            ast.Assign(targets=[ast.Name()], value=value)
            | ast.AnnAssign(target=ast.Name(), value=ast.expr() as value)
        ):
            return _assignment_form(value)
    return StatementForm("other")


def _assignment_form(value: ast.expr) -> StatementForm:
    match value:
        case ast.Call(func=function, args=args, keywords=keywords):
            values = (*args, *(keyword.value for keyword in keywords))
            names = tuple(filter(None, map(dotted_name, values)))
            return StatementForm("assign", (_wrapper(function),), names)
        case ast.Lambda():
            return StatementForm("assign", ("lambda",))
    return StatementForm("assign")


def _class_form(definition: ast.ClassDef) -> StatementForm:
    keywords = {keyword.arg for keyword in definition.keywords}
    decorators = list(definition.decorator_list)
    active = bool(keywords - _INACTIVE_KEYWORDS)
    for statement in reversed(definition.body):
        match statement:
            case ast.FunctionDef(name=name, decorator_list=inner):
                active |= name in _HOOKS
                decorators += inner
            case ast.ClassDef():
                active = True
    names = tuple(map(_wrapper, decorators))
    local = {s.name for s in definition.body if isinstance(s, ast.FunctionDef)}
    return StatementForm(
        "class",
        wrapped_by=tuple(name for name in names if first_name(name) not in local),
        # `Generic` for `Generic[T]`
        bases=tuple(
            dotted_name(base.value if isinstance(base, ast.Subscript) else base) or "?"
            for base in definition.bases
        ),
        active=active,
    )


def _wrapper(decorator: ast.expr) -> str:
    """Return the name of a wrapping function: `jit` for `@partial(jit, …)`; `?` if it has none."""
    match decorator:
        case ast.Call(func=function, args=[first, *_]) if dotted_name(function).endswith("partial"):
            return dotted_name(first) or "?"
        case ast.Call(func=function):
            return dotted_name(function) or "?"
    return dotted_name(decorator) or "?"


MARK = re.compile(r"#[ \t]*jaxsight:[ \t]*(always|never)\b")
_INTROSPECTS = re.compile(
    r"__subclasses__|__globals__|__dict__|__annotations__|_getframe|currentframe|getframeinfo|__import__"
    r"|\b(?:globals|locals|vars|dir|exec|eval)\(|\bsys\.modules\b|\bgc\.|\bimportlib\b|\binspect\b"
)
"""Code that accesses names of the module without writing them."""
_SEES_LINES = re.compile(
    r"co_firstlineno|\bco_lines\b|\bco_positions\b|\blineno\b|\b(?:f|tb)_lineno|getsource|findsource"
    r"|getframeinfo|getouterframes|getinnerframes|\binspect\.(?:stack|trace)\b|\bfindCaller"
    r"|\b(?:extract|walk)_(?:stack|tb)|\bformat_(?:stack|tb|exc|exception)\b|\bTracebackException"
)
"""Code that knows its line in the file."""
_GUESSED = re.compile(
    r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)"
    r"|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)"
    r"|^import[ \t]+([^\n#]*)"
    r"|^from[ \t]+[\w.]+[ \t]+import[ \t]+\(?([^\n#)]*)",
    re.MULTILINE,
)
_AS = re.compile(r"(\w+)[\w.]*(?:[ \t]+as[ \t]+(\w+))?")

Mark = Literal["", "always", "never"]
"""What the comment `# jaxsight: …` of a statement says: whether it runs."""

_OTHER = StatementForm("other")


@dataclass(frozen=True, slots=True)
class NameEffects:
    """The effects of executing a statement on the module's names.

    `binds` are certainly bound and lose their former value. `may_bind` are bound perhaps, or
    extended (`import a.b` adds to `a`).
    """

    binds: tuple[str, ...] = ()
    may_bind: tuple[str, ...] = ()
    imports: tuple[tuple[str, str], ...] = ()
    """The names bound by imports, with the full names of the imported objects."""
    packages: tuple[str, ...] = ()
    """The imported packages, by the first part of their names; `.` for relative imports."""
    rules: tuple[str, ...] = ()
    """Functions that get rules: `f.defjvp(…)`, `@f.defjvp`."""
    mentions: tuple[str, ...] = ()
    """Names inside annotations that are strings."""
    static: tuple[tuple[str, Static], ...] = ()
    """Static arguments of `f = jax.jit(f, static_argnums=…)`, by name."""
    side_effects: SideEffects = field(default_factory=SideEffects)
    """Its side effects, without those of calling the functions that it defines."""
    form: StatementForm = _OTHER
    future_flags: int = 0
    star: bool = False
    mark: Mark = ""
    """`always` or `never`: the comment `# jaxsight: …` on its first or last line."""
    executes: bool = False
    """Whether it runs code of the module, besides definitions and imports."""
    is_text: bool = False
    """Whether it is a lone string: the module's docstring, if it is the first statement."""
    documented: bool = False
    """Whether it contains `__doc__`, so docstrings matter."""
    introspects: bool = False
    """Whether it may access names of the module that it does not write."""
    sees_lines: bool = False
    """Whether it may read its line in the file."""
    broken: bool = False


def mark_in(line: str) -> Mark:
    """Return the mark of a line's comment."""
    found = MARK.search(line) if "jaxsight:" in line else None
    if found is None:
        return ""
    return "always" if found[1] == "always" else "never"


def name_effects_of(tree: ast.Module, text: str) -> NameEffects:
    """Return the effects of a statement's statements on the module's names."""
    visitor = _Visitor(walrus=":=" in text)
    visitor.block(tree.body, sure=True)
    mark = mark_in(text.partition("\n")[0]) or mark_in(text.rpartition("\n")[2])
    return visitor.effects(tree.body, text, mark)


def guessed_name_effects(text: str) -> NameEffects:
    """Return the names that a text which does not parse seems to bind."""
    names: list[str] = []
    for match in _GUESSED.finditer(text):
        defined, assigned, imported, members = match.groups()
        if defined or assigned:
            names.append(defined or assigned)
        else:
            names.extend(m.group(2) or m.group(1) for m in _AS.finditer(imported or members or ""))
    return NameEffects(binds=tuple(dict.fromkeys(names)), broken=True)


class _Visitor:
    """Visits statements, and collects their effects on names."""

    def __init__(self, *, walrus: bool) -> None:
        self.walrus = walrus
        self.binds: dict[str, bool] = {}
        self.imports: dict[tuple[str, str], None] = {}
        self.packages: dict[str, None] = {}
        self.rules: dict[str, None] = {}
        self.mentions: dict[str, None] = {}
        self.static: list[tuple[str, Static]] = []
        self.future_flags = 0
        self.star = self.inert = False

    def effects(self, body: Sequence[ast.stmt], text: str, mark: Mark) -> NameEffects:
        return NameEffects(
            binds=tuple(name for name, sure in self.binds.items() if sure),
            may_bind=tuple(name for name, sure in self.binds.items() if not sure),
            imports=tuple(self.imports),
            packages=tuple(self.packages),
            rules=tuple(self.rules),
            mentions=tuple(self.mentions),
            static=tuple(self.static),
            side_effects=effects_of(body),
            form=form_of(body),
            future_flags=self.future_flags,
            star=self.star,
            mark=mark,
            executes=not self.inert and any(_executes(s) for s in body),
            documented="__doc__" in text,
            is_text=len(body) == 1 and is_text(body[0]),
            introspects=_INTROSPECTS.search(text) is not None,
            sees_lines=_SEES_LINES.search(text) is not None,
        )

    def block(self, body: Iterable[ast.stmt], *, sure: bool) -> None:
        """Visit statements. `sure` says whether they certainly run."""
        for statement in body:
            if self.walrus:
                self.walruses(statement, sure=sure)
            self.statement(statement, sure=sure)

    def statement(self, statement: ast.stmt, *, sure: bool) -> None:
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
                # `import a.b` binds `a`, to which another import may have added other modules.
                for alias in names:
                    package = first_name(alias.name)
                    self.packages[package] = None
                    origin = alias.name if alias.asname else package
                    is_certain = sure and alias.asname is not None
                    self.imported(alias.asname or package, origin, sure=is_certain)
            case ast.ImportFrom():
                self.imported_from(statement, sure=sure)
            case ast.Assign() | ast.AugAssign():
                self.targets(statement, sure=sure)
            case ast.AnnAssign(value=value):
                self.annotations(statement)
                if value is not None:
                    self.targets(statement, sure=sure)
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self.bind(target.id, sure=False)
            case ast.Expr(value=ast.Call(func=ast.Attribute() as method)):
                self.rule(method)
            case ast.With() | ast.AsyncWith():
                self.targets(statement, sure=sure)
                self.block(statement.body, sure=sure)
            case ast.If(test=test, orelse=orelse) if is_main_guard(test):
                self.inert = not orelse
                self.block(orelse, sure=sure)
            case ast.For() | ast.AsyncFor() | ast.While() | ast.If():
                self.targets(statement, sure=False)
                self.block(statement.body, sure=False)
                self.block(statement.orelse, sure=False)
            # An error may end its body before any of these, but `finally` always runs.
            case ast.Try() | ast.TryStar():
                for block in blocks_of(statement):
                    self.block(block, sure=False)
                self.block(statement.finalbody, sure=sure)
            case ast.Match(cases=cases):
                for case in cases:
                    for name in sorted(set(bound_in(case.pattern))):
                        self.bind(name, sure=False)
                    self.block(case.body, sure=False)
            case _:
                name_of_type = getattr(statement, "name", None)  # `type X = …`, of Python 3.12
                if isinstance(name_of_type, ast.Name):
                    self.bind(name_of_type.id, sure=sure)

    def imported_from(self, statement: ast.ImportFrom, *, sure: bool) -> None:
        module = statement.module or ""
        self.packages["." if statement.level else first_name(module)] = None
        for alias in statement.names:
            # These change how the statements after them are compiled, chunk by chunk.
            if module == "__future__":
                feature = getattr(futures, alias.name, None)
                self.future_flags |= getattr(feature, "compiler_flag", 0)
            if alias.name == "*":
                self.star = True
            else:
                origin = f"{'.' * statement.level}{module}.{alias.name}"
                self.imported(alias.asname or alias.name, origin, sure=sure)

    def imported(self, name: str, origin: str, *, sure: bool) -> None:
        self.bind(name, sure=sure)
        self.imports[name, origin] = None

    def bind(self, name: str, *, sure: bool) -> None:
        self.binds[name] = sure or self.binds.get(name, False)

    def targets(self, statement: ast.stmt, *, sure: bool) -> None:
        """Bind the names of a statement's targets, and record a function that it makes static."""
        for name in bound_in(*targets_of(statement)):
            self.bind(name, sure=sure)
        match targets_of(statement), getattr(statement, "value", None):
            case [ast.Name(id=name)], ast.Call(args=[ast.Name(id=function), *_]) as call:
                if name == function and (static := static_of_jit(call)):
                    self.static.append((name, static))

    def decorators(self, decorators: Iterable[ast.expr]) -> None:
        """Record the rules that decorators `@f.defjvp` and `@partial(f.defjvp, …)` give `f`."""
        for decorator in decorators:
            match decorator:
                case ast.Attribute():
                    self.rule(decorator)
                case ast.Call(func=ast.Attribute() as method):
                    self.rule(method)
                case ast.Call(args=[ast.Attribute() as method, *_]):
                    self.rule(method)

    def rule(self, method: ast.Attribute) -> None:
        match method:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if attribute in RULES:
                self.rules[name] = None

    def annotations(self, statement: ast.stmt) -> None:
        for annotation in annotations_of(statement):
            for node in ast.walk(annotation):
                match node:
                    case ast.Constant(value=str(text)) if text.strip():
                        # It need not parse, such as the dimensions of a jaxtyping array.
                        if (tree := expression_in(text)) is not None:
                            self.mentions.update(dict.fromkeys(read_in(tree)))

    def walruses(self, statement: ast.stmt, *, sure: bool) -> None:
        """Bind the names of `:=` in a statement's own expressions, also inside comprehensions."""
        if isinstance(statement, DEFINITIONS):
            return
        for node in own_nodes(statement):
            match node:
                case ast.NamedExpr(target=ast.Name(id=name)):
                    self.bind(name, sure=sure and isinstance(statement, ast.Assign | ast.Expr))


def _executes(statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            defaults = (*args.defaults, *args.kw_defaults)
            plain = ast.Constant | ast.Name | None
            return bool(statement.decorator_list) or not all(isinstance(d, plain) for d in defaults)
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return False
        case ast.AnnAssign(value=None):
            return False
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return not _is_literal(value)
    return True


def _is_literal(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_is_literal, parts))
        case ast.Dict(keys=keys, values=values):
            return all(map(_is_literal, (*keys, *values)))
    return False
