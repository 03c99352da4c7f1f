"""Start a tracer, and ensure that none of its processes outlives the server or the tracer itself.

The server's own Python runs this as a script: `guardian.py CONTROL confined|free COMMAND…`, with
the tracer's stdin, stdout and stderr as its own (it passes them on and keeps none) and a socket to
the server as the descriptor CONTROL.
It is the tracer's parent and adopts all orphans below it (Linux), so that a fork bomb, a daemon and
a grandchild in a session of its own are found and killed: when the tracer exits, when the server
requests it, and when the server exits, which closes the socket even on SIGKILL.
What it watches has a folder for temporary files of its own (`TMPDIR`), which ends with it.
It runs no user code, has no threads, and imports almost nothing, so that it starts within
milliseconds.

Lines from the server: `busy MEMORY PROCESSES` (limits, to be checked frequently from now on),
`idle` (answered by `rss BYTES`), `kill`.
Lines to the server: `started PID`, `error TEXT` (the command cannot be run), `rss BYTES`,
`memory USED LIMIT` and `processes COUNT LIMIT` (the tracer was killed for exceeding it),
`exit CODE SIGNAL` (the tracer ended; SIGNAL is 0 if it exited by itself).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

_ENDINGS = ("SIGTERM", "SIGHUP", "SIGINT")
"""Names of signals, of which Windows lacks one."""

WATCH_BUSY = 0.1
WATCH_IDLE = 2.0
"""Seconds between checks of the memory, during a request and between requests (threads may continue
to run), a choice: at 0.1 s, an allocation of 10 GB/s passes a limit by 1 GB; more checks, each of
which reads `/proc`, take the tracer's time."""

SWEEP_PAUSE = 0.002
SWEEP_LIMIT = 10.0
"""Seconds after which the guardian gives up on processes that are stuck in the kernel (state D),
which no signal ends; others are gone after some `SWEEP_PAUSE`s."""

WRITABLE = "JAXSIGHT_WRITABLE"  # of `files/own_folders.py`, whose package is not imported here

_OWN_PACKAGES = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))  # noqa: PTH100, PTH118, PTH120

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


class Gone(Exception):
    """The server closed its end of the connection, or exited."""


class Guardian:
    """The tracer's parent; `run` returns when no process is left to guard."""

    def __init__(self, control: int, command: list[str], *, confined: bool) -> None:
        os.set_inheritable(control, False)  # the tracer must not have it
        self._control = control
        self._command = command
        self._server = os.getppid()
        self._confined = confined
        self._tracer = 0
        self._folder = ""
        self._lines = b""
        self._memory = 0
        self._processes = 0
        self._pause = WATCH_IDLE

    def run(self) -> None:
        wake_read, wake_write = os.pipe()
        # `set_wakeup_fd` requires it: a signal handler must not wait.
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        # Python writes to the pipe only for signals that have a handler.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for ending in _ENDINGS:
            signal.signal(getattr(signal, ending), self._end_on_signal)
        try:
            self._start()
            _adopt_orphans()
            # The server exited before `PR_SET_PDEATHSIG` was set.
            if os.getppid() != self._server:
                raise Gone
            poll = select.poll()
            poll.register(self._control, select.POLLIN)
            poll.register(wake_read, select.POLLIN)
            while True:
                for descriptor, _ in poll.poll(self._pause * 1000):
                    if descriptor == wake_read:
                        os.read(wake_read, 4096)
                    else:
                        self._read_commands()
                if self._reap():
                    return
                self._watch()
        except Gone:
            pass
        finally:
            for ending in _ENDINGS:  # or a second one would leave the rest
                signal.signal(getattr(signal, ending), signal.SIG_IGN)
            self._end_everything()
            if self._folder:
                import shutil  # only now: this import takes as long as all the rest

                shutil.rmtree(self._folder, ignore_errors=True)

    def _end_on_signal(self, *_: object) -> None:
        raise Gone

    def _start(self) -> None:
        """Fork, and execute the command in a session of its own.

        This process has a single thread, so forking is safe.
        """
        problem_read, problem_write = os.pipe()
        self._folder = _temporary_folder()
        self._tracer = os.fork()
        if self._tracer == 0:
            try:
                os.setsid()
                # Ignored signals stay ignored across `exec`, and Python ignores SIGPIPE.
                for signal_number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(signal_number, signal.SIG_DFL)
                signal.set_wakeup_fd(-1)
                be_the_first_to_go()
                if self._folder:
                    os.environ["TMPDIR"] = self._folder
                if self._confined:
                    writable = f"{self._folder}{os.pathsep}{os.environ.get(WRITABLE, '')}"
                    os.environ[WRITABLE] = writable.strip(os.pathsep)
                    # Last, so that nothing but the package itself is found there.
                    sys.path.append(_OWN_PACKAGES)
                    from jaxsight.workers.confinement import launch

                    self._command[:0] = launch.confine(launch.NEWEST)
                os.execvp(self._command[0], self._command)
            except OSError as error:
                os.write(problem_write, str(error).encode()[:1000])
            finally:
                os._exit(127)  # as shells report it; a forked child must not return
        os.close(problem_write)
        # So that the server sees the tracer's pipes close though this process goes on.
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        self._send_line(f"started {self._tracer}")
        # Empty once the command runs: Python's descriptors close on `exec`.
        problem = os.read(problem_read, 1000)
        os.close(problem_read)
        if problem:
            self._send_line("error " + problem.decode(errors="replace").replace("\n", " "))

    def _send_line(self, line: str) -> None:
        unwritten = line.encode() + b"\n"
        try:
            while unwritten:
                unwritten = unwritten[os.write(self._control, unwritten) :]
        except OSError as error:
            raise Gone from error

    def _read_commands(self) -> None:
        try:
            data = os.read(self._control, 4096)
        except OSError as error:
            raise Gone from error
        if not data:
            raise Gone
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            match line.split():
                case [b"busy", memory, processes]:
                    self._memory, self._processes = int(memory), int(processes)
                    self._pause = WATCH_BUSY
                case [b"idle"]:
                    self._pause = WATCH_IDLE
                    self._send_line(f"rss {resident(self._tree())}")
                case [b"kill"]:
                    self._kill_tracer()

    def _tree(self) -> list[int]:
        return descendants(os.getpid())

    def _kill_tracer(self) -> None:
        # Kill the whole group at once, so that no process in it can escape by forking; leaders of
        # other groups follow in `_end_everything`.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._tracer, signal.SIGKILL)

    def _watch(self) -> None:
        if not self._memory:
            return
        tree = self._tree()
        if len(tree) > self._processes:
            self._kill_tracer()
            self._send_line(f"processes {len(tree)} {self._processes}")
        # Counting shared pages once takes the kernel longer: only if it may matter.
        elif (used := resident(tree)) > self._memory and (
            len(tree) == 1 or (used := proportional(tree)) > self._memory
        ):
            self._kill_tracer()
            self._send_line(f"memory {used} {self._memory}")

    def _reap(self) -> bool:
        """Reap dead children and continue stopped ones; return whether the tracer has died."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if os.WIFSTOPPED(status):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGCONT)
            elif pid == self._tracer:
                code = os.waitstatus_to_exitcode(status)
                self._send_line(f"exit {max(code, 0)} {max(-code, 0)}")
                return True

    def _end_everything(self) -> None:
        """Kill all processes below this one, and return when none is left."""
        pids = set(self._tree())
        self._kill_tracer()
        own_group = os.getpgrp()
        give_up = time.monotonic() + SWEEP_LIMIT
        while time.monotonic() < give_up:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    # Killing its own group would end the guardian itself.
                    if (group := os.getpgid(pid)) != own_group:
                        os.killpg(group, signal.SIGKILL)
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                # Zombies would still count as processes below this one.
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            pids = set(self._tree())
            if not pids:
                return
            time.sleep(SWEEP_PAUSE)


def _temporary_folder() -> str:
    """Make a folder that only its user may enter; return "" where no file can be written."""
    # As `tempfile` does, which takes longer to import than all the rest.
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    for above in (*named, "/tmp", "/var/tmp"):
        if above and os.path.isabs(above):  # noqa: PTH117
            folder = f"{above}/jaxsight-of-guardian-{os.urandom(8).hex()}"
            with contextlib.suppress(OSError):
                os.mkdir(folder, 0o700)  # noqa: PTH102
                return folder
    return ""


def descendants(root: int) -> list[int]:
    """Return the processes below `root`, without `root` itself."""
    if not sys.platform.startswith("linux"):
        return _descendants_by_ps(root)
    pids: list[int] = []
    frontier = [root]
    while frontier:
        pid = frontier.pop()
        # Processes may exit meanwhile; those that have exited have no children.
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
                with (
                    contextlib.suppress(OSError),
                    open(f"/proc/{pid}/task/{thread}/children", "rb") as file,  # noqa: PTH123
                ):
                    children = [int(child) for child in file.read().split()]
                    pids += children
                    frontier += children
    return pids


def _descendants_by_ps(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    with os.popen("ps -axo pid=,ppid=,pgid=") as table:
        for line in table:
            pid, parent, group = map(int, line.split())
            if group != os.getpgrp():  # `ps` itself, and the shell that runs it
                children.setdefault(parent, []).append(pid)
    pids: list[int] = []
    frontier = [root]
    while frontier:
        below = children.get(frontier.pop(), [])
        pids += below
        frontier += below
    return pids


def resident(pids: list[int]) -> int:
    """Return the resident memory of these processes in bytes.

    Shared pages count once for each process.
    """
    if not sys.platform.startswith("linux"):
        if not pids:
            return 0
        with os.popen(f"ps -o rss= -p {','.join(map(str, pids))}") as table:
            return sum(1024 * int(line) for line in table)
    total = 0
    for pid in pids:
        with (
            contextlib.suppress(OSError, IndexError),
            open(f"/proc/{pid}/statm", "rb") as file,  # noqa: PTH123
        ):
            total += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def proportional(pids: list[int]) -> int:
    """Return the memory that these processes use together, in bytes.

    A page shared by n of them counts 1/n in each.
    """
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123
                total += sum(
                    1024 * int(line.split()[1]) for line in file if line.startswith(b"Pss:")
                )
        except (OSError, ValueError):
            total += resident([pid])
    return total


def _adopt_orphans() -> None:
    """Become the parent of orphaned processes below this one (Linux only).

    On other systems, killing the process group has to suffice.
    When the server exits, the kernel continues this process if it is stopped, so that it sees the
    end of its connection.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # after the tracer has started: this import takes as long as all the rest

    library = ctypes.CDLL(None)
    library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    library.prctl(PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)


def be_the_first_to_go() -> None:
    """Disable core dumps, and have the kernel kill this process first if memory runs out."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("800")


if __name__ == "__main__":
    Guardian(int(sys.argv[1]), sys.argv[3:], confined=sys.argv[2] == "confined").run()
