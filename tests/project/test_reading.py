"""Files are read and kept in two modules alone, so that no other place can wait for a pipe or read
3 GB.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "server" / "jaxsight"

READS = frozenset({"read_text", "read_bytes"})
WRITES = frozenset({"write_text", "write_bytes"})
MODULES = frozenset({"io", "os", "tokenize", "codecs", "gzip", "zipfile", "shelve", "dbm", "mmap"})
MODE = re.compile(r"[rwxa][bt+]*")
PICKLES = frozenset({"pickle", "shelve", "dill", "cloudpickle", "joblib"})

ALLOWED = {
    "files/reading.py": "this is the module",
    "files/private.py": "writes our own files, and opens one to lock",
    "lsp/transport/streams.py": "/dev/null and the streams of the protocol",
    "wire/descriptors.py": "/dev/null and the streams of the protocol",
    "workers/watchdog/guardian.py": "/dev/null and /proc, of processes of ours",
    "tracer/isolation/irreversible_effects.py": "/proc, of this process",
    "tracer/isolation/baseline.py": "the streams of user code, by descriptor",
    "workers/compilation/remote.py": "modules of this package",
    "compiler/compat/dumps.py": "reads what XLA wrote into a temporary folder of this process",
    "dataset/compat/pass_dumps.py": "the same",
    "compiler/compat/partitioning.py": "reads what XLA wrote into such a folder, and its log",
    "compiler/idle_memory.py": "/proc, of this process",
    "measuring/machine.py": "locks a file of this user in the system's temporary folder",
    "dataset/tables/files.py": "writes tables into a folder that this command made",
    "compiler/stand_ins.py": "writes into a folder of this process",
    "lsp/features/virtual_documents.py": "writes into a temporary folder of this process",
    "files/appended.py": "appends to a file in a folder that a command made",
    "recording/observing/profiled.py": "writes into a folder that the command made",
    "recompiling/jaxsight_recompiling.py": "writes where the command line said, in the user's pytest",
    "files/ownership.py": "checks on the descriptor that nobody else may have written the file",
    "timeline.py": "appends to the file that the benchmark names",
    "trust/store.py": "writes the decisions of the user, under a lock",
    "cli/output/file_writing.py": "writes the file that the user named",
    "cli/resident/client.py": "locks a file in this user's private folder; /dev/null",
    "cli/revisions/tree.py": "writes into a new private folder, in no link of the revision",
    "page/__init__.py": "reads a file of this package",
    "library/snapshots.py": "writes the lock beside the user's own test",
    "sourcerizer/written.py": "writes the file that the user named",
    "repro/capturing/case.py": "the folder of a case, which this command made",
    "repro/capturing/host_calls.py": "the same",
    "repro/capturing/run.py": "the same",
    "repro/capturing/stacks.py": "the same",
    "repro/emit/from_case.py": "the same",
    "repro/emit/repro_file.py": "writes the file that the user named",
    "repro/dumps/itself.py": "a temporary folder of this process",
    "repro/explaining/environments.py": "writes into an environment that it makes",
    "repro/explaining/intermediates.py": "a temporary folder of this process",
    "repro/explaining/prefixes.py": "the same",
    "repro/explaining/run.py": "reads the repro that the command wrote, or has read",
    "repro/reducing/children.py": "/dev/null, and /proc, of children of this process",
    "repro/reducing/equations/recording.py": "a temporary folder of this process",
    "repro/reducing/journal.py": "the folder in which a reduction continues",
    "repro/reducing/loading.py": "reads the repro that the command has read",
    "repro/reducing/statements/reduction.py": "a temporary folder of this process",
    "repro/running.py": "a temporary folder of this process",
}

PICKLED = {
    "repro/capturing/call_function.py": "writes a case into a folder that this command made",
    "repro/capturing/recorder.py": "the same",
    "repro/capturing/run.py": "the same",
    "repro/capturing/host_calls.py": "the same, and reads it in the command that writes its repro",
    "repro/compat/pickling.py": "the same",
    "repro/emit/from_case.py": "reads the case that its command wrote",
    "repro/emit/whole_program.py": "the same",
    "repro/reducing/loading.py": "what a child of this process sent through a pipe",
    "repro/reducing/equations/dive.py": "the same",
}
"""Modules that pickle. No file of unknown origin is ever unpickled."""


def opened(file: Path) -> Iterator[str]:
    """What in a module opens a file by its path."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                yield "open"
            case ast.Attribute(value=ast.Name(id=module), attr="open") if module in MODULES:
                yield f"{module}.open"
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="Path")), attr="open")
            ):
                yield "Path.open"
            case ast.Call(func=ast.Attribute(attr=name)) if name in READS | WRITES:
                yield name
            case ast.Call(func=ast.Attribute(attr="open", value=ast.Call())):
                yield "open of a made path"
            case ast.Call(
                func=ast.Attribute(attr="open"), args=[ast.Constant(value=str(mode)), *_]
            ) if MODE.fullmatch(mode):
                yield "open of a path"


def test_files_are_opened_where_that_is_safe() -> None:
    found = {
        str(file.relative_to(PACKAGE)): calls
        for file in sorted(PACKAGE.rglob("*.py"))
        if (calls := sorted(set(opened(file))))
    }
    assert found.keys() - ALLOWED.keys() == set(), (
        "read with jaxsight.files.reading, keep with jaxsight.files.private"
    )
    assert ALLOWED.keys() - found.keys() == set(), "these need no permission any more"
    for name in (
        "cli/output/file_writing.py",
        "compiler/stand_ins.py",
        "lsp/features/virtual_documents.py",
        "files/private.py",
    ):
        assert not READS & set(found[name])


def test_nothing_else_is_pickled() -> None:
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    modules = {alias.name.partition(".")[0] for alias in names}
                case ast.ImportFrom(module=str(module)):
                    modules = {module.partition(".")[0]}
                case _:
                    continue
            if modules & PICKLES and str(file.relative_to(PACKAGE)) in PICKLED:
                continue
            assert not modules & PICKLES, f"{file.relative_to(PACKAGE)} imports {modules}"
            assert "marshal" not in modules or file.name == "bytecode.py"
