"""Processes are killed and stopped at random moments while an editor works: how long until the next
right answer, and what is left behind.

Each round edits three files, asks about them, and kills or stops one process meanwhile; sometimes
the client is gone, or the server itself is killed: then all of its processes must end, and a new
server must be right. Nothing that was asked of a server that lives stays unanswered.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil

from tools.fuzz.conversation import PATIENCE, Broken, Talk
from tools.fuzz.report import Failure, Report, chance

_FILE = '''\
import jax
import jax.numpy as jnp

{name} = {number}.0


def loss(w, x):
    """
    Example inputs:
        w: f32[16, {number}]
        x: f32[4, 16]
    """
    return jnp.sum(jnp.tanh(x @ w) ** 2) * {name}
'''
_NAMES = ("one", "two", "three")
_MARK = "JAXSIGHT_FUZZ"
_GONE = 30.0
"""Seconds in which the processes of a server that is gone must be, too."""
_DESCRIPTORS = 12
"""By how many a server's descriptors may differ between two moments: processes start and end."""

ROLES = ("tracer", "spare", "guardian", "compiler")
_RARE = ("server paused", "client gone", "server killed")
KINDS = (*(f"{role} {what}" for role in ROLES for what in ("killed", "stopped")), *_RARE)
_WEIGHTS = tuple(1 if kind in _RARE else 3 for kind in KINDS)


class _Window:
    """A server under load, in folders of its own."""

    def __init__(self, folder: Path, mark: str) -> None:
        for name in ("tmp", "cache"):
            (folder / name).mkdir(exist_ok=True)
        self.temporary = folder / "tmp"
        environment = {
            "TMPDIR": str(self.temporary),
            "XDG_CACHE_HOME": str(folder / "cache"),
            _MARK: mark,
        }
        self.talk = Talk(environment=environment)
        self._version = 1
        for name in _NAMES:
            self.talk.open(self.talk.uri(f"{name}.py"), _FILE.format(name=name, number=1))
        self._asked: list[str] = []
        self.kernels()
        self.descriptors = self._descriptors()

    def load(self, random: Random) -> None:
        """Edit and ask, without waiting."""
        for name in _NAMES:
            self._version += 1
            uri = self.talk.uri(f"{name}.py")
            text = _FILE.format(name=name, number=random.randrange(1, 1000))
            changed = {
                "textDocument": {"uri": uri, "version": self._version},
                "contentChanges": [{"text": text}],
            }
            self.talk.post({"method": "textDocument/didChange", "params": changed})
            document = {"textDocument": {"uri": uri}}
            whole = {"start": {"line": 0, "character": 0}, "end": {"line": 13, "character": 0}}
            show = {"command": "jaxsight.show", "arguments": [uri, "loss", "hlo"]}
            for method, params in (
                ("textDocument/hover", {**document, "position": {"line": 12, "character": 22}}),
                ("textDocument/inlayHint", {**document, "range": whole}),
                ("textDocument/diagnostic", document),
                ("workspace/executeCommand", show),
            ):
                number = f"load-{uuid.uuid4()}"
                self._asked.append(number)
                self.talk.post({"id": number, "method": method, "params": params})

    def settle(self) -> None:
        """All that was asked is answered."""
        for number in self._asked:
            answer = self.talk.answer(number)
            if answer.get("error", {}).get("code") == -32603:
                raise Broken(f"{number} is answered by {answer['error']}")
        self._asked.clear()

    def kernels(self) -> float:
        """Seconds until the compiled form of the sane function, as it stands, is shown."""
        begin = time.monotonic()
        self.talk.sane()
        while True:
            arguments = [self.talk.uri("sane.py"), "sane", "hlo"]
            params = {"command": "jaxsight.show", "arguments": arguments}
            shown = json.dumps(self.talk.request("workspace/executeCommand", params))
            if "HloModule" in shown and f"f32[{self.talk.size}]" in shown:
                return time.monotonic() - begin
            if time.monotonic() - begin > PATIENCE:
                raise Broken(f"compiled is shown as {shown}")
            time.sleep(0.05)

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Those below the server by what they do."""
        found: dict[str, list[psutil.Process]] = {role: [] for role in ROLES}
        tracers = []
        for process in psutil.Process(self.talk.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                command = " ".join(process.cmdline())
                if "guardian.py" in command:
                    found["guardian"].append(process)
                elif "boot.py compiler" in command:
                    found["compiler"].append(process)
                elif "boot.py tracer" in command:
                    tracers.append((process.create_time(), process))
        tracers.sort(key=lambda each: each[0])
        found["tracer"] = [process for _, process in tracers[:1]]
        found["spare"] = [process for _, process in tracers[1:]]
        return found

    def _descriptors(self) -> int:
        return psutil.Process(self.talk.process.pid).num_fds()

    def leaked_descriptors(self) -> int:
        """By how many there are more than at the start."""
        return max(self._descriptors() - self.descriptors - _DESCRIPTORS, 0)


def run(count: int, seed: int) -> Report:
    report = Report()
    times: dict[str, list[float]] = {}
    ends: list[float] = []
    leaks: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="jaxsight-fuzz-") as name:
        mark = uuid.uuid4().hex
        window = _Window(Path(name), mark)
        try:
            for number in range(count):
                case = f"{seed}:{number}"
                random = chance(case)
                wanted = random.choices(KINDS, _WEIGHTS)[0]
                kind = wanted
                try:
                    window.load(random)
                    time.sleep(random.random() ** 2 * 0.6)
                    kind, seconds = _round(window, wanted, random)
                    if kind in ("client gone", "server killed"):
                        ends.append(_ended(mark))
                        leaks["temporary files of killed servers"] += _clear(window.temporary)
                        window.talk.end()
                        begin = time.monotonic()
                        window = _Window(Path(name), mark)
                        seconds = time.monotonic() - begin
                    window.settle()
                    found = window.talk.tracebacks()
                    if found:
                        raise Broken(found[0])
                    if more := window.leaked_descriptors():
                        leaks["descriptors"] += more
                        raise Broken(f"{more} descriptors are leaked")
                    times.setdefault(kind, []).append(seconds)
                    report.count(kind)
                except (Broken, psutil.Error, subprocess.TimeoutExpired) as error:
                    report.failures.append(
                        Failure(case, f"{kind}: {type(error).__name__}: {error}", "")
                    )
                    window.talk.end()
                    _ended(mark)
                    window = _Window(Path(name), mark)
                report.cases += 1
            status = window.talk.close()
            if status != 0:
                report.failures.append(Failure(str(seed), f"the server ended by {status}", ""))
            ends.append(_ended(mark))
            left = sorted(path.name for path in window.temporary.iterdir())
            if left:
                report.failures.append(
                    Failure(str(seed), f"{len(left)} temporary files are left", str(left))
                )
        except Broken as error:
            report.failures.append(Failure(str(seed), str(error), ""))
        finally:
            window.talk.end()
    report.table = _table(times, ends, leaks)
    return report


def _round(window: _Window, wanted: str, random: Random) -> tuple[str, float]:
    """Do it: what was done (another process where there is none of the kind now), and the seconds
    until the next right answer."""
    role, _, how = wanted.partition(" ")
    server = window.talk.process
    right: Callable[[], float] = window.talk.sane
    if role in ROLES:
        there = window.processes()
        if not there[role]:
            role = next((each for each in ROLES if there[each]), "")
            if not role:
                return "nothing there", right()
        process = random.choice(there[role])
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        if role == "compiler":
            right = window.kernels
        return f"{role} {how}", right()
    if wanted == "server paused":
        server.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        server.send_signal(signal.SIGCONT)
        return wanted, right()
    if wanted == "client gone":
        window.talk.drop()
    else:
        server.kill()
    server.wait(_GONE)
    return wanted, 0.0


def _ended(mark: str) -> float:
    """Seconds until no process of a server that is gone is left."""
    begin = time.monotonic()
    while left := _marked(mark):
        if time.monotonic() - begin > _GONE:
            words = ", ".join(f"{each.pid} {each.status()} {each.cmdline()[-3:]}" for each in left)
            for each in left:
                with contextlib.suppress(psutil.Error):
                    each.kill()
            raise Broken(f"{len(left)} orphans: {words}")
        time.sleep(0.02)
    return time.monotonic() - begin


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(_MARK) == mark:
                found.append(process)
    return found


def _clear(folder: Path) -> int:
    """Delete what a killed server left, which nobody else can; how many."""
    left = sorted(folder.rglob("*"), reverse=True)
    for path in left:
        path.rmdir() if path.is_dir() else path.unlink()
    return len(left)


def _table(times: dict[str, list[float]], ends: list[float], leaks: Counter[str]) -> str:
    """Seconds to the next right answer, by kind."""
    rows = [f"{'':18} rounds  median s  longest s"]
    everything = [each for some in times.values() for each in some]
    for kind, some in [*sorted(times.items()), ("all", everything)]:
        if some:
            rows.append(
                f"{kind:18} {len(some):6}  {statistics.median(some):8.2f}  {max(some):9.2f}"
            )
    if ends:
        rows.append(
            f"{'all processes gone':18} {len(ends):6}"
            f"  {statistics.median(ends):8.2f}  {max(ends):9.2f}"
        )
    rows += [f"{what}: {number}" for what, number in leaks.items() if number]
    return "\n".join(rows)
