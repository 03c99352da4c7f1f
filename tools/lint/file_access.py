"""Files are read and kept in two modules alone.

So no other place can wait for a pipe, or read 3 GB.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.lint.checkout import Checkout, Module, Offender, inside, outside

READS = frozenset({"read_text", "read_bytes"})
WRITES = frozenset({"write_text", "write_bytes"})
MODULES = frozenset({"io", "os", "tokenize", "codecs", "gzip", "zipfile", "shelve", "dbm", "mmap"})
MODE = re.compile(r"[rwxa][bt+]*")
ALLOWED = {
    "files/reading.py": "this is the module",
    "jaxsight_source/programs/contents.py": "reads a program, of a limited size, without the server",
    "files/private.py": "writes our own files, and opens one to lock",
    "lsp/transport/streams.py": "/dev/null and the streams of the protocol",
    "wire/descriptors.py": "/dev/null and the streams of the protocol",
    "workers/confinement/landlock.py": "folders that rules of the kernel are about",
    "workers/watchdog/guardian.py": "/dev/null and /proc, of processes of ours",
    "tracer/isolation/irreversible_effects.py": "/proc, of this process",
    "tracer/isolation/baseline.py": "the streams of user code, by descriptor",
    "workers/compilation/remote.py": "modules of this package",
    "compiler/compat/schedule.py": "reads what XLA wrote into a temporary folder of this process",
    "compiler/compat/partitioning.py": "reads what XLA wrote into such a folder, and its log",
    "compiler/serve.py": "/proc, of this process",
    "measuring/machine.py": "locks a file of this user in the system's temporary folder",
    "jaxsight_dataset/tables/files.py": "writes tables into a folder that this command made",
    "compiler/stand_ins.py": "writes into a folder of this process",
    "lsp/features/virtual_documents.py": "writes into a temporary folder of this process",
    "files/appended.py": "appends to a file in a folder that a command made",
    "recording/observing/profiled.py": "writes into a folder that the command made",
    "recompiling/jaxsight_recompiling.py": "writes where the command line says, in pytest",
    "files/ownership.py": "checks on the descriptor that nobody else may have written the file",
    "timeline.py": "appends to the file that the benchmark names",
    "trust/store.py": "writes the decisions of the user, under a lock",
    "cli/output/printing.py": "writes the file that the user named",
    "cli/resident/client.py": "locks a file in this user's private folder; /dev/null",
    "cli/revisions/tree.py": "writes into a new private folder, in no link of the revision",
    "page/__init__.py": "reads a file of this package",
    "library/snapshots.py": "writes the lock beside the user's own test",
    "jaxsight_source/written.py": "writes the file that the user named",
    "jaxsight_repro/capturing/case.py": "the folder of a case, which this command made",
    "jaxsight_repro/capturing/recorder.py": "the same",
    "jaxsight_repro/capturing/run.py": "the same",
    "jaxsight_repro/emit/from_case.py": "the same",
    "jaxsight_repro/emit/repro_file.py": "writes the file that the user named",
    "jaxsight_repro/reducing/children.py": "/dev/null, and /proc, of children of this process",
    "jaxsight_repro/reducing/equations/recording.py": "a temporary folder of this process",
    "jaxsight_repro/reducing/task.py": "the folder in which a reduction continues",
    "jaxsight_repro/reducing/loading.py": "reads the repro that the command has read",
    "jaxsight_repro/reducing/statements/reduction.py": "a temporary folder of this process",
    "jaxsight_repro/running.py": "a temporary folder of this process",
}
"""What else opens files, and why that is safe."""
WRITES_ALONE = frozenset(
    {
        "cli/output/printing.py",
        "compiler/stand_ins.py",
        "lsp/features/virtual_documents.py",
        "files/private.py",
    }
)


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield what opens files without permission, and permissions that nothing needs."""
    needed = set[str]()
    for module in checkout.modules:
        name = inside(module.path)
        for line, how in opened(module):
            needed.add(name)
            if name not in ALLOWED:
                message = (
                    f"{how}: read with `jaxsight.files.reading`, keep with `jaxsight.files.private`"
                )
                yield Offender(module.path, line, message)
            elif name in WRITES_ALONE and how in READS:
                yield Offender(module.path, line, f"{how} in a module that only writes")
    for name in ALLOWED.keys() - needed:
        message = "opens no file, and needs no permission in `tools/lint/file_access.py`"
        yield Offender(outside(name), 1, message)


def opened(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of what opens a file by its path."""
    for attribute in module.nodes(ast.Attribute):
        match attribute:
            case ast.Attribute(value=ast.Name(id=origin), attr="open") if origin in MODULES:
                yield attribute.lineno, f"{origin}.open"
    for call in module.nodes(ast.Call):
        match call:
            case ast.Call(func=ast.Name(id="open")):
                yield call.lineno, "open"
            case ast.Call(func=ast.Attribute(value=ast.Call(), attr="open")):
                yield call.lineno, "open of a path"
            case ast.Call(func=ast.Attribute(attr=name)) if name in READS | WRITES:
                yield call.lineno, name
            case ast.Call(
                func=ast.Attribute(attr="open"), args=[ast.Constant(value=str(mode)), *_]
            ) if MODE.fullmatch(mode):
                yield call.lineno, "open of a path"
