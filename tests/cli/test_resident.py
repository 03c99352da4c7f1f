"""The server for commands: what it runs is as without it, but quicker."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxsight.cli.resident import client, endpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no Unix sockets")

SERVER = Path(__file__).parents[2] / "server"
MODEL = '''\
import jax.numpy as jnp
from helper import scaled


def double(x):
    """
    Example inputs:
        x: f32[3, 4]
    """
    print("tracing")
    return scaled(x)
'''
HELPER = "def scaled(x):\n    return x * 2\n"
ENDLESS = """\
def slow(x):
    '''
    Example inputs:
        x: f32[]
    '''
    while True:
        pass
"""
COMMAND = [sys.executable, "-m", "jaxsight"]


class Terminal:
    """Runs commands as a shell does whose environment lets a server run them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        left_out = {"JAXSIGHT_SERVER", "JAXSIGHT_TRUST", "CI"}
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        self.environ = {
            **kept,
            "PYTHONPATH": str(SERVER),
            "COLUMNS": "200",
            "XDG_RUNTIME_DIR": str(folder),
        }

    @property
    def sockets(self) -> list[Path]:
        return sorted(self.folder.glob("jaxsight/servers/*.sock"))

    def run(
        self, *arguments: str, cwd: Path, stdin: str | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=cwd,
            env={**self.environ, **environ},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )

    def start(self, *arguments: str, cwd: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=cwd,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    """A terminal, whose server the first command starts."""
    folder = Path(tempfile.mkdtemp(prefix="js-"))  # the path of a socket must be short
    own = Terminal(folder)
    yield own
    assert own.run("server", "--stop", cwd=folder).returncode == 0
    assert own.sockets == []
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture
def project(folder: Path) -> Path:
    """A project that all tests share, as its tracer is that of the command before."""
    (folder / "pyproject.toml").write_text("")
    (folder / "model.py").write_text(MODEL)
    (folder / "helper.py").write_text(HELPER)
    return folder


def test_the_next_command_traces_only_what_has_changed(terminal: Terminal, project: Path) -> None:
    show = "show", "model.py:double", "--what", "shapes"
    first = terminal.run(*show, cwd=project)
    assert first.stdout.endswith("-> f32[3,4]\n")
    assert "tracing" in first.stderr
    assert len(terminal.sockets) == 1

    again = terminal.run(*show, cwd=project)
    assert again.stdout == first.stdout
    assert again.stderr == first.stderr.replace("model.py: tracing\n", "").replace(
        f"{project}/", ""
    )

    (project / "model.py").write_text(MODEL.replace("f32[3, 4]", "f32[5]"))
    assert terminal.run(*show, cwd=project).stdout.endswith("-> f32[5]\n")
    (project / "helper.py").write_text(HELPER.replace("x * 2", "x.sum() * 2"))
    assert terminal.run(*show, cwd=project).stdout.endswith("-> f32[]\n")


def test_modules_are_those_that_python_finds_now(terminal: Terminal, project: Path) -> None:
    show = "show", "model.py:double", "--what", "shapes"
    assert terminal.run(*show, cwd=project).stdout.endswith("-> f32[3,4]\n")
    time.sleep(0.2)  # until a version may be kept
    assert terminal.run(*show, cwd=project).stdout.endswith("-> f32[3,4]\n")
    other = project / "other.txt"
    times = (project / "helper.py").stat()
    other.write_text(HELPER.replace("x * 2", "x.T  "))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    shutil.copy2(other, project / "helper.py")
    assert (project / "helper.py").stat().st_mtime_ns == times.st_mtime_ns
    assert terminal.run(*show, cwd=project).stdout.endswith("-> f32[4,3]\n")
    (project / "helper").mkdir()
    (project / "helper" / "__init__.py").write_text(HELPER.replace("x * 2", "x.sum()"))
    assert terminal.run(*show, cwd=project).stdout.endswith("-> f32[]\n")
    shutil.rmtree(project / "helper")


def test_settings_are_read_again(terminal: Terminal, project: Path) -> None:
    (project / "model.py").write_text(MODEL.replace("f32[3, 4]", "f32[N]"))
    show = "show", "model.py:double", "--json"
    (project / "pyproject.toml").write_text("[tool.jaxsight.sizes]\nN = 7\n")
    assert json.loads(terminal.run(*show, cwd=project).stdout)["outputs"] == "f32[7]"
    (project / "pyproject.toml").write_text("[tool.jaxsight.sizes]\nN = 9\n")
    assert json.loads(terminal.run(*show, cwd=project).stdout)["outputs"] == "f32[9]"


def test_exit_status_errors_and_stdin_are_those_of_the_command(
    terminal: Terminal, project: Path
) -> None:
    missing = terminal.run("show", "model.py:missing", cwd=project)
    assert missing.returncode == 2
    assert "no function missing in model.py" in missing.stderr
    failing = MODEL.replace("scaled(x)", "scaled(x) + jnp.zeros((5, 5))")
    found = terminal.run("check", "-", "--stdin-filename", "model.py", cwd=project, stdin=failing)
    assert found.returncode == 1
    assert "model.py:11" in found.stdout
    assert terminal.run("check", "model.py", cwd=project).returncode == 0


def test_what_a_command_chose_is_not_chosen_for_the_next(terminal: Terminal, project: Path) -> None:
    second = "        x: f32[3, 4]\n    Example inputs (other):\n        x: f32[8]\n"
    (project / "model.py").write_text(MODEL.replace("        x: f32[3, 4]\n", second))
    show = "show", "model.py:double", "--what", "shapes"
    assert terminal.run(*show, "--set", "other", cwd=project).stdout.endswith("-> f32[8]\n")
    assert terminal.run(*show, cwd=project).stdout.endswith("-> f32[3,4]\n")
    assert terminal.run("check", "model.py", "--select", "JX9", cwd=project).returncode == 0
    shown = terminal.run(*show, cwd=project)
    assert shown.stdout.endswith("-> f32[3,4]\n")
    assert "tracing" not in shown.stderr, "other options do not end its tracer"


def test_interrupted_command_leaves_the_server_ready(terminal: Terminal, project: Path) -> None:
    (project / "slow.py").write_text(ENDLESS)
    terminal.run("show", "model.py:double", cwd=project)
    for ending, status in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        command = terminal.start("show", "slow.py:slow", cwd=project)
        time.sleep(1)
        command.send_signal(ending)
        command.communicate(timeout=20)
        assert command.returncode == status
    shown = terminal.run("show", "model.py:double", "--what", "shapes", cwd=project)
    assert shown.stdout.endswith("-> f32[3,4]\n")
    assert len(terminal.sockets) == 1


@pytest.mark.slow
def test_a_command_beside_another_one_runs_by_itself(terminal: Terminal, project: Path) -> None:
    terminal.run("show", "model.py:double", cwd=project)
    waiting = terminal.start("check", "-", "--stdin-filename", "model.py", cwd=project)
    time.sleep(0.5)
    shown = terminal.run("show", "model.py:double", "--what", "shapes", cwd=project)
    assert shown.stdout.endswith("-> f32[3,4]\n")
    assert "tracing" in shown.stderr
    output, _ = waiting.communicate(MODEL, timeout=60)
    assert waiting.returncode == 0
    assert "1 function" in output


def test_without_server_nothing_is_left_running(
    terminal: Terminal, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="js-"))
    shown = terminal.run(
        *("show", "--no-server", "model.py:double"), cwd=project, XDG_RUNTIME_DIR=str(folder)
    )
    assert "tracing" in shown.stderr
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    for variables in ({"CI": "true"}, {"CI": "", "JAXSIGHT_SERVER": "no"}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert client.run(["show", "model.py:double"]) is None
    assert list(folder.iterdir()) == []


def test_a_command_trusts_no_more_than_its_own_arguments(terminal: Terminal, project: Path) -> None:
    inner = project / "inner"
    inner.mkdir()
    (inner / "part.py").write_text(
        "def double(x):\n    '''\n    Example inputs:\n        x: f32[N]\n    '''\n    return x * 2\n"
    )
    (project / "pyproject.toml").write_text("[tool.jaxsight.sizes]\nN = 7\n")
    show = "show", "part.py:double", "--json"

    def shown() -> tuple[bool, bool]:
        """Whether the settings above are ignored, and whether they were used."""
        ran = terminal.run(*show, cwd=inner)
        return "the folder is not trusted" in ran.stderr, "f32[7]" in ran.stdout

    assert terminal.run("show", "inner/part.py:double", cwd=project).returncode == 0
    assert shown() == (True, False)
    assert terminal.run("trust", str(project), cwd=inner).returncode == 0
    assert shown() == (False, True)
    assert terminal.run("trust", "--forget", str(project), cwd=inner).returncode == 0
    assert shown() == (True, False)


def test_server_ends_when_idle_and_a_dead_ones_socket_is_replaced(project: Path) -> None:
    own = Terminal(Path(tempfile.mkdtemp(prefix="js-")))
    server = own.start("server", "--socket", "--idle", "0.2", cwd=project)
    _, said = server.communicate(timeout=30)
    assert said.startswith("jaxsight serves commands on ")
    assert server.returncode == 0
    assert own.sockets == []
    (path,) = (Path(line.split()[-1]) for line in said.splitlines())
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    shown = own.run("show", "model.py:double", "--what", "shapes", cwd=project)
    assert shown.stdout.endswith("-> f32[3,4]\n")
    assert own.run("server", "--stop", cwd=project).stdout == "ended 1 server\n"
    assert own.sockets == []
    shutil.rmtree(own.folder)


def test_the_socket_is_that_of_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(tempfile.mkdtemp(prefix="js-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    first = endpoint.socket_path()
    assert first is not None
    monkeypatch.setenv("COLUMNS", "77")
    assert endpoint.socket_path() == first
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert endpoint.socket_path() not in (first, None)
    (folder / "jaxsight" / "servers").chmod(0o755)
    assert endpoint.socket_path() is None, "others can see it"
    shutil.rmtree(folder)


LIMITS = [
    *("ulimit -v 50000000", "ulimit -n 777", "ulimit -Sn 777", "ulimit -t 7777", "ulimit -c 7"),
    "renice -n 19 $$ >&2",
    *(("taskset -p 1 $$ >&2", "chrt --batch -p 0 $$ >&2") if sys.platform == "linux" else ()),
]


@pytest.mark.parametrize("limit", LIMITS)
def test_the_socket_is_that_of_limits(limit: str, terminal: Terminal) -> None:
    asks = "from jaxsight.cli.resident import endpoint; print(endpoint.socket_path())"

    def asked(before: str) -> str:
        script = f'{before}; exec "$0" -c "$1"'
        return subprocess.run(
            ["bash", "-c", script, sys.executable, asks],
            env=terminal.environ,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert asked("true") == asked("true")
    assert asked(limit) != asked("true")


@pytest.mark.slow
def test_a_server_of_other_code_makes_room_for_a_new_one(project: Path) -> None:
    own = Terminal(Path(tempfile.mkdtemp(prefix="js-")))
    copy = own.folder / "code"
    shutil.copytree(SERVER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    own.environ["PYTHONPATH"] = str(copy)
    show = "show", "model.py:double", "--what", "shapes"
    assert "tracing" in own.run(*show, cwd=project).stderr
    before = own.sockets
    (copy / "jaxsight" / "lru.py").touch()
    assert "tracing" in own.run(*show, cwd=project).stderr
    again = own.run(*show, cwd=project)
    assert again.stdout.endswith("-> f32[3,4]\n")
    assert "tracing" not in again.stderr
    assert own.sockets == before
    assert own.run("server", "--stop", cwd=project).stdout == "ended 1 server\n"
    shutil.rmtree(own.folder)
