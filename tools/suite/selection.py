"""What the gate holds of the tests that one environment collects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Traits:
    """What a test says of itself."""

    path: str
    """Of its file, which begins with `tests/`."""
    is_slow: bool = False
    """Marked `slow`, or measured so (tests/durations.json)."""
    is_search: bool = False
    """Marked `search`: it holds some cases of a search (tests/searches.py)."""
    is_smoke: bool = False
    """Marked `smoke`: the one that is run of its kind."""

    @property
    def folder(self) -> str:
        """The folder of tests."""
        return PurePath(self.path).parts[1]


@dataclass(frozen=True)
class Gate:
    """Every quick test, all of touched packages, ten cases of each search, smoke runs."""

    touched: frozenset[str]
    """Packages whose own files differ from what passed."""

    def holds(self, test: Traits) -> bool:
        """Return whether the gate runs a test."""
        return not test.is_slow or test.is_search or test.is_smoke or test.folder in self.touched


@dataclass(frozen=True)
class Near:
    """What to run while something is changed: `make test-touched`."""

    touched: frozenset[str]
    """Packages whose own files differ from what passed."""
    importing: frozenset[str]
    """Packages of which only what they import differs."""

    def holds(self, test: Traits) -> bool:
        """Return whether a test belongs to what is touched."""
        return test.folder in self.touched or (test.folder in self.importing and not test.is_slow)
