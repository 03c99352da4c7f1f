"""Functions against the imported module: what is the same, what differs, and which statement it is
due to.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.findings.verification import Sliced, Verification, VerifiedImports, verify
from jaxsight.projects.projects import Projects
from jaxsight.queries.documents import Document
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.queries.traces.query import Question, ask
from jaxsight.rules.finding import Finding, Severity
from jaxsight.session import Session
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.messages.replies import Failed, Imported, ImportedProgram, Traced
from jaxsight.wire.messages.requests import Import
from jaxsight.wire.observations import Failure, Frame
from jaxsight.workers.results import Death, Died, Reason
from tests.marks import Mark
from tests.quiet import QUIET
from tests.sessions import session_without_spare

FUNCTION = '''

def f(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x * SCALE
'''
TEXT = "".join(f"statement_{number}()\n" for number in range(1, 9)) + FUNCTION
LEFT_OUT = (1, 2, 4, 5, 6, 8)
"""The lines of `TEXT` that its function's slice has not."""
HERE = "{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) }"
THERE = HERE.replace("2.0", "5.0")

Program = Callable[[Collection[int]], str | None]


@dataclass
class Importer:
    """A file's imports: `program` gives every function's from the lines that run, none where they
    raise.
    """

    program: Program
    asked: list[frozenset[int]] = field(default_factory=list)

    async def __call__(self, request: Import) -> Imported | Failed | Died:
        whole = request.lines or ((1, 99),)
        lines = frozenset(line for first, last in whole for line in range(first, last + 1))
        self.asked.append(lines)
        program = self.program(lines)
        if program is None:
            return Failed(request.id, Failure("execute", "NameError", "not there"))
        return Imported(request.id, tuple(ImportedProgram(program) for _ in request.functions))


def sliced(
    text: str = TEXT, program: str | None = HERE, caveats: tuple[int, ...] = ()
) -> list[Sliced]:
    """The functions of a text as their slices make them, with caveats about some lines (from 1)."""
    document = Document("/project/model.py", text)
    found = []
    for subject in document.subjects(ExampleSettings({}, {})):
        chosen = subject.examples.sets[0]
        question = ask(document, subject, chosen, Projects().of("/project/model.py"))
        assert isinstance(question, Question)
        chunks = document.module.chunks
        places = [chunk.first_line + 1 for chunk in chunks]
        members = [c for c, line in zip(chunks, places, strict=True) if line not in LEFT_OUT]
        named = [c.first_line for c, line in zip(chunks, places, strict=True) if line in caveats]
        question = replace(
            question,
            slice=replace(
                question.slice,
                module_chunks=tuple(members),
                chunks=tuple(Chunk(c.id, c.id, c.text) for c in members),
            ),
            caveats=tuple(
                SliceCaveat(document.module.functions[0][1].range.shifted(line), "it was not run")
                for line in named
            ),
        )
        reply = Traced(0, (), "f32[3]", HERE, False, 1)
        view = View(Answer(question, reply), document.module, question, subject)
        found.append(Sliced(view, question, program))
    return found


async def verified_by(importer: Importer, functions: list[Sliced] | None = None) -> VerifiedImports:
    functions = functions or sliced()
    module = functions[0].view.module
    return await Verification(module, functions, importer, 5.0).verified()


def at(finding: Finding) -> int:
    """The line (from 1) of a finding."""
    return finding.range.start.line + 1


async def test_equal_programs_have_no_finding_and_need_one_import() -> None:
    importer = Importer(lambda lines: HERE)
    assert await verified_by(importer) == VerifiedImports((), 1)
    assert len(importer.asked) == 1


@pytest.mark.parametrize("cause", LEFT_OUT)
async def test_a_difference_is_at_the_statement_that_makes_it(cause: int) -> None:
    importer = Importer(lambda lines: THERE if cause in lines else HERE)
    verified = await verified_by(importer)
    [one] = verified.findings
    assert (one.code, one.severity, at(one)) == ("JX912", Severity.ERROR, cause)
    assert verified.functions == 0
    assert list(one.lines) == [
        "`f` was traced without this statement, which changes its program",
        "help: add `# jaxsight: always` to this statement",
        (
            "note: `…]. let b:f32[3] = mul a 5.0:f32[] in (b,) }` when imported, "
            "`…]. let b:f32[3] = mul a 2.0:f32[] in (b,) }` when traced"
        ),
    ]
    assert len(importer.asked) <= 3 + 6, "three imports, and a search by halves"


async def test_a_statement_may_need_those_above_that_were_left_out_too() -> None:
    def program(lines: Collection[int]) -> str | None:
        if 6 in lines and 2 not in lines:
            return None  # it uses what statement 2 defines
        return THERE if 6 in lines else HERE

    [one] = (await verified_by(Importer(program))).findings
    assert at(one) == 6
    assert list(one.lines)[1] == "help: add `# jaxsight: always` to this statement"
    [one] = (await verified_by(Importer(program), sliced(caveats=(2, 6)))).findings
    assert at(one) == 6
    assert list(one.lines)[1] == (
        "help: add `# jaxsight: always` to this statement and those above that it needs"
    )


async def test_functions_with_the_same_cause_are_searched_once() -> None:
    text = TEXT + "".join(FUNCTION.replace("def f", f"def f{number}") for number in range(9))
    importer = Importer(lambda lines: THERE if 5 in lines else HERE)
    found = await verified_by(importer, sliced(text))
    assert [at(one) for one in found.findings] == [5] * 10
    assert len(importer.asked) <= 3 + 6 + 9 * 4


async def test_a_difference_that_no_statement_makes_is_at_the_function() -> None:
    def program(lines: Collection[int]) -> str | None:
        return THERE if len(lines) > 50 else HERE

    [one] = (await verified_by(Importer(program))).findings
    assert at(one) == 11
    assert one.message == "program of `f` differs when the module is imported"


async def test_a_difference_that_a_caveat_names_is_a_warning() -> None:
    importer = Importer(lambda lines: THERE if 4 in lines else HERE)
    [one] = (await verified_by(importer, sliced(caveats=(4,)))).findings
    assert (one.severity, at(one)) == (Severity.WARNING, 4)


async def test_a_statement_that_was_stopped_is_named_by_its_caveat() -> None:
    """The slice has it: run to its end, it gives the program of the import."""
    [one] = (await verified_by(Importer(lambda lines: THERE), sliced(caveats=(3,)))).findings
    assert (one.severity, at(one)) == (Severity.WARNING, 3)
    assert one.message == (
        "`f` was traced without running this statement in full, which changes its program"
    )


async def test_a_function_that_can_be_traced_only_when_imported_differs() -> None:
    importer = Importer(lambda lines: THERE if 8 in lines else None)
    [one] = (await verified_by(importer, sliced(program=None))).findings
    assert (one.code, at(one)) == ("JX912", 8)
    assert list(one.lines)[-1] == "note: tracing fails unless the module is imported"


async def test_what_differs_between_imports_is_not_verified() -> None:
    programs = iter(range(9))
    importer = Importer(lambda lines: f"{HERE}\nconstant f32[3] {next(programs)}")
    [one] = (await verified_by(importer)).findings
    assert (one.code, one.severity, at(one)) == ("JX913", Severity.INFORMATION, 11)
    assert one.message == "program of `f` differs between imports of the module"


async def test_an_array_with_other_values_is_a_difference() -> None:
    here = f"{HERE}\nconstant f32[3] 01"
    there = here.replace("01", "02")
    importer = Importer(lambda lines: there if 4 in lines else here)
    [one] = (await verified_by(importer, sliced(program=here))).findings
    assert list(one.lines)[-1] == "note: a captured array has different values"


@pytest.mark.parametrize(
    ("reply", "line", "words"),
    [
        (
            Failed(
                0,
                Failure(
                    "execute",
                    "pkg.NoData",
                    "no \x1b[31mdata\n" + "x" * 99,
                    frames=(Frame("<module>", "/project/model.py", 4),),
                ),
            ),
            4,
            f"raised NoData: “no \\x1b[31mdata {'x' * 33}…”",
        ),
        (Failed(0, Failure("execute", "SystemExit", "3")), 11, "raised SystemExit: “3”"),
        (
            Died(
                0,
                "execute",
                Death(
                    Reason.TIMEOUT,
                    limit=5.0,
                    last_words="Timeout (0:00:05)!\nThread 0x1 (most recent call first):\n"
                    '  File "/project/model.py", line 2 in train\n'
                    '  File "/project/model.py", line 6 in <module>\n'
                    '  File "<frozen importlib._bootstrap>", line 241 in _call',
                ),
            ),
            6,
            "took longer than 5 s",
        ),
        (Died(0, "", Death(Reason.EXITED, code=3)), 11, "exited the process with status 3"),
        (
            Died(0, "", Death(Reason.CRASHED, signal=11)),
            11,
            "crashed the process (SIGSEGV, segmentation fault)",
        ),
    ],
)
async def test_an_import_that_gives_no_module_is_one_finding(
    reply: Failed | Died, line: int, words: str
) -> None:
    async def run(request: Import) -> Failed | Died:
        return reply

    functions = sliced(TEXT + FUNCTION.replace("def f", "def g"))
    module = functions[0].view.module
    verified = await Verification(module, functions, run, 5.0).verified()
    [one] = verified.findings
    assert (one.code, one.severity, at(one)) == ("JX913", Severity.INFORMATION, line)
    assert one.message == f"importing the module {words}"
    assert verified.functions == 0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = session_without_spare()
    root = tmp_path_factory.mktemp("project")
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    yield session
    await session.aclose()


REAL = '''\
"""A model."""
import jax
import jax.numpy as jnp
import numpy as np

WEIGHTS = np.arange(3.0)
CFG = {"scale": 2.0}
print("imported")
CFG["scale"] = 5.0


@jax.jit
def layer(x):
    return jnp.tanh(x) * WEIGHTS


def same(x):
    """
    Example inputs:
        x: f32[3]
    """
    return jax.lax.scan(lambda c, y: (layer(c), y), layer(x), x)


def other(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x * CFG["scale"]
'''


async def real(session: Session, folder: Path, text: str) -> VerifiedImports:
    """What comes of a file with this text."""
    file = folder / "model.py"
    file.write_text(text)
    session.open(str(file), text)
    try:
        return await verify(session.engine, str(file))
    finally:
        session.close(str(file))


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_real_imports_equal_real_traces(session: Session, tmp_path: Path) -> None:
    assert await real(session, tmp_path, REAL) == VerifiedImports((), 2)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_what_never_runs_is_found_to_matter(session: Session, tmp_path: Path) -> None:
    verified = await real(session, tmp_path, REAL.replace("5.0\n", "5.0  # jaxsight: never\n"))
    [one] = verified.findings
    assert (one.code, one.severity, at(one)) == ("JX912", Severity.WARNING, 9)
    assert one.message == "`other` was traced without this statement, which changes its program"
    assert verified.functions == 1


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_a_comment_ignores_what_was_found_and_is_not_unused(
    session: Session, tmp_path: Path
) -> None:
    comment = "# jaxsight: never  # jaxsight: ignore[JX912]"
    text = REAL.replace("5.0\n", f"5.0  {comment}\n")
    assert (await real(session, tmp_path, text)).findings == ()
    file = tmp_path / "model.py"
    session.open(str(file), text)
    assert (await session.report(str(file), kernels=True)).reported == []
    session.close(str(file))


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_a_real_import_that_fails_is_one_finding(session: Session, tmp_path: Path) -> None:
    verified = await real(session, tmp_path, f"{REAL}\n\nraise ValueError('no data')\n")
    [one] = verified.findings
    assert (one.code, at(one)) == ("JX913", REAL.count("\n") + 3)
    assert one.message == "importing the module raised ValueError: “no data”"


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_without_functions_to_trace_is_not_imported(
    session: Session, tmp_path: Path
) -> None:
    mark = Mark(tmp_path / "imported")
    text = f"{mark.statement}\n\ndef f(x):\n    return x\n"
    assert await real(session, tmp_path, text) == VerifiedImports()
    assert not mark.has_run
