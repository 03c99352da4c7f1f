"""What functions are called with in dry runs of a project's programs.

A tracer runs programs that reach an open file abstractly: tests, scripts, notebooks, documents.
Their calls are example inputs of functions that have no better ones. The programs run one file
after another in the background until all such functions have inputs, and again when a text that
they depend on has another meaning. A program that ends its tracer is not run again with the same
texts.
"""

from __future__ import annotations

import asyncio
import functools
import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from jaxsight.examples.jax_use import JaxUse, is_program, may_be_traced
from jaxsight.examples.sets import OutsideSet
from jaxsight.projects.project import Observed, Project
from jaxsight.projects.projects import Projects
from jaxsight.queries.choices import UserChoices
from jaxsight.queries.documents import Document, OpenDocuments, Subject, module_name
from jaxsight.queries.dry_runs import own_program
from jaxsight.queries.dry_runs.call_facts import (
    CallFacts,
    PartialCall,
    are_old,
    batches,
    functions_of,
    has_loop,
    parents,
    used_outside,
    why_uncalled,
)
from jaxsight.queries.dry_runs.project_files import ProgramFiles, example_calls
from jaxsight.queries.long_work import JobQueue
from jaxsight.queries.memory import SessionMemory
from jaxsight.queries.traces.query import module_meaning, run_of
from jaxsight.source.module import Module
from jaxsight.wire.messages.inputs import PROGRAM, RUN, DryCall, EntryPoint, InputCall
from jaxsight.wire.messages.replies import CallRecord, Cancelled, DryCalls, Failed, Traced
from jaxsight.wire.messages.requests import NEW, DryRun, Trace
from jaxsight.wire.observations import DRY_RUN
from jaxsight.workers.request_queue import Priority
from jaxsight.workers.results import Died, Reason

_SETS = 3
"""Example sets of a function from dry runs, a choice: calls of one program differ little."""
_PATIENCE = 10.0
"""Seconds of one request after which its programs end, a choice: slow imports are a part of it."""
_LONGEST = 60.0
"""Seconds after which no further program of a file is run, a choice: the tracer is busy."""
_DEATHS = 3
"""Programs that end their tracers after which no further one is run, a choice: each costs the start
of a tracer, and the next ones are like them."""
_NOT_ITS_FAULT = frozenset({Reason.STOPPED, Reason.UNAVAILABLE, Reason.SPOILED})
_WEAKER = frozenset({"program", "proposed", "none"})
"""Origins of example inputs that calls in programs take precedence over."""
_ARRAY = re.compile(r"[\w>]\[")
"""An array's type in a text, in contrast to a list."""
_MAKES = frozenset({"setup", "__post_init__"})
"""Methods that are not looked for: they are called with what is no array."""
_NOTHING = CallFacts(("", ()), Module.parse(""), "")
"""What is known of a file before its programs are run."""


@dataclass(eq=False, slots=True)
class ProgramCalls:
    """Keeps the documents' example inputs from dry runs up to date."""

    _documents: OpenDocuments
    _projects: Projects
    _choices: UserChoices
    _memory: SessionMemory
    _aside: JobQueue
    _files: ProgramFiles = field(default_factory=ProgramFiles)
    _readers: JobQueue = field(default_factory=JobQueue)
    """The thread that looks at other files."""
    _found: dict[str, CallFacts] = field(default_factory=dict)
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def update(self, document: Document) -> bool:
        """Run programs whose calls are not known; return whether functions have other inputs.

        Other requests of the project's tracers come first. A request that is cancelled is asked
        again the next time, the replies so far are kept.
        """
        async with self._turns.setdefault(document.path, asyncio.Lock()):
            return await self._update(document)

    def prefer_traced(self, document: Document) -> bool:
        """Put calls with which functions cannot be traced last; return whether any were first.

        Further programs are run by the next update if a function has no other call.
        """
        if (found := self._found.get(document.path)) is None:
            return False
        for subject in self._documents.subjects(document):
            if subject.examples.source == "program" and self._has_failed(document, subject):
                chosen = self._choices.set_of(document, subject)
                found.failed.add((subject.id, chosen.name if chosen is not None else ""))
        lacking = self._lacking(document)
        sets = self._sets(document, found, lacking)
        found.settled = found.settled and self._has_all(found, sets, lacking)
        return self._publish(document.path, sets)

    def is_current(self, document: Document, function: str = "") -> bool:
        """Return whether the calls of a function, or of all, are those of the current texts."""
        return not self.outdated(document, [function])

    def outdated(self, document: Document, functions: Collection[str]) -> frozenset[str]:
        """Return the functions of a document whose calls are those of an earlier text."""
        found = self._found.get(document.path, _NOTHING)
        if (
            found.meaning != module_meaning(document.module)
            or found.given != self._given_in(document)
            or not self._projects.texts.are_current(found.files)
        ):
            return frozenset(functions)
        known = functions if found.settled else found.known
        return frozenset(each for each in functions if each in found.kept or each not in known)

    def are_inputs(self, document: Document) -> bool:
        """Return whether the example inputs of functions are objects of a dry run."""
        sets = (self._choices.set_of(document, s) for s in self._documents.subjects(document))
        return any(chosen is not None and chosen.dry_call is not None for chosen in sets)

    def calls(self, path: str, function: str) -> list[tuple[CallRecord, DryCall]]:
        """Return the calls of a function of a file, those of the first programs first."""
        found = self._found.get(path, _NOTHING)
        return [each for each in found.calls if each[0].function == function]

    def errors(self, document: Document) -> list[own_program.LocatedError]:
        """Return the errors of the file's own program, those of a run of an earlier text too."""
        found = self._found.get(document.path, _NOTHING)
        return [
            error
            for reply in found.replies.values()
            if reply is not None and reply.errors
            for error in own_program.located(document.path, reply, found.module, document.module)
        ]

    def program(self, document: Document) -> Subject | None:
        """Return the file's own program, once it has been run dry."""
        return own_program.program_of(document, self._found.get(document.path, _NOTHING).replies)

    def programs_in(self, document: Document) -> list[Subject]:
        """Return the programs that XLA gets from it without that one function is all of them."""
        found = self._found.get(document.path, _NOTHING)
        return [*own_program.parts_of(document, found.module, found.calls)]

    def ran(self, path: str) -> frozenset[str]:
        """Return the functions of a file that ran themselves in programs, as `main` does."""
        replies = self._found.get(path, _NOTHING).replies.values()
        return frozenset(name for each in replies if each is not None for name, _ in each.ran)

    def unreached(self, document: Document) -> frozenset[str]:
        """Return the names in statements that the file's own program does not run to their end."""
        return own_program.unreached(self.errors(document), document.module)

    def uncalled(self, path: str, function: str) -> str:
        """Return why no program calls a function; empty while that is not known."""
        found = self._found.get(path, _NOTHING)
        if not found.settled:
            return ""
        ended = {entry for batch, reply in found.replies.items() if reply for entry in batch}
        return why_uncalled(path, function, found.key[1], ended, self.ran(path))

    def killers(self, path: str) -> list[Died]:
        """Return the deaths of tracers that ran programs for a file."""
        return self._found.get(path, _NOTHING).killers

    def partial(self, path: str, function: str) -> tuple[PartialCall, ...]:
        """Return the calls of a function of which some arguments are known, at most a few.

        Of a nested function, what it captures may be known.
        """
        calls = self.unknown_calls(path, function)
        return tuple(each for each in calls if each.known or "<locals>" in function)[:_SETS]

    def unknown_calls(self, path: str, function: str) -> tuple[PartialCall, ...]:
        """Return the calls of a function of which not all arguments are known."""
        found, document = self._found.get(path, _NOTHING), self._documents.get(path)
        if document is None:
            return ()
        calls: dict[object, PartialCall] = {}
        for call, dry_call in self.calls(path, function):
            if call.unknown:
                named = own_program.label(document, call, dry_call.entry)
                partial = PartialCall(
                    function, dry_call, named, call.inputs, call.unknown, found.fed, call.sizes
                )
                calls.setdefault((call.inputs, call.unknown), partial)
        return tuple(calls.values())

    async def programs(self, project: Project, path: str, text: str) -> tuple[EntryPoint, ...]:
        """Return the programs that may call functions of a file with a text, in order."""
        opened, outside = project.texts.open, project.outside
        given = {file: self._given_in(each) for file, each in self._documents.by_path.items()}
        looking = functools.partial(
            self._files.programs, path, text, project.root, opened, given, outside
        )
        return await self._readers.run(looking)

    def _given_in(self, document: Document) -> tuple[InputCall, ...]:
        """Return the functions of a document that have example inputs, with the active ones."""
        subjects = self._documents.subjects(document)
        chosen = ((each, self._choices.set_of(document, each)) for each in subjects)
        return example_calls(document.module, chosen)

    def readers(self, path: str) -> list[str]:
        """Return the open files whose functions may have other inputs after a change of a file."""
        real, text = self._projects.texts.real(path), self._projects.texts.current(path)
        return [
            reader
            for reader, found in self._found.items()
            if reader != path
            and (
                # The programs' files count, also of those that were not run.
                {path, real} & {*found.files, *(entry.file for entry in found.key[1])}
                or module_name(reader).rpartition(".")[2] in text  # it may be a program by now
            )
        ]

    def close(self, path: str) -> None:
        """Drop what is known of a document."""
        self._found.pop(path, None)
        self._turns.pop(path, None)

    def outdate(self) -> None:
        """Run all programs again: settings, interpreters or decisions changed."""
        self._found.clear()

    def retry(self) -> None:
        """Look for programs again, and run those that failed: files on disk have changed."""
        self._files.retry()

    def stop(self) -> None:
        """Look at no further file."""
        self._readers.close()

    async def _update(self, document: Document) -> bool:
        path, module = document.path, document.module
        project = self._projects.of(path)
        lacking = self._lacking(document)
        is_program = await self._aside.judge(module, functools.partial(own_program.acts, module))
        if (any(lacking.values()) or is_program) and project.held_back:
            project.ask_consent()
        is_wanted = (lacking or is_program) and project.settings.examples_from_programs
        if not is_wanted or project.held_back:
            self._found.pop(path, None)
            return self._publish(path, {})
        device = self._choices.target(path).device
        asking = functools.partial(run_of, document, project, device, module)
        run, key = await self._aside.judge(module, asking)
        programs = await self.programs(project, path, module.text)
        if not lacking:  # only to see how the file's own program ends
            programs = tuple(each for each in programs if each.is_own(path))
        if self._documents.get(path) is not document or document.module is not module:
            return False
        found = self._found.get(path)
        if (
            found is None
            or found.key != (key, programs)
            or not project.texts.are_current(found.files)
        ):
            found = self._found[path] = CallFacts(
                (key, programs), module, module_meaning(module), given=self._given_in(document)
            )
        if found.settled:
            return False
        return await self._run(document, project, run, found, lacking)

    async def _run(
        self,
        document: Document,
        project: Project,
        run: Trace,
        found: CallFacts,
        lacking: Mapping[str, bool],
    ) -> bool:
        """Run programs until all wanted functions have inputs; return whether these are others."""
        path = document.path
        sets = self._sets(document, found, lacking)
        before = self._documents.dry_calls(path)
        changed = False
        began = time.monotonic()
        left = list(batches(found.key[1]))
        while left and not (found.replies and self._has_all(found, sets, lacking)):
            if (batch := left.pop(0)) in found.replies:
                continue
            if time.monotonic() - began > _LONGEST or len(found.killers) == _DEATHS:
                break
            reply = await project.ask(
                DryRun(NEW, run, batch, _PATIENCE), priority=Priority.BACKGROUND
            )
            if self._found.get(path) is not found:
                return changed
            match reply:
                case DryCalls():
                    found.replies[batch] = reply
                    found.files |= {file: v for file, v in reply.files if file != path}
                    sets = self._sets(document, found, lacking)
                    found.known = {function for _, function in sets}
                    changed |= self._publish(path, {**before, **sets})
                case Cancelled():
                    return changed
                case Died() as died if died.program is not None and died.is_deserved:
                    found.killers.append(died)
                    file = died.program.file
                    read = {**dict(died.files), file: project.texts.version(file)}
                    found.files |= {file: v for file, v in read.items() if file != path}
                    found.replies[batch] = None
                    if others := tuple(entry for entry in batch if entry != died.program):
                        left.insert(0, others)
                case Died(death=death) if death.reason in _NOT_ITS_FAULT:
                    return changed
                case _:
                    found.replies[batch] = None
        found.settled = True
        return self._publish(path, sets) or changed

    def _lacking(self, document: Document) -> dict[str, bool]:
        """Return the ids of functions without better inputs, and whether they are looked for.

        Those are that use JAX and were not recorded.
        """
        subjects = self._documents.subjects(document)
        having = {s.id for s in subjects if s.examples.source not in _WEAKER}
        having -= self._failing(document)
        recorded = self._recorded(document.path).keys() - self._failing(document)
        jax_use = JaxUse.of(document.module)
        return {
            id: jax_use.shows(chunk, function)
            and function.qualname.rpartition(".")[2] not in _MAKES
            and id not in recorded
            for (chunk, function), id in functions_of(document.module)
            if function.refused in ("", "nested")
            and (id not in having or id in recorded)
            and not (used_outside(chunk, function) and having & {*parents(function.qualname)})
            and jax_use.uses is not None
            and (may_be_traced(function) or is_program(function))
        }

    def _recorded(self, path: str) -> dict[str, tuple[OutsideSet, ...]]:
        """Return the recorded calls of a document's functions."""
        every = self._projects.of(path).outside.observed
        return {id: calls for (file, id), calls in every.items() if file == path}

    def _failing(self, document: Document) -> set[str]:
        """Return the functions that cannot be traced with the inputs of other calls."""
        failing = {
            subject.id
            for subject in self._documents.subjects(document)
            if subject.examples.source == "recorded" and self._has_failed(document, subject)
        }
        better = self._documents.dry_calls(document.path).items()
        return failing | {name for (_, name), sets in better if any(s.is_better for s in sets)}

    def _has_all(self, found: CallFacts, sets: Observed, lacking: Mapping[str, bool]) -> bool:
        """Return whether no program needs to be run: all functions that are looked for have calls.

        Calls with which a function cannot be traced do not count, if others could be shown.
        """
        complete = {call.function for call, _ in found.calls if not call.unknown}
        programs = _programs(found.module)
        replies = (reply for reply in found.replies.values() if reply is not None)
        complete |= {name for reply in replies for name, _ in reply.ran if name in programs}
        for (_, function), calls in sets.items():
            known = [call for call in calls if call.dry_call is None or not call.dry_call.is_run]
            can_fail = all((function, call.label) in found.failed for call in known)
            if can_fail and len(known) < _SETS:
                complete.discard(function)
        return all(name in complete for name, is_wanted in lacking.items() if is_wanted)

    def _has_failed(self, document: Document, subject: Subject) -> bool:
        """Return whether a function could not be traced with its active example set."""
        chosen = self._choices.set_of(document, subject)
        unit = (document.path, subject.id, chosen.name if chosen is not None else "")
        if (latest := self._memory.latest.get(unit)) is None or isinstance(latest.reply, Traced):
            return False
        return not (isinstance(latest.reply, Failed) and latest.reply.failure.stage == DRY_RUN)

    def _usable(
        self, document: Document, found: CallFacts, lacking: Mapping[str, bool]
    ) -> Iterator[tuple[CallRecord, DryCall, bool]]:
        """Yield the calls that functions may be shown with, and whether recorded ones are older.

        What a run passes on is compared with that of another run: tests have sizes of their own.
        """
        module, runs = document.module, [c for c, d in found.calls if d.entry.is_own(d.entry.file)]
        loops = {id for each, id in functions_of(module) if has_loop(*each)}
        recorded = self._recorded(document.path)
        old = {
            id
            for id, calls in recorded.items()
            if are_old(calls, (each for each in runs if each.function == id))
        }
        wanted = {*lacking} - _programs(module)
        kept = recorded.keys() - self._failing(document)
        for call, dry_call in found.calls:
            id, is_of_run = call.function, dry_call.entry.is_own(dry_call.entry.file)
            if {each.function for each in dry_call.entry.given} & {*parents(id)}:
                continue  # the trace of the function around it has its shapes
            if call.unknown or id not in wanted or (id in kept and not (id in old and is_of_run)):
                continue
            has_arrays = any(_ARRAY.search(text) for _, text in call.inputs)
            # Without them, it would run a whole program.
            if has_arrays or (id not in loops and lacking[id]):
                yield call, dry_call, id in old

    def _sets(self, document: Document, found: CallFacts, lacking: Mapping[str, bool]) -> Observed:
        """Return the example sets of functions whose calls have all arguments."""
        failing = self._failing(document)
        own = [call for call, run in found.calls if run.entry.is_own(document.path)]
        others = {call.compiled for call in own}
        has_parts = any(
            call.function.startswith(PROGRAM) and call.file == document.path for call in own
        )
        sets: dict[tuple[str, str], dict[object, OutsideSet]] = {}
        for call, dry_call, is_newer in self._usable(document, found, lacking):
            is_written = bool(call.text) and not parents(call.function)
            of_function = sets.setdefault((document.path, call.function), {})
            inputs = call.text if is_written else call.inputs
            if inputs in of_function or len(of_function) == _SETS:
                continue
            name = own_program.label(document, call, dry_call.entry)
            same = sum(s.label.startswith(name) for s in of_function.values())
            of_function[inputs] = OutsideSet(
                "program",
                f"{name} {same + 1}" if same else name,
                call.text if is_written else "",
                may_fail=True,
                keeps_numbers=True,
                dry_call=None if is_written else dry_call,
                is_better=call.function in failing,
                is_newer=is_newer,
                assumed=call.sized,
                compiled=own_program.compiled_as(call.compiled, others, has_parts=has_parts)
                if dry_call.entry.is_own(document.path)
                or (dry_call.entry.file == document.path and dry_call.entry.given)
                else "",
                sizes=call.sizes,
            )
        for name, entry in self._ran(document, found):
            known = sets.setdefault((document.path, name), {})
            if all((name, call.label) in found.failed for call in known.values()):
                known[RUN] = OutsideSet(
                    "program",
                    own_program.run_label(document, entry),
                    "",
                    True,
                    dry_call=DryCall(entry, RUN),
                )
        shown = {name for (_, name), calls in sets.items() if RUN not in calls}
        for chunk, function in document.module.functions:
            if shown & {*parents(function.qualname)} and used_outside(chunk, function):
                sets.pop((document.path, function.qualname), None)
        return {
            key: tuple(sorted(calls.values(), key=lambda s: (key[1], s.label) in found.failed))
            for key, calls in sets.items()
        }

    def _ran(self, document: Document, found: CallFacts) -> Iterator[tuple[str, EntryPoint]]:
        """Yield the functions without inputs that ran in a program, with the first one."""
        subjects = self._documents.subjects(document)
        having = {s.id for s in subjects if s.examples.source not in _WEAKER}
        plain = {f.qualname for _, f in document.module.functions if f.kind == "function"}
        plain |= _programs(document.module)
        seen: set[str] = set()
        for batch, reply in found.replies.items():
            for name, number in reply.ran if reply is not None else ():
                if name in plain - having - seen and 0 <= number < len(batch):
                    seen.add(name)
                    yield name, batch[number]

    def _publish(self, path: str, sets: Observed) -> bool:
        """Give a document's functions their example sets; return whether these are others."""
        found = self._found.get(path)
        if found is not None and found.fails:  # written inputs of these can still be traced
            before = self._documents.dry_calls(path).items()
            kept = {k: s for k, s in before if all(each.dry_call is None for each in s)}
            found.kept = {function for _, function in kept.keys() - sets.keys()}
            sets = {**kept, **sets}
        return self._documents.put_dry_calls(path, sets)


def _programs(module: Module) -> set[str]:
    """Return the functions of a module that are run as programs."""
    return {function.qualname for _, function in module.functions if is_program(function)}
