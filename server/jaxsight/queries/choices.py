"""What the user chose for the session: example sets of functions, and the target."""

from __future__ import annotations

from jaxsight.examples.sets import ExampleSet
from jaxsight.projects.projects import Projects
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.programs.target_choice import chosen_targets
from jaxsight.targets.target import Target, UnknownTarget, parse


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
        settings = project.settings
        return chosen_targets(
            self._target or settings.target, settings.targets, project.jax, project.plugins
        )

    def choose_target(self, name: str) -> None:
        """Show another target; an empty name selects that of the settings.

        This allows no host: a project may have named it in the list, and a link may run the
        command. The user is asked again where they were before.

        Raises:
            LookupError: no such target; the message has the nearest names.
        """
        target = named_target(name) if name else None
        if target is not None and target.host:
            self._projects.trust.ask_anew(target.host)
        self._target = target.name if target is not None else ""


def named_target(name: str) -> Target:
    """Return the target with a name.

    Raises:
        LookupError: no such target; the message has the nearest names.
    """
    try:
        return parse(name)
    except UnknownTarget as error:
        raise LookupError(str(error)) from error


def _known(subject: Subject) -> object:
    return subject.chunk.id, tuple(each.name for each in subject.examples.sets)
