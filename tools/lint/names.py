"""Names tell things apart: limits on what a reader or mypy cannot distinguish by name and type."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from tools.lint.architecture import PAGE
from tools.lint.checkout import PACKAGE, Checkout, Module, Offender, inside

MOST_WORDS = 40
"""Words of the glossary, in ARCHITECTURE.md."""

HOMONYMS = 0
"""Public names that several classes have: a class has a name of its own."""
ANY = 600
"""Lines that name `Any`: values of user code, of JSON and of JAX's untyped internals."""
KINDS = 1
"""Fields and parameters `kind`, `what`, `form`, `state` that are plain strings, where a `Literal`
or an enumeration is checked by mypy.
"""
ONCE = 206
"""Private functions that their module names once, in thousandths of all functions: a function that
is used once should be worth its name.
"""
_ANY = re.compile(r"\bAny\b")


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield names with vague words, and each figure above its limit, with its places if few."""
    vague, terms = glossary(checkout.text(PAGE))
    if not vague or not 0 < len(terms) <= MOST_WORDS:
        message = f"{len(vague)} words to avoid and {len(terms)} terms below `## Words`"
        yield Offender(PAGE, 1, f"{message}, more than {MOST_WORDS} or none")
    for module in checkout.modules:
        for line, name in public_names(module):
            if words := vague_words(name, vague, terms):
                message = f"`{name}` has {', '.join(words)}, which {PAGE} has no meaning for"
                yield Offender(module.path, line, message)
    same = homonyms(checkout)
    if len(same) > HOMONYMS:
        shown = "; ".join(f"{name}: {', '.join(places)}" for name, places in same.items())
        yield _above(f"{len(same)} public names of classes are used twice", HOMONYMS, shown)
    any_lines = sum(
        bool(_ANY.search(line)) and not line.startswith("from typing import")
        for module in checkout.modules
        for line in module.text.splitlines()
    )
    if any_lines > ANY:
        yield _above(f"{any_lines} lines name `Any`", ANY)
    kinds = [place for module in checkout.modules for place in string_kinds(module)]
    if len(kinds) > KINDS:
        yield _above(f"{len(kinds)} kinds are plain strings", KINDS, "; ".join(kinds))
    counts = [used_once(module) for module in checkout.modules]
    once, every = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    thousandths = round(1000 * once / max(1, every))
    if thousandths > ONCE:
        yield _above(f"{thousandths} ‰ of all functions are private and used once", ONCE)


def _above(figure: str, limit: int, places: str = "") -> Offender:
    return Offender(PACKAGE, 1, f"{figure}, more than {limit}" + (f" ({places})" if places else ""))


def glossary(text: str) -> tuple[set[str], list[str]]:
    """Return the words that public names avoid, and the terms of the glossary."""
    section = text.partition("\n## Words\n")[2].partition("\n## ")[0]
    avoided = re.search(r"^A public name .*?\n\n", section, re.MULTILINE | re.DOTALL)
    words = set(re.findall(r"`([a-z]+)`", avoided[0])) if avoided else set()
    return words, re.findall(r"^\* \*\*(.+?)\*\*: ", section, re.MULTILINE)


def public_names(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the names of a module, its public classes and functions, and their public methods."""
    yield 1, PurePosixPath(module.path).stem
    scopes: list[ast.Module | ast.ClassDef] = [module.tree]
    while scopes:
        for node in scopes.pop().body:
            match node:
                case ast.ClassDef(name=name) if not name.startswith("_"):
                    yield node.lineno, name
                    scopes.append(node)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield from [(node.lineno, name)] if not name.startswith("_") else []


def vague_words(name: str, vague: set[str], terms: list[str]) -> list[str]:
    """Return the words of a name that it should not have."""
    if any(fnmatchcase(name, term) for term in terms):
        return []
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)]
    return [word for word in words if word in vague and word not in terms]


def homonyms(checkout: Checkout) -> dict[str, list[str]]:
    """Return the public names that several classes have, with their modules."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in checkout.modules:
        for node in module.nodes(ast.ClassDef):
            if not node.name.startswith("_"):
                places[node.name].append(inside(module.path))
    return {name: where for name, where in places.items() if len(where) > 1}


def string_kinds(module: Module) -> Iterator[str]:
    """Yield the fields and parameters that tell kinds apart by strings."""
    for node in [*module.nodes(ast.AnnAssign), *module.nodes(ast.arg)]:
        match node:
            case (
                ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="str"))
                | ast.arg(arg=name, annotation=ast.Name(id="str"))
            ) if name in ("kind", "what", "form", "state"):
                yield f"{inside(module.path)}:{node.lineno}"


def used_once(module: Module) -> tuple[int, int]:
    """Return the number of private functions that are named once, and of all functions."""
    names = Counter(node.id for node in module.nodes(ast.Name))
    names.update(node.attr for node in module.nodes(ast.Attribute))
    functions = module.functions()
    private = [each.name for each in functions if re.match(r"_(?!_)", each.name)]
    return sum(names[name] == 1 for name in private), len(functions)
