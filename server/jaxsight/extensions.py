"""The packages beside the core, which finds them by name and never imports them itself.

The extension `NAME` is the package `jaxsight_NAME` in the folder that this package is in. What it
adds follows from the modules that it has:

| module of `jaxsight_NAME` | adds |
|---|---|
| `extension` | `EXTENSION`, what is known of it before it is used; imports nothing else |
| `cli.command` | the command `jaxsight NAME`: an `app` |
| `start` | the process that `boot.py NAME` starts: its `main` |
| `editor` | what editors show of it: `extend`, which gets the engine of a session |
| `editor.commands` | what editors may execute: `commands`, which gets their connection |
| `pytest_plugin` | options of pytest, by an entry point of the distribution |

A part of the distribution may lack an extension: an editor's has no `dataset`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

NAMES = ("repro", "dataset")
"""The extensions, in the order of the commands' help."""


@dataclass(frozen=True, slots=True)
class Extension:
    """What is known of an extension before it is used.

    Attributes:
        help: the first sentence of its command's help.
        group: the group that `jaxsight --help` lists the command in.
        documents: its kinds of virtual documents, which editors show as they are, with the endings
            of their names; empty if it adds nothing to editors.
    """

    help: str
    group: str
    documents: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def installed() -> dict[str, Extension]:
    """Return the extensions of this installation, by name."""
    return {
        name: importlib.import_module(f"jaxsight_{name}.extension").EXTENSION
        for name in NAMES
        if importlib.util.find_spec(f"jaxsight_{name}") is not None
    }


def part(name: str, module: str) -> ModuleType:
    """Return a module of an extension that is installed, such as `cli.command`."""
    return importlib.import_module(f"jaxsight_{name}.{module}")


def documents() -> dict[str, str]:
    """Return the kinds of virtual documents of all extensions, with the endings of their names."""
    endings: dict[str, str] = {}
    for extension in installed().values():
        endings |= extension.documents
    return endings


def of_editors() -> list[str]:
    """Return the names of the extensions that add something to editors."""
    return [name for name, extension in installed().items() if extension.documents]
