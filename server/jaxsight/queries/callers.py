"""Example inputs of functions from the traces of their callers.

A trace reports the project's functions that it called, and with which arguments. Those are example
sets of functions that have no better ones. Only functions with example inputs of their own count as
callers: their traces reach all functions below them, so nothing depends on itself.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import PurePath

from jaxsight.examples.sets import OutsideSet
from jaxsight.projects.projects import Projects
from jaxsight.queries.choices import UserChoices
from jaxsight.queries.documents import Document
from jaxsight.queries.memory import SessionMemory
from jaxsight.queries.open_documents import OpenDocuments
from jaxsight.text.units import some
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.observations import Called

_FUNCTIONS = 40
"""Functions of a file that get example inputs from callers, a choice: all of most files."""
_SETS = 8
"""Example sets of a function from callers, a choice: tests call some functions a hundred times."""
_NAMED = 2
"""Callers that the name of a set lists, a choice: it is one word of a lens or a menu."""

_Function = tuple[str, str]
"""A file and the qualified name of a function in it."""
Asked = tuple[str, str]
"""The file of a caller, and the key of the answer about it."""
_Calls = dict[_Function, dict[str, dict[str, Asked]]]
"""Example inputs by called function; for each, what was asked about the callers, by their names.

A caller's name is that for the called function's file.
"""
_Situation = tuple[dict[str, Asked], frozenset[Asked]]
"""The callers of a function with a call, and those of them whose newest traces fail."""


@dataclass(frozen=True, slots=True)
class _Caller:
    """A function with example inputs of its own that calls others."""

    path: str
    name: str
    key: str
    """That of the answer."""
    calls: tuple[Called, ...]
    """Those in its last trace."""
    fails: bool
    """Whether its newest trace failed."""


@dataclass(eq=False, slots=True)
class Callers:
    """Keeps the documents' example inputs from callers up to date with the traces.

    All of it is derived from the last trace of each function of the open documents. Many documents
    may be open: only those that have changed are looked at again, and those that call each other.
    """

    _documents: OpenDocuments
    _projects: Projects
    _choices: UserChoices
    _memory: SessionMemory
    _seen: dict[str, tuple[object, ...]] = field(default_factory=dict)
    """What the callers of each document were last found in."""
    _touched: set[str] = field(default_factory=set)
    """Documents with functions that have another answer or example set since then."""
    _by_document: dict[str, tuple[_Caller, ...]] = field(default_factory=dict)
    """The functions of each document that call others, unless it has none."""
    _calls: _Calls = field(default_factory=dict)
    _real: dict[str, str] = field(default_factory=dict)
    """The real paths of the documents."""
    _changed: set[str] = field(default_factory=set)
    _rejected: dict[tuple[_Function, str], tuple[str, _Situation]] = field(default_factory=dict)
    """Calls with which a function alone is not traced, with the example set's name and the callers
    at that time.
    """
    _asked: dict[str, dict[tuple[str, str], frozenset[Asked]]] = field(default_factory=dict)
    """What was asked about the callers of each example set, by document, function and name."""

    def touch(self, path: str) -> None:
        """Look at a document's callers again: a function of it has another answer or set."""
        self._touched.add(path)

    def outdate(self) -> None:
        """Look at the callers of all documents again: settings, decisions or files changed."""
        self._seen = dict.fromkeys(self._seen, ())

    def update(self) -> None:
        """Update the example inputs of all documents, at the cost of what has changed."""
        documents = self._documents.by_path
        stale = self._outdated()
        if not stale:
            return
        has_other_calls = False
        for path in stale:
            callers = tuple(self._callers_in(documents[path])) if path in documents else ()
            has_other_calls |= callers != self._by_document.get(path, ())
            if callers:
                self._by_document[path] = callers
            else:
                self._by_document.pop(path, None)
        if has_other_calls or stale & {path for path, _ in self._calls}:
            before, self._calls = self._calls, self._found_calls()
            stale |= {path for path, _ in (*before, *self._calls)}
            for (function, text), (label, then) in tuple(self._rejected.items()):
                if self._situation(function, text) != then:
                    del self._rejected[function, text]
                    # It is asked again: that it failed says nothing of another text.
                    self._memory.latest.pop((*function, label))
        for path in stale & documents.keys():
            document = documents[path]
            self._reject_failed(path)
            if self._documents.observe(path, self._sets(document)):
                self._changed.add(path)

    def _outdated(self) -> set[str]:
        """Return the documents that have changed since the last update, also those closed."""
        documents = self._documents.by_path
        closed = self._seen.keys() - documents.keys()
        for path in closed:
            del self._seen[path]
            self._real.pop(path, None)
            self._asked.pop(path, None)
        stale, self._touched = self._touched | closed, set()
        for path, document in documents.items():
            looks = document, document.module, document.proposed
            if path in stale or self._seen.get(path) != looks:
                self._seen[path] = looks
                stale.add(path)
        return stale

    def changed(self) -> set[str]:
        """Return the open files whose example inputs have changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed & self._documents.by_path.keys()

    def asked(self, path: str, function: str, label: str) -> frozenset[Asked]:
        """Return what was asked about the callers that an example set is from."""
        return self._asked.get(path, {}).get((function, label), frozenset())

    def _found_calls(self) -> _Calls:
        """Return the calls in the last traces of all callers.

        Those of a caller whose newest trace failed count only for functions without other callers.
        """
        for path in self._documents.by_path.keys() - self._real.keys():
            self._real[path] = os.path.realpath(path)
        real = {self._real[path]: path for path in self._documents.by_path}
        calls: _Calls = {}
        every = (c for path in self._documents.by_path for c in self._by_document.get(path, ()))
        callers = sorted(every, key=lambda caller: caller.fails)
        for fails, group in groupby(callers, key=lambda caller: caller.fails):
            settled = set(calls) if fails else frozenset()
            for caller in group:
                for called in caller.calls:
                    path = real.get(called.file, called.file) or caller.path
                    if (path, called.function) in settled:
                        continue
                    name = f"`{caller.name}`"
                    if path != caller.path:
                        name += f" in {PurePath(caller.path).name}"
                    inputs = calls.setdefault((path, called.function), {})
                    for text in called.inputs:
                        inputs.setdefault(text, {})[name] = caller.path, caller.key
        return calls

    def _callers_in(self, document: Document) -> Iterator[_Caller]:
        """Yield the functions with example inputs of their own that call others."""
        if not self._projects.of(document.path).settings.examples_from_callers:
            return
        for subject in self._documents.subjects(document):
            chosen = self._choices.set_of(document, subject)
            if chosen is None or subject.is_from_caller or chosen.assumed:
                continue
            unit = (document.path, subject.id, chosen.name)
            answer, latest = self._memory.traced.get(unit), self._memory.latest.get(unit)
            if answer is not None and isinstance(answer.reply, Traced) and answer.reply.calls:
                fails = latest is not None and not isinstance(latest.reply, Traced)
                yield _Caller(document.path, subject.name, answer.key, answer.reply.calls, fails)

    def _reject_failed(self, path: str) -> None:
        """Reject calls with which a function alone is not traced, until a caller is traced again.

        The function may need what its caller does around the call. It was never traced with the
        inputs of the newest, failed trace.
        """
        for function, sets in self._documents.observed(path).items():
            for called in sets:
                now, unit = self._situation(function, called.text), (*function, called.label)
                latest, traced = self._memory.latest.get(unit), self._memory.traced.get(unit)
                if not now[0] or latest is None or isinstance(latest.reply, Traced):
                    continue
                arguments = latest.question.set.arguments
                if traced is None or traced.question.set.arguments != arguments:
                    self._rejected[function, called.text] = called.label, now

    def _situation(self, function: _Function, text: str) -> _Situation:
        """Return the callers with a call, and those of them that fail now."""
        callers = self._calls.get(function, {}).get(text, {})
        failing = {
            (caller.path, caller.key)
            for path in {path for path, _ in callers.values()}
            for caller in self._by_document.get(path, ())
            if caller.fails
        }
        return callers, frozenset(failing.intersection(callers.values()))

    def _sets(self, document: Document) -> Mapping[_Function, tuple[OutsideSet, ...]]:
        """Return the example sets of a document's functions, those of each with different names."""
        asked = self._asked[document.path] = {}
        own = {
            subject.id
            for subject in self._documents.subjects(document)
            if not (subject.is_from_caller or subject.is_proposed)
        }
        sets: dict[_Function, tuple[OutsideSet, ...]] = {}
        for _, function in document.module.functions:
            key = document.path, function.qualname
            inputs = self._calls.get(key)
            if inputs is None or function.qualname in own or len(sets) == _FUNCTIONS:
                continue
            kept = [text for text in inputs if (key, text) not in self._rejected][:_SETS]
            labels = Counter[str]()
            numbered: list[OutsideSet] = []
            for text in kept:
                label = f"as called by {some(list(inputs[text]), _NAMED, ' and ')}"
                labels[label] += 1
                number = f" {labels[label]}" if labels[label] > 1 else ""
                numbered.append(OutsideSet("caller", f"{label}{number}", text))
                asked[function.qualname, f"{label}{number}"] = frozenset(inputs[text].values())
            if numbered:
                sets[key] = tuple(numbered)
        return sets
