"""The parameters that a function may have examples for, and those that it requires."""

from __future__ import annotations

from jaxsight.source.definitions import Function, Parameter


class Signature:
    """A function's parameters as a trace passes them: without the class of a class method."""

    def __init__(self, function: Function) -> None:
        self.function = function
        parameters = function.parameters
        bound = function.kind == "classmethod" and bool(parameters)
        self.class_parameter = parameters[0].name if bound else None
        self.parameters: tuple[Parameter, ...] = parameters[1:] if bound else parameters
        by_kind = {p.kind: p.name for p in self.parameters}
        self.variadic = by_kind.get("var_positional")
        self.keywords = by_kind.get("var_keyword")
        self.plain = {
            p.name: p for p in self.parameters if p.kind not in ("var_positional", "var_keyword")
        }
        method = function.kind in ("method", "property")
        self.self_name = parameters[0].name if method and parameters else None

    @property
    def slots(self) -> tuple[str, ...]:
        """The names that arguments are bound to, in signature order; `*` for those of `*args`."""
        return tuple(
            "*" if p.kind == "var_positional" else p.name
            for p in self.parameters
            if p.kind != "var_keyword"
        )

    @property
    def required(self) -> tuple[Parameter, ...]:
        """The parameters without a default."""
        return tuple(p for p in self.plain.values() if p.default is None)

    @property
    def class_name(self) -> str:
        return self.function.qualname.rpartition(".")[0].rpartition(".")[2]

    @property
    def traced_by_class(self) -> bool:
        """Whether the class's section alone is enough to trace a method.

        Special methods other than `__call__` need a section of their own.
        """
        name = self.function.qualname.rpartition(".")[2]
        return self.self_name is not None and (name == "__call__" or not name.startswith("__"))
