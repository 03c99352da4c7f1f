"""The functions at the top of a module: each is written once, however often it is called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from jaxsight_source.compat import derivative_rules
from jaxsight_source.compat.staging import Program
from jaxsight_source.jaxprs.same.comparison import Comparison
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import STAND_IN, ModuleNames, identifier
from jaxsight_source.text.statements import lines
from jaxsight_source.text.walks import renamed


class SharedFunctions:
    """The functions at the top of a module, by what they compute."""

    def __init__(self, names: ModuleNames, orders: int) -> None:
        self._names = names
        self._orders = orders
        self.statements: list[ast.stmt] = []
        self.inside: list[tuple[object, str]] = []
        """Keys and names of the functions with custom rules that are being written where they are
        called.
        """
        self._shared: dict[Hashable, tuple[Hashable, str, int]] = {}
        """Each function, with the least number of enclosing rules at which its text is complete."""
        self._customs: dict[Hashable, list[tuple[Program, str, int]]] = {}
        self._texts: dict[str, str] = {}
        """The names of functions by their text, without the name."""
        self._building: list[str] = []
        self._rules = 0
        """The number of custom rules that are being written, each inside the one before."""
        self._cut = 0
        """The number of rules that were not written because they are nested too deeply."""

    @contextmanager
    def rule(self) -> Iterator[None]:
        """Enter the writing of a custom rule.

        Raises:
            derivative_rules.Refused: if the rule is nested too deeply to be written.
        """
        if self._rules >= self._orders:
            self._cut += 1
            orders = "1 order" if self._orders == 1 else f"{self._orders} orders"
            raise derivative_rules.Refused(f"rules are written for {orders} of derivatives")
        self._rules += 1
        try:
            yield
        finally:
            self._rules -= 1

    def shared(
        self, key: object, keep: object, base: str, build: Callable[[str], list[ast.stmt]]
    ) -> ast.expr:
        """Return the name of a function at the top of the module.

        It is written once for each `key`, and once for equal text. `build` receives the name and
        writes the function, together with others whose names start with it. `keep` is kept alive.
        """
        entry = self._shared.get(key)
        if entry is not None and entry[2] <= self._rules:
            self._cut += entry[2] > 0
            return ast.Name(entry[1])
        cut = self._cut
        stand_in = f"{STAND_IN}{len(self._building)}__"
        self._building.append(stand_in)
        start = len(self.statements)
        around, self.inside = self.inside, []  # not visible at the top of the module
        try:
            statements = build(stand_in)
        except derivative_rules.Outlived:
            del self.statements[start:]
            raise
        finally:
            self._building.pop()
            self.inside = around
        text = "\n".join(line.text for line in lines(statements)).replace(stand_in, "")
        name = self._texts.get(text)
        if name is None:
            name = self._names.fresh(identifier(base, "function"))
            final = renamed([*self.statements[start:], *statements], stand_in, name)
            for statement in final:
                if isinstance(statement, ast.FunctionDef):
                    self._names.keep(statement.name)
            self.statements[start:] = final
            self._texts[text] = name
        self._shared[key] = (keep, name, self._rules if self._cut > cut else 0)
        return ast.Name(name)

    def custom(
        self, identity: object, program: Program, base: str, build: Callable[[str], list[ast.stmt]]
    ) -> ast.expr:
        """Return the name of a shared function whose rules may call it.

        It is keyed by its rule and its program.
        """
        for written, name, rules in self._customs.get(identity, ()):
            if rules <= self._rules and Comparison().programs(written, program) is None:
                self._cut += rules > 0
                return ast.Name(name)
        entries = self._customs.setdefault(identity, [])

        def built(name: str) -> list[ast.stmt]:
            entries.append((program, name, 0))
            try:
                return build(name)
            finally:
                entries.pop()

        key = ("custom", identity, id(program.jaxpr))
        function = self.shared(key, program, base, built)
        entries.append((program, flat(function), self._shared[key][2]))
        return function

    def helper(self, name: str, build: Callable[[], ast.FunctionDef]) -> str:
        """Return the name of a function of jaxsight's own; write it if the module lacks it."""
        if not any(
            isinstance(statement, ast.FunctionDef) and statement.name == name
            for statement in self.statements
        ):
            self._names.keep(name)
            self.statements.append(build())
        return name
