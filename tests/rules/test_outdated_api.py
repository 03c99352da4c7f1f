"""The table of renamed and removed names agrees with the packages that are installed here."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from importlib import metadata

import pytest

from jaxsight.rules.jx470_outdated_api.table import Replacement, rows

ROWS = [row for each in rows().values() for row in each]
PACKAGES = sorted({row.package for row in ROWS})
INSTALLED = {package: metadata.version(package) for package in ("jax", "optax", "equinox")}
if importlib.util.find_spec("flax") is not None:
    INSTALLED["flax"] = metadata.version("flax")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def exists(name: str) -> bool:
    """Return whether a full name can be imported and read."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        try:
            for part in parts[count:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def has_keyword(row: Replacement) -> bool:
    """Return whether a function still names the keyword of a row."""
    module, _, name = row.old.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    return row.keyword in inspect.signature(function).parameters


def agrees(row: Replacement, installed: str) -> bool:
    """Return whether a row says what is so in the installed version."""
    is_gone = bool(row.gone) and numbers(installed) >= numbers(row.gone)
    if row.keyword:  # a removed keyword may be left in the signature, to raise an error
        return is_gone or has_keyword(row)
    if is_gone:
        return not exists(row.old)
    return (bool(row.gone) and numbers(installed) < (0, 8)) or exists(row.old)


def advises_well(row: Replacement, installed: str) -> bool:
    """Return whether the name that a row advises exists where it should."""
    name = row.new.partition("(")[0]
    if row.keyword or not name.startswith(f"{row.package}."):
        return True
    since = max(numbers(row.gone or row.since or "0"), (0, 10))
    return (row.package == "jax" and numbers(installed) < since) or exists(name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", PACKAGES)
def test_rows_agree_with_the_installed_package(package: str) -> None:
    if package not in INSTALLED:
        pytest.skip(f"{package} is not installed")
    known = [row for row in ROWS if row.package == package]
    assert [row.display for row in known if not agrees(row, INSTALLED[package])] == []
    assert [row.display for row in known if not advises_well(row, INSTALLED[package])] == []
