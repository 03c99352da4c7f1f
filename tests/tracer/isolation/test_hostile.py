"""User code that misbehaves gets a clear answer, and the next request works.

What kills the process is the supervisor's to deal with; here is what a tracer must survive.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jaxsight.wire import frames as wire
from jaxsight.wire.messages.replies import Cancelled, Failed, Listing, Spoiled, Stage, Traced
from jaxsight.wire.messages.requests import Cancel, Show
from tests.tracer.isolation.driver import BOOT, Driver

SANE = """
import jax
import jax.numpy as jnp

@jax.jit
def f(x):
    return jnp.sin(x) * 2.0
"""


def fits(tracer: Driver) -> bool:
    """Whether the tracer serves sane code as if nothing had been."""
    return "sin" in tracer.trace(SANE, file="sane.py").jaxpr


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("sys.exit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise BaseException('odd')", "BaseException"),
        ("raise MemoryError", "MemoryError"),
        ("(lambda f: f(f))(lambda f: f(f))", "RecursionError"),
        ("input()", "EOFError"),
        ("signal.raise_signal(signal.SIGINT)", "KeyboardInterrupt"),
    ],
)
def test_an_exception_of_any_kind_is_an_answer(tracer: Driver, statement: str, error: str) -> None:
    text = f"import signal, sys\nY = {statement}\ndef f(x):\n    return x * Y\n"
    if statement.startswith("raise"):
        text = f"def stop():\n    {statement}\nY = stop()\ndef f(x):\n    return x * Y\n"
    failed = tracer.fail(text)
    assert failed.failure.type == error
    assert failed.failure.stage == "execute"
    assert failed.failure.frames[0].span is not None
    inside = f"import signal, sys\ndef f(x):\n    {statement}\n    return x\n"
    failed = tracer.fail(inside)
    assert failed.failure.type == error
    assert failed.failure.stage == "trace"
    assert fits(tracer)


def test_an_interrupt_counts_where_the_server_was_started_to_ignore_it(tmp_path: Path) -> None:
    ignoring = ("sh", "-c", 'trap "" INT; exec "$0" "$@"', sys.executable)
    tracer = Driver(tmp_path, python=ignoring)
    failed = tracer.fail(
        "import signal\nY = signal.raise_signal(signal.SIGINT)\ndef f(x):\n    return x * Y\n"
    )
    assert failed.failure.type == "KeyboardInterrupt"
    assert tracer.close() == 0


@pytest.mark.parametrize(
    "damage",
    [
        "import os; [os.close(n) for n in (0, 1, 2)]",
        "import sys; sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
        "import sys; sys.stdout = sys.stderr = sys.stdin = None",
        "import os; os.dup2(os.open(os.devnull, os.O_RDWR), 1)",
        "import builtins; builtins.len = builtins.isinstance = builtins.print = None",
        "import builtins; builtins.Exception = builtins.BaseException = int",
        "import builtins; del builtins.getattr, builtins.open, builtins.dict",
        "import builtins; builtins.__import__ = None",
        "import jax; jax.jit = jax.make_jaxpr = jax.numpy.sin = jax.lax.sin = None",
        "import jax; del jax.jit",
        "import sys; [sys.modules.pop(n) for n in list(sys.modules) if n.startswith('jax')]",
        "import sys; sys.modules.clear()",
        "import sys; sys.path[:] = []; sys.meta_path.clear()",
        "import sys; sys.path = None",
        "import os; os.environ.clear()",
        "import os; os.environ = {}",
        "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
        "import signal; [signal.signal(s, signal.SIG_IGN) for s in (2, 15, 17)]",
        "import signal; signal.setitimer(signal.ITIMER_REAL, 0.05)",
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))",
        "import sys; sys.settrace(lambda *a: 1 / 0)",
        "import sys; sys.setprofile(lambda *a: None)",
        "import sys; sys.setrecursionlimit(150)",
        "import gc; gc.disable()",
        "import warnings; warnings.simplefilter('error')",
        "import json, struct, queue, os; json.dumps = struct.pack = None",
        "import threading; threading.excepthook = None",
        "import logging; logging.disable(); logging.shutdown()",
        "import linecache; linecache.cache.clear()",
        "import atexit; atexit.register(lambda: 1 / 0)",
        "import multiprocessing as m; m.set_start_method('spawn', force=True)",
        "import jax; jax.config.update('jax_disable_jit', True)",
        "import jax; jax.config.update('jax_enable_x64', True)",
        "import jax; jax.clear_caches()",
        "import faulthandler; faulthandler.disable()",
    ],
)
def test_damage_does_not_outlive_the_request(tracer: Driver, damage: str) -> None:
    tracer.ask(f"def spoil():\n    {damage}\nDONE = spoil()\ndef f(x):\n    return (x, DONE)[0]\n")
    assert fits(tracer)
    tracer.ask(f"def f(x):\n    {damage}\n    return x\n")
    assert fits(tracer)


def test_damage_counts_for_the_file_that_does_it(tracer: Driver) -> None:
    text = """
    import builtins
    builtins.magic = 7
    import jax.numpy as jnp
    jnp.sin = lambda x: x * 9.0
    def f(x):
        return jnp.sin(x) * magic
    """
    text = textwrap.dedent(text).replace(
        "builtins.magic = 7", "builtins.magic = 7  # jaxsight: always"
    )
    text = text.replace("* 9.0", "* 9.0  # jaxsight: always")
    first = tracer.trace(text)
    assert "9.0" in first.jaxpr
    assert "7.0" in first.jaxpr
    assert fits(tracer)
    again = tracer.trace(text)
    assert again.jaxpr == first.jaxpr
    assert again.executed == 0


def test_a_thread_that_never_ends_lets_its_own_file_be_answered(fresh: Driver) -> None:
    text = """
    import threading
    def spin():
        while True:
            pass
    THREAD = threading.Thread(target=spin)
    THREAD.start()
    def f(x):
        return x * THREAD.is_alive()
    """
    fresh.trace(text)
    assert fresh.trace(text).executed == 0
    assert isinstance(fresh.ask(SANE, file="sane.py"), Spoiled)


def test_prints_go_to_the_output_before_the_answer_comes(tracer: Driver) -> None:
    tracer.trace("def f(x):\n    print('while tracing', x.shape)\n    return x\n")
    assert tracer.prints("while tracing (4,)")


def test_a_hundred_megabytes_of_prints_are_let_through(tracer: Driver) -> None:
    text = "def f(x):\n    for _ in range(100):\n        print('y' * 1_000_000)\n    return x\n"
    tracer.trace(text)
    assert fits(tracer)


def test_writing_to_the_protocol_by_number_is_not_possible(tracer: Driver) -> None:
    tracer.trace(
        "import os\ndef f(x):\n    os.write(1, b'raw' * 99)\n    os.write(0 + 1, b'x')\n    return x\n"
    )
    assert fits(tracer)


def test_a_forked_child_says_nothing(tracer: Driver) -> None:
    text = """
    import os, warnings
    def f(x):
        warnings.simplefilter("ignore")
        if os.fork() == 0:
            return x * 0.0
        return x * 5.0
    """
    assert "5.0" in tracer.trace(text).jaxpr
    assert fits(tracer)


LOOPS = {
    "in the function": "def f(x):\n    while True:\n        y = x + 1\n",
    "in the module": "n = 0\nwhile True:\n    n = n + 1\ndef f(x):\n    return x * n\n",
    "in a comprehension": "import itertools\ndef f(x):\n    return [x + i for i in itertools.count()]\n",
    "that catches everything": """
def f(x):
    while True:
        try:
            y = x + 1
        except Exception:
            pass
""",
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_an_endless_loop_can_be_cancelled(tracer: Driver, loop: str) -> None:
    request = tracer.request(loop)
    tracer.send(request)
    assert isinstance(tracer.receive(), Stage)
    tracer.send(Cancel(request.id))
    assert tracer.answer() == Cancelled(request.id)
    assert fits(tracer)


def test_a_request_cancelled_before_its_turn_does_not_run(tracer: Driver) -> None:
    gate = tracer.project / "gate"
    wait = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    first = tracer.request(f"{wait}def f(x):\n    return x\n")
    second = tracer.request("print('ran anyway')\ndef f(x):\n    return x\n")
    tracer.send(first)
    tracer.send(second)
    tracer.send(Cancel(second.id))
    gate.touch()
    assert isinstance(tracer.answer(), Traced)
    assert tracer.answer() == Cancelled(second.id)
    assert fits(tracer)


def test_cancelling_what_is_over_does_nothing(tracer: Driver) -> None:
    answer = tracer.trace(SANE)
    tracer.send(Cancel(answer.id))
    assert fits(tracer)


def test_the_whole_text_of_a_trace_can_be_shown(tracer: Driver) -> None:
    answer = tracer.trace(SANE)
    tracer.send(Show(900, answer.id))
    shown = tracer.answer()
    assert isinstance(shown, Listing)
    assert "sin" in shown.text
    tracer.send(Show(901, 10**6))
    missing = tracer.answer()
    assert isinstance(missing, Failed)


@pytest.mark.parametrize("code", ["import time; time.sleep(1e6)", "while True: pass"])
def test_the_process_ends_when_the_server_does(fresh: Driver, code: str) -> None:
    request = fresh.request(f"def f(x):\n    {code}\n")
    fresh.send(request)
    assert isinstance(fresh.receive(), Stage)
    assert fresh.close() == 0


def test_the_process_ends_while_it_is_still_starting(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, str(BOOT), "tracer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    )
    with process:
        assert process.stdin is not None
        process.stdin.close()
    assert process.returncode == 0


def test_garbage_on_the_line_ends_the_process(fresh: Driver) -> None:
    assert fresh.process.stdin is not None
    fresh.process.stdin.write(b"\xff" * 64)
    fresh.process.stdin.flush()
    with pytest.raises(EOFError):
        fresh.receive()
    assert fresh.close() == 3


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells children that their parent died"
)
def test_the_process_dies_with_its_parent_though_the_pipe_stays_open(tmp_path: Path) -> None:
    incoming, keep = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, sys.executable, str(BOOT), "tracer"],
        stdin=incoming,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.read(4)  # it greets
        parent.kill()
        # The end comes when the last process that could write is gone.
        parent.communicate(timeout=60)
    os.close(incoming)
    os.close(keep)


PARENT = """
import subprocess, sys
subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL)
"""


@pytest.mark.parametrize(
    ("package", "said"),
    [
        (None, "has no jax"),
        ("raise ImportError('jaxlib does not fit')", "jaxlib does not fit"),
        ("import sys; sys.exit('no')", "SystemExit"),
        ("__version__ = '0.4.30'", "0.8 or newer"),
    ],
)
def test_an_interpreter_without_a_usable_jax_says_so(
    tmp_path: Path, package: str | None, said: str
) -> None:
    if package is not None:
        (tmp_path / "jax.py").write_text(package)
        (tmp_path / "jaxlib.py").write_text("__version__ = '0.0.1'")
    # Without its environment's packages: a Python that has no JAX but what is in this folder.
    driver = Driver(tmp_path, python=[sys.executable, "-S"], PYTHONPATH=str(tmp_path))
    assert said in driver.hello.problem
    assert sys.executable in driver.hello.problem
    assert "jaxsight.python" in driver.hello.problem
    failed = driver.fail(SANE)
    assert failed.failure.message == driver.hello.problem
    assert driver.close() == 0


def test_a_message_that_cannot_be_read_ends_the_tracer(tmp_path: Path) -> None:
    """Also if it arrives together with one that can be, and nothing follows."""
    tracer = Driver(tmp_path)
    assert tracer.process.stdin is not None
    tracer.process.stdin.write(wire.encode(Cancel(1)) + wire.HEADER.pack(2) + b"[]")
    tracer.process.stdin.flush()
    assert tracer.process.wait(timeout=60) == wire.BROKEN_PROTOCOL
    tracer.close()
