"""What the user chose for the session: example sets of functions, and the target."""

from __future__ import annotations

import os

from jaxsight.examples.sets import ExampleSet
from jaxsight.projects.projects import Projects
from jaxsight.queries.documents import Document, Subject
from jaxsight.source.text import Position, Range
from jaxsight.targets.target import CPU, Target, parse
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.compilation.default_target import default_target, own_target
from jaxsight.workers.compilation.environments import CompilerEnvironment
from jaxsight.workers.request_queue import Priority


def environment_of(target: Target, python: str, jax: str) -> CompilerEnvironment | Trouble:
    """Return the environment that compiles for a target."""
    if target.host:
        return CompilerEnvironment("ssh", "", jax)
    if target.is_own:
        platform = "here" if target.platform == CPU else f"here-{target.platform}"
        return CompilerEnvironment(platform, python, jax)
    if (environment := environments.suiting(target.platform, jax)) is None:
        size = environments.MEGABYTES[target.platform]
        return Trouble(
            "missing",
            f"compiler for {target.name} is not installed; "
            f"{environments.installing(target.platform)} (about {size} MB)",
            last=False,
        )
    return environment


# Where the user looks: what is there is compiled before the rest.


class Attention:
    """The part of each document on screen, and the place that was last edited or asked about.

    An editor reports neither the cursor nor the screen: they are derived from its requests.
    """

    def __init__(self) -> None:
        self._on_screen: dict[str, Range] = {}
        self._cursor: tuple[str, Position] | None = None

    def show(self, path: str, range: Range) -> None:
        """Note the part of a document that is on screen, as of a request for its hints."""
        self._on_screen[path] = range

    def point(self, path: str, position: Position) -> None:
        """Note the place of the cursor, as of an edit or a request."""
        self._cursor = path, position

    def close(self, path: str) -> None:
        """Drop what is known of a document."""
        self._on_screen.pop(path, None)
        if self._cursor is not None and self._cursor[0] == path:
            self._cursor = None

    def urgency(self, path: str, range: Range) -> Priority:
        """Return how urgent it is to compile the function at a range, if nobody asked about it."""
        on_screen = self._on_screen.get(path)
        seen = self._has_cursor(path, range) or (on_screen is not None and on_screen.touches(range))
        return Priority.SCREEN if seen else Priority.BACKGROUND

    def rank(self, path: str, range: Range) -> tuple[bool, Priority]:
        """Return a key that sorts functions: the one at the cursor, those on screen, the others."""
        return not self._has_cursor(path, range), self.urgency(path, range)

    def _has_cursor(self, path: str, range: Range) -> bool:
        return self._cursor is not None and self._cursor[0] == path and self._cursor[1] in range


class UserChoices:
    """The active example set of each function, and the target."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._sets: dict[tuple[str, str], str] = {}
        self._preferred: dict[tuple[str, str], tuple[object, str]] = {}
        """Sets that can be traced, or further than others, where the user chose none; each for the
        text and the sets of which that is known."""
        self._target = ""
        """The target that the user selected; empty for that of the settings."""

    def set_of(self, document: Document, subject: Subject) -> ExampleSet | None:
        """Return the active example set of a function; `None` if it has none."""
        sets = subject.examples.sets
        key = document.path, subject.id
        name = self._sets.get(key)
        if name is None and (preferred := self._preferred.get(key)) is not None:
            known, better = preferred
            name = better if known == _known(subject) else None
        return next((s for s in sets if s.name == name), sets[0] if sets else None)

    def choose_set(self, path: str, subject: Subject, name: str) -> None:
        """Make another example set of a function the active one.

        Raises:
            LookupError: the function has no such set.
        """
        names = [example_set.name for example_set in subject.examples.sets]
        if name not in names:
            own = ", ".join(repr(each) if each else "an unnamed set" for each in names)
            raise LookupError(f"{subject.name} has no example inputs named {name!r}; it has {own}")
        self._sets[path, subject.id] = name

    def prefer_set(self, path: str, subject: Subject, name: str) -> None:
        """Make a set the active one unless the user chose one."""
        self._preferred[path, subject.id] = _known(subject), name

    def is_chosen(self, path: str, subject: Subject) -> bool:
        """Return whether the user chose an example set of a function."""
        return (path, subject.id) in self._sets

    def forget(self) -> None:
        """Forget everything that was chosen."""
        self._sets.clear()
        self._preferred.clear()
        self._target = ""

    def target(self, path: str) -> Target:
        """Return the target of a file that is shown first."""
        return self.targets(path)[0]

    def targets(self, path: str) -> tuple[Target, ...]:
        """Return the targets of a file, at least one, the one that is shown first."""
        project = self._projects.of(path)
        if named := self._target or project.settings.target:
            first = parse(named)
        else:
            first = default_target(project.jax, project.plugins, os.environ)
        chosen = {first.name: own_target(first, os.environ)}
        for target in map(parse, project.settings.targets):
            chosen.setdefault(target.name, own_target(target, os.environ))
        return tuple(chosen.values())

    def choose_target(self, name: str) -> None:
        """Show another target; an empty name selects that of the settings.

        This allows no host: a project may have named it in the list, and a link may run the
        command. The user is asked again where they were before.

        Raises:
            LookupError: no such target; the message has the nearest names.
        """
        target = parse(name) if name else None
        if target is not None and target.host:
            self._projects.trust.ask_anew(target.host)
        self._target = target.name if target is not None else ""


def _known(subject: Subject) -> object:
    return subject.chunk.id, tuple(each.name for each in subject.examples.sets)
