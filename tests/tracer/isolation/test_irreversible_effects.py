"""What a file leaves in its process never reaches another file: it is undone, or the process asks
to be replaced.
"""

import re
from pathlib import Path

import pytest

from jaxsight.wire.messages.replies import Listing, Spoiled, Traced
from jaxsight.wire.messages.requests import JAXPR, Show
from tests.tracer.isolation.driver import Driver

RESTORED = {
    "numpy's errors": (
        "import numpy as np\nOLD = np.seterr(all='raise')",
        "import numpy as np\nSEEN = float(np.geterr()['over'] == 'raise')",
    ),
    "numpy's print options": (
        "import numpy as np\nDONE = np.set_printoptions(precision=2)",
        "import numpy as np\nSEEN = float(np.get_printoptions()['precision'] == 2)",
    ),
    "the decimal context": (
        "import decimal\nDONE = setattr(decimal.getcontext(), 'prec', 3)",
        "import decimal\nSEEN = float(decimal.getcontext().prec == 3)",
    ),
    "a decimal context of its own": (
        "import decimal\nDONE = decimal.setcontext(decimal.Context(prec=3))",
        "import decimal\nSEEN = float(decimal.getcontext().prec == 3)",
    ),
    "the locale": (
        "import locale\nDONE = locale.setlocale(locale.LC_ALL, 'C.UTF-8')",
        "import locale\nSEEN = float(locale.setlocale(locale.LC_ALL) == 'C.UTF-8')",
    ),
    "random": (
        "import random\nDONE = random.seed(7)",
        "import random\nSEEN = float(random.random() == random.Random(7).random())",
    ),
    "numpy's random": (
        "import numpy as np\nDONE = np.random.seed(7)",
        "import numpy as np\nSEEN = float(np.random.rand() == np.random.RandomState(7).rand())",
    ),
    "the longest integer": (
        "import sys\nDONE = sys.set_int_max_str_digits(1000)",
        "import sys\nSEEN = float(sys.get_int_max_str_digits() == 1000)",
    ),
    "logging": (
        "import logging\nDONE = logging.disable(logging.CRITICAL)",
        "import logging\nSEEN = float(logging.root.manager.disable == logging.CRITICAL)",
    ),
    "the root logger": (
        "import logging\nDONE = logging.getLogger().setLevel(3)",
        "import logging\nSEEN = float(logging.getLogger().level == 3)",
    ),
    "path hooks": (
        (
            "import sys\ndef marked_hook(path):\n    raise ImportError\n"
            "DONE = sys.path_hooks.insert(0, marked_hook)"
        ),
        "import sys\nSEEN = float(any(h.__name__ == 'marked_hook' for h in sys.path_hooks))",
    ),
    "finders": (
        (
            "import sys\nclass Marked:\n    @staticmethod\n    def find_spec(*_):\n        return None\n"
            "DONE = sys.meta_path.append(Marked)"
        ),
        "import sys\nSEEN = float(any(getattr(f, '__name__', '') == 'Marked' for f in sys.meta_path))",
    ),
    "callbacks of the garbage collector": (
        (
            "import gc\ndef marked_callback(phase, info):\n    pass\n"
            "DONE = gc.callbacks.append(marked_callback)"
        ),
        "import gc\nSEEN = float(any(c.__name__ == 'marked_callback' for c in gc.callbacks))",
    ),
}

GONE = {
    "thresholds of the garbage collector": (
        "import gc\nDONE = gc.set_threshold(1, 1, 1)",
        "import gc\nSEEN = float(gc.get_threshold() == (1, 1, 1))",
    ),
    "a soft limit": (
        (
            "import resource\n"
            "DONE = resource.setrlimit(resource.RLIMIT_NOFILE, "
            "(50, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))"
        ),
        "import resource\nSEEN = float(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 50)",
    ),
    "the mask of file modes": (
        "import os\nDONE = os.umask(0o777)",
        "import os\nSEEN = float(os.umask(0o22) == 0o777)",
    ),
    "the timeout of sockets": (
        "import socket\nDONE = socket.setdefaulttimeout(0.5)",
        "import socket\nSEEN = float(socket.getdefaulttimeout() == 0.5)",
    ),
    "the way processes start": (
        "import multiprocessing\nDONE = multiprocessing.set_start_method('spawn')",
        (
            "import multiprocessing\n"
            "SEEN = float(multiprocessing.get_start_method(allow_none=True) == 'spawn')"
        ),
    ),
    "tracing of threads": (
        (
            "import threading\ndef marked_trace(*_):\n    pass\n"
            "DONE = threading.settrace(marked_trace)"
        ),
        "import threading\nSEEN = float(threading.gettrace() is not None)",
    ),
    "a logger of JAX": (
        "import logging\nDONE = logging.getLogger('jax').setLevel(3)",
        "import logging\nSEEN = float(logging.getLogger('jax').level == 3)",
    ),
    "the time zone": (
        "import os, time\nos.environ['TZ'] = 'Asia/Tokyo'\nDONE = time.tzset()",
        "import time\nSEEN = float(time.tzname[0] == 'JST')",
    ),
}

SHOWS_SEEN = "\ndef f(x):\n    return x * (SEEN + 5.0)\n"


@pytest.mark.parametrize("name", [*RESTORED, *GONE])
def test_what_a_file_sets_does_not_reach_another(tracer: Driver, name: str) -> None:
    sets, reads = (RESTORED | GONE)[name]
    done = sets.split(" = ")[0].split("\n")[-1]
    text = f"{sets}  # jaxsight: always\ndef f(x):\n    {done}\n    return x\n"
    tracer.trace(text, file="a.py")
    reading = f"{reads}  # jaxsight: always{SHOWS_SEEN}"
    assert "5.0" in tracer.trace(reading, file="b.py").jaxpr


@pytest.mark.parametrize("name", RESTORED)
def test_what_a_file_sets_comes_back_with_it(tracer: Driver, name: str) -> None:
    sets, reads = RESTORED[name]
    done = sets.split(" = ")[0].split("\n")[-1]
    imports, seen = reads.split("\n")
    shows = f"\ndef f(x):\n    {done}\n    {seen}\n    return x * (SEEN + 5.0)\n"
    text = f"{sets}\n{imports}{shows}"
    assert "6.0" in tracer.trace(text, file="a.py").jaxpr
    assert "5.0" in tracer.trace(reads + SHOWS_SEEN, file="b.py").jaxpr
    again = tracer.trace(text.replace("5.0", "7.0"), file="a.py")
    assert "8.0" in again.jaxpr


LEAVES = {
    "a thread": (
        (
            "import threading, time\n"
            "T = threading.Thread(target=lambda: [time.sleep(99) for _ in range(9)], daemon=True)  # jaxsight: always\n"
            "DONE = T.start()"
        ),
        "left a thread running",
    ),
    "a timer": (
        "import threading\nT = threading.Timer(1000, print)\nT.daemon = True\nDONE = T.start()",
        "left a thread running",
    ),
    "a class of another module as a pytree": (
        (
            "import fractions\nimport jax\n"
            "DONE = jax.tree_util.register_pytree_node("
            "fractions.Fraction, lambda v: ((v.numerator,), v.denominator), "
            "lambda d, c: fractions.Fraction(c[0], d))"
        ),
        "registered fractions.Fraction as a pytree",
    ),
}


@pytest.mark.parametrize("name", LEAVES)
def test_what_cannot_be_undone_keeps_the_process_from_other_files(fresh: Driver, name: str) -> None:
    leaves, reason = LEAVES[name]
    text = leaves + "  # jaxsight: always\ndef f(x):\n    DONE\n    T = 0\n    return x + 1.0\n"
    if "T." in leaves:
        text = text.replace("    T = 0\n", "    T\n")
    answer = fresh.trace(text, file="leaves.py")
    assert fresh.trace(text.replace("1.0", "2.0"), file="leaves.py").executed == 1
    spoiled = fresh.ask("def f(x):\n    return x\n", file="other.py")
    assert isinstance(spoiled, Spoiled)
    assert spoiled.reason == f"leaves.py {reason}"
    fresh.send(Show(1000, answer.id, JAXPR))
    assert isinstance(fresh.answer(), Listing)


STARTS = {
    "a program": "import subprocess\nP = subprocess.Popen(['sleep', '1000']).pid",
    "a fork": "import os, time\nP = os.fork() or time.sleep(1000)",
    "a pool": (
        "import multiprocessing\n"
        "P = (POOL := multiprocessing.get_context('spawn').Pool(1))._pool[0].pid"
    ),
}


@pytest.mark.parametrize("started", STARTS)
def test_no_process_outlives_the_statement_that_started_it(fresh: Driver, started: str) -> None:
    text = f"{STARTS[started]}  # jaxsight: always\ndef f(x):\n    return x + P\n"
    found = re.search(r"add a (\d+)\.0", fresh.trace(text).jaxpr)
    assert found is not None
    status = Path(f"/proc/{found[1]}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


ORDINARY = {
    "a pool that waits": """
        from concurrent.futures import ThreadPoolExecutor
        POOL = ThreadPoolExecutor(2)
        N = POOL.submit(float, 3).result()
        def f(x):
            return x * N
        """,
    "a thread that ends": """
        import threading
        SEEN = []
        T = threading.Thread(target=SEEN.append, args=(3.0,))
        STARTED = T.start()
        JOINED = T.join()
        def f(x):
            T, STARTED, JOINED
            return x * len(SEEN)
        """,
    "a process that ends": """
        import subprocess, sys
        N = float(subprocess.run([sys.executable, "-c", "print(3)"], capture_output=True).stdout)  # jaxsight: always
        def f(x):
            return x * N
        """,
    "pytrees of its own": """
        import collections, dataclasses
        import jax
        class P:
            pass
        jax.tree_util.register_pytree_node(P, lambda p: ((), None), lambda d, c: P())
        @jax.tree_util.register_dataclass
        @dataclasses.dataclass
        class Q:
            a: object
        R = dataclasses.make_dataclass("R", ["a"])
        jax.tree_util.register_dataclass(R, data_fields=["a"], meta_fields=[])
        def f(x):
            return jax.tree.map(lambda a: a + 1.0, (P(), Q(x), R(x)))[1].a
        """,
    "libraries": """
        import flax.nnx
        import flax.linen
        import equinox
        import optax
        class M(equinox.Module):
            a: object
        def f(x):
            return M(x).a
        """,
}


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_file_leaves_nothing(tracer: Driver, name: str) -> None:
    tracer.trace(ORDINARY[name], file="a.py")
    tracer.trace("def f(x):\n    return x\n", file="b.py")


def test_a_class_that_is_registered_again_after_an_edit_asks_for_a_fresh_process(
    fresh: Driver,
) -> None:
    text = """
    import jax
    class P:
        pass
    DONE = jax.tree_util.register_pytree_node(P, lambda p: ((), None), lambda d, c: P())
    def f(x):
        DONE
        return x
    """
    fresh.trace(text)
    edited = fresh.ask(text.replace("((), None)", "((), 1)"))
    assert isinstance(edited, Spoiled | Traced)
    if isinstance(edited, Spoiled):
        assert edited.reason == "main.py registers a class again"
