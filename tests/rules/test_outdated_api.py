"""The table of renamed and removed names agrees with the packages that are installed here."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import warnings
from importlib import metadata

import pytest

from jaxsight.rules.jx470_outdated_api.table import Replacement, rows
from jaxsight.rules.wording import MOST

ROWS = [row for each in rows().values() for row in each]
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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.shown)
def test_a_row_agrees_with_the_installed_package(row: Replacement) -> None:
    installed = INSTALLED.get(row.package)
    if installed is None:
        pytest.skip(f"{row.package} is not installed")
    is_gone = bool(row.gone) and numbers(installed) >= numbers(row.gone)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not row.keyword:
            if is_gone:
                assert not exists(row.old)
            elif not row.gone or numbers(installed) >= (0, 8):
                assert exists(row.old)
        elif not is_gone:  # a removed keyword may be left in the signature, to raise an error
            assert has_keyword(row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.shown)
def test_what_a_row_advises_exists(row: Replacement) -> None:
    name = row.new.partition("(")[0]
    if row.keyword or not name.startswith(f"{row.package}.") or row.package not in INSTALLED:
        return
    since = numbers(row.gone or row.since or "0")
    if numbers(INSTALLED[row.package]) >= max(since, (0, 10)) or row.package != "jax":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert exists(name)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.shown)
def test_messages_are_short(row: Replacement) -> None:
    assert len(row.message) <= MOST
    assert row.new or row.help
