"""Arguments and options of commands, declared by the signatures and docstrings of their functions.

Parameters before `*` are positional arguments, those after it options. Their types and defaults are
those of the parameters, and their texts are in the docstring:

    def listed(path: Path, *, limit: int = 20, only: list[str] | None = None) -> int:
        \"\"\"List functions.

        Args:
            path (FILE): File with the functions.
            limit (N>=0): Functions to list at most.
            only (--only -n NAME): Functions to list. Repeatable. [default: all]
        \"\"\"

In parentheses are the names of an option, if they are not that of the parameter, its metavar, and
the least number that it takes. `[default: …]` says in words what is used without it. An option
without a text is hidden. What several commands have is an annotation at the end, with the same
text: `Annotated[bool, "(--json): Print JSON."]`.

click checks a default as it checks what is given, so it must not be below the least number.
`python -OO`, which has no docstrings, has no commands.
The rest is click: `@app.command("install")` adds a function to a `Group`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from enum import EnumType, StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import rich_click as click

_ARGUMENTS = "\nArgs:\n"
_DESCRIBED = re.compile(
    r"(\((?P<names>(-+\w\S*\s*)*)(?P<metavar>.*?)(>=(?P<min>[\d.]+))?\))?:?\s*(?P<help>.*?)"
    r"(\s*\[default: (?P<default>.*)\])?"
)


class _FromSignature(click.Command):
    """Takes the parameters of a command from its function."""

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        function = settings.get("callback")
        declared = _parameters(function) if function is not None else ()
        others = settings.pop("params", None) or ()
        if settings.get("help"):
            settings["help"] = inspect.cleandoc(settings["help"]).partition(_ARGUMENTS)[0]
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


class _Choice(click.Choice[Any]):
    """The values of an enumeration or of a literal type."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        """Return a value as it is written: click would take the names of an enumeration."""
        return str(choice)


def _parameters(function: Callable[..., object]) -> Iterator[click.Parameter]:
    _, _, arguments = (inspect.getdoc(function) or "").partition(_ARGUMENTS)
    texts = dict(re.findall(r"^ {4}(\w+) ?(.*(?:\n {8}.*)*)", arguments, re.MULTILINE))
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if get_origin(hint) is Annotated:
            hint, texts[name] = get_args(hint)
        described = _DESCRIBED.fullmatch(" ".join(texts[name].split()))
        assert described is not None, name
        kind, is_several = _kind(hint)
        default: Any = parameter.default
        settings: dict[str, Any] = {
            "type": _type(kind, described["min"]),
            "required": default is parameter.empty,
            "metavar": described["metavar"] or None,
            "help": described["help"],
        }
        if default is not parameter.empty:  # to click 8.3, `None` would be one as well
            settings["default"] = default
        if is_several:  # click has tuples
            settings["callback"] = lambda _context, _parameter, values: list(values) or None
        if parameter.kind is not parameter.KEYWORD_ONLY:
            # click and rich-click write choices and defaults of options alone.
            if isinstance(settings["type"], _Choice):
                settings["help"] += f" \\[{'|'.join(settings['type'].choices)}]"
            if described["default"]:
                settings["help"] += f" [dim]\\[default: ({described['default']})][/dim]"
            yield _NamedArgument(name, nargs=-1 if is_several else 1, **settings)
        else:
            yield click.RichOption(
                [name, *((described["names"] or "").split() or [f"--{name.replace('_', '-')}"])],
                is_flag=kind is bool,
                multiple=is_several,
                show_default=described["default"] or True,
                hidden=not described["help"],
                **settings,
            )


def _kind(hint: Any) -> tuple[Any, bool]:
    """Return the type of one value, and whether the parameter takes several."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    return (get_args(hint)[0], True) if get_origin(hint) is list else (hint, False)


def _type(kind: Any, least: str | None) -> Any:
    if get_origin(kind) is Literal or isinstance(kind, EnumType):
        return _Choice(get_args(kind) or list(kind))
    if kind is Path:
        return click.Path(path_type=Path)
    if least is not None:
        number = int(least) if least.isdigit() else float(least)
        return click.IntRange(int(number)) if kind is int else click.FloatRange(number)
    return kind


class InputsChoice(StrEnum):
    """Which example inputs are used."""

    ALL = "all"
    WRITTEN = "written"


WhichInputs = Annotated[
    InputsChoice,
    "(--inputs): Example inputs to use. [cyan]written[/cyan]: those in docstrings, "
    "annotations and settings; [cyan]all[/cyan]: also recorded runs, calls, and proposed "
    "inputs that can be traced, which are marked as assumed.",
]

Function = Annotated[
    str,
    "(FILE:FUNCTION): Function, or method as [cyan]Class.method[/cyan]; [cyan]-[/cyan] is the"
    " text on stdin.",
]

SetName = Annotated[str | None, "(--set NAME): Example set to use. [default: the first]"]

Python = Annotated[
    str | None,
    "(PYTHON): Python interpreter with JAX installed. [default: auto-detected]",
]

_TARGET = "(--target -t TARGET): Target device, as listed by [cyan]jaxsight targets[/cyan]."

Target = Annotated[str | None, f"{_TARGET} [default: the project's]"]

Targets = Annotated[list[str] | None, f"{_TARGET} Repeatable. [default: the project's]"]

LockTargets = Annotated[
    list[str] | None,
    f"{_TARGET} Repeatable. [default: those of jaxsight.lock, else the project's]",
]

Allow = Annotated[
    list[str] | None,
    "(ssh://HOST|PYTHON): Allow the project's settings and docstrings to use this host, or "
    "this interpreter outside of the project. Repeatable.",
]

Against = Annotated[
    str | None,
    "(FILE:FUNCTION|REVISION): Compare with another function, or with the same function in a "
    "git revision.",
]

StdinFunction = Annotated[
    str | None,
    "(--stdin-filename FILE:FUNCTION): Function of the text on stdin, and the file that it "
    "has, for settings and imports.",
]

AsJson = Annotated[bool, "(--json): Print JSON."]
