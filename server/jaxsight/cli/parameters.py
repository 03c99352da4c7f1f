"""Arguments and options of commands, declared by the signatures of their functions.

The annotation of a parameter says how the command line names it; its type and its default are those
of the parameter:

    limit: Annotated[int, Option(metavar="N", min=0, help="Functions to list at most.")] = 20

click checks a default as it checks what is given, so it must not be below `min`.
The rest is click: `@app.command("install")` adds a function to a `Group`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, EnumType
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import rich_click as click


@dataclass(frozen=True, slots=True)
class Positional:
    """A positional argument; `show_default` says what it is where it is not given."""

    metavar: str
    help: str = ""
    show_default: str | bool = False


class Option:
    """An option of a command. Without names, it has that of the parameter."""

    def __init__(
        self,
        *names: str,
        help: str = "",
        metavar: str | None = None,
        min: float | None = None,
        show_default: str | bool = True,
        hidden: bool = False,
    ) -> None:
        self.names = names
        self.min = min
        self.settings = {
            "help": help,
            "metavar": metavar,
            "show_default": show_default,
            "hidden": hidden,
        }


class _FromSignature(click.Command):
    """Takes the parameters of a command from the signature of its function."""

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        function = settings.get("callback")
        declared = _parameters(function) if function is not None else ()
        others = settings.pop("params", None) or ()
        super().__init__(name, params=[*others, *declared], **settings)


class Command(_FromSignature, click.RichCommand):
    """A command whose parameters are those of its function."""


class Group(_FromSignature, click.RichGroup):  # type: ignore[misc] # as click.RichGroup
    """Such commands in the order of their declaration, with the options of its own function."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


class _NamedArgument(click.RichArgument):
    """An argument that help and errors call by its `metavar` alone."""

    def __init__(self, name: str, metavar: str, **settings: Any) -> None:
        super().__init__([name], metavar=metavar, **settings)
        self.opts = []

    def make_metavar(self, ctx: click.Context) -> str:
        """Return `[PATH]...`."""
        shown = f"{self.metavar}" if self.required else f"[{self.metavar}]"
        return shown if self.nargs == 1 or "..." in shown else f"{shown}..."

    def get_rich_table_row(self, *arguments: Any) -> Any:
        """Return the row of the help."""
        # rich-click writes the name of the type in place of a metavar that begins with the name.
        name, self.name = self.name, " "
        try:
            return super().get_rich_table_row(*arguments)
        finally:
            self.name = name


class _Choice(click.Choice[str]):
    """The values of an enumeration or of a literal type."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        super().__init__([str(value) for value in get_args(kind) or kind])

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the value as the type has it."""
        chosen = super().convert(str(value), param, ctx)
        return self._kind(chosen) if isinstance(self._kind, EnumType) else chosen


def _parameters(function: Callable[..., object]) -> Iterator[click.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        (declared,) = hints[name].__metadata__
        kind, is_several = _kind(hints[name].__origin__)
        default = parameter.default
        is_required = default is parameter.empty
        settings: dict[str, Any] = {"type": _type(kind, declared), "required": is_required}
        if not is_required:  # click does not miss a value whose default is None
            settings["default"] = default.value if isinstance(default, Enum) else default
        if is_several:  # click has tuples
            settings["callback"] = lambda _context, _parameter, values: list(values) or None
        if isinstance(declared, Positional):
            count = -1 if is_several else 1
            settings |= {"metavar": declared.metavar, "nargs": count}
            settings["help"] = _help(declared, settings["type"])
            yield _NamedArgument(name, **settings)
        else:
            names = declared.names or (f"--{name.replace('_', '-')}",)
            settings |= {**declared.settings, "multiple": is_several}
            yield click.RichOption([name, *names], is_flag=kind is bool, **settings)


def _kind(hint: Any) -> tuple[Any, bool]:
    """Return the type of one value, and whether the parameter takes several."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    return (get_args(hint)[0], True) if get_origin(hint) is list else (hint, False)


def _type(kind: Any, declared: Positional | Option) -> Any:
    if get_origin(kind) is Literal or isinstance(kind, EnumType):
        return _Choice(kind)
    if kind is Path:
        return click.Path(path_type=Path)
    if isinstance(declared, Option) and declared.min is not None:
        if kind is int:
            return click.IntRange(int(declared.min))
        return click.FloatRange(declared.min)
    return kind


def _help(argument: Positional, kind: Any) -> str:
    """Return the help of an argument with its choices and its default.

    click and rich-click write these of options alone.
    """
    choices = f" \\[{'|'.join(kind.choices)}]" if isinstance(kind, _Choice) else ""
    default = argument.show_default
    shown = f" [dim]\\[default: ({default})][/dim]" if default else ""
    return f"{argument.help}{choices}{shown}"
