"""Forms of effects: what code may change outside, and the places where looking at it runs it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

EFFECTS = {
    "delete": "os.remove(KEPT)",
    "delete by descriptor": "os.unlink('kept.txt', dir_fd=os.open(HERE, os.O_RDONLY))",
    "rename": "os.rename(KEPT, NEW)",
    "overwrite": "pathlib.Path(KEPT).write_text('x')",
    "append": "open(KEPT, 'a').write('x')",
    "truncate": "os.truncate(KEPT, 0)",
    "copy": "shutil.copy(__file__, KEPT)",
    "make folders": "os.makedirs(os.path.join(NEW, 'inner'))",
    "delete a folder": "shutil.rmtree(FOLDER)",
    "empty a folder": "shutil.rmtree(FOLDER, ignore_errors=True)",
    "temporary folder": "tempfile.mkdtemp(dir=HERE)",
    "link": "os.link(KEPT, NEW)",
    "symbolic link": "os.symlink(KEPT, NEW)",
    "pipe": "os.mkfifo(NEW)",
    "node": "os.mknod(NEW)",
    "mode": "os.chmod(KEPT, 0o600)",
    "time": "os.utime(KEPT)",
    "attribute": "os.setxattr(KEPT, 'user.new', b'x')",
    "array": "np.save(NEW, np.ones(3))",
    "pickle": "pickle.dump(1, open(NEW, 'wb'))",
    "database": "sqlite3.connect(NEW).execute('create table t (x)')",
    "log": "logging.FileHandler(NEW)",
    "run": "subprocess.run(['touch', NEW])",
    "spawn": "os.waitpid(os.posix_spawn('/bin/touch', ['touch', NEW], os.environ), 0)",
    "execute": "os.waitpid(spawnv_passfds(b'/bin/touch', [b'touch', NEW.encode()], []), 0)",
    "new process": "ended(get_context('spawn').Process(target=os.mkdir, args=[NEW]))",
    "forked process": "ended(get_context('fork').Process(target=os.mkdir, args=[NEW]))",
    "fork": "os.fork() or (os.mkdir(NEW), os._exit(0))",
    "daemon": "subprocess.Popen(['setsid', 'sh', '-c', 'touch $0; sleep 600', NEW])",
    "shell": "os.system(f'touch {NEW}')",
    "connection": "socket.create_connection(('127.0.0.1', TCP))",
    "request": "urllib.request.urlopen(f'http://127.0.0.1:{TCP}', timeout=0.1)",
    "datagram": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
    "unix socket": "socket.socket(socket.AF_UNIX).connect(UNIX)",
    "bound socket": "socket.socket(socket.AF_UNIX).bind(NEW)",
    "signal": "os.kill(PID, signal.SIGSTOP)",
    "signal to a group": "os.killpg(PID, signal.SIGSTOP)",
    "priority": "os.setpriority(os.PRIO_PROCESS, PID, 19)",
    "processors": "os.sched_setaffinity(PID, {max(os.sched_getaffinity(0))})",
    "history": "readline.write_history_file(NEW)",
    "profile": "jax.profiler.start_trace(NEW); jax.profiler.stop_trace()",
    "finalizer": "weakref.finalize(Dying(int), os.mkdir, NEW)",
    "late finalizer": "left.append(Dying(int)); weakref.finalize(left[-1], os.mkdir, NEW)",
    "destructor": "Dying(os.mkdir, NEW)",
    "late destructor": "left.append(Dying(os.mkdir, NEW))",
    "exit": "atexit.register(os.mkdir, NEW)",
    "thread": "threading.Thread(target=os.mkdir, args=[NEW]).start()",
    "pool": "ThreadPoolExecutor().submit(os.mkdir, NEW).result()",
    "late thread": "threading.Timer(0.1, os.mkdir, [NEW]).start()",
    "call of C": "ctypes.CDLL(None).unlink(KEPT.encode())",
}
"""Statements by what they do. Each changes something of an `Outside`."""

_HEAD = """
import atexit, contextlib, ctypes, logging, os, pathlib, pickle, readline, shutil, signal, socket
import sqlite3, subprocess, tempfile, threading, urllib.request, weakref
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.util import spawnv_passfds
import jax
import jax.numpy as jnp
import numpy as np

left = []


class Dying:
    def __init__(self, act, *arguments):
        self.act, self.arguments = act, arguments

    def __del__(self):
        self.act(*self.arguments)


def ended(process):
    process.start()
    process.join()


def runs(pipe):
    os.read(os.open(pipe, os.O_RDONLY), 1)

"""

_STEP = """
HERE, UNIX, PID, TCP, UDP = {HERE!r}, {UNIX!r}, {PID}, {TCP}, {UDP}
KEPT, FOLDER, NEW = HERE + "/kept.txt", HERE + "/kept", HERE + "/new"
with contextlib.suppress(Exception):
    runs({PIPE!r}); {effect}
"""

_F = '''

def f(x):
    """Scale it.

    Example inputs:
        x: f32[4]
    """
    return x * SCALE
'''

_TOP = f"{_HEAD}\nEFFECTS\n\nSCALE = 2.0\n"
_DECORATOR = f"""{_HEAD}
SCALE = 2.0


def known(function):
    EFFECTS
    return function


@known{_F}"""
_CONSTRUCTOR = f"""{_HEAD}
class Model:
    def __init__(self):
        EFFECTS
        self.scale = 2.0


SCALE = Model().scale
{_F}"""
_MAIN = f"""{_HEAD}
def f(x):
    return x * 2


def main():
    EFFECTS
    f(jnp.ones(4))


if __name__ == "__main__":
    main()
"""
_SCRIPT = f"{_HEAD}\nfrom NAME import f\nEFFECTS\nf(jnp.ones(4))\n"

PLACES: Mapping[str, Mapping[str, str]] = {
    "top level": {"": _TOP + _F},
    "helper": {"": f"from NAME_helper import SCALE\n{_F}", "_helper": _TOP},
    "decorator": {"": _DECORATOR},
    "constructor": {"": _CONSTRUCTOR},
    "main": {"": _MAIN},
    "script": {"": "def f(x):\n    return x * 2\n", "_script": _SCRIPT},
}
"""Modules by endings of their names: `NAME` stands for the first one, which has the function `f`.

Who runs the last one has the effects.
"""


@dataclass(frozen=True, slots=True)
class Form:
    """An effect at a place."""

    effect: str
    place: str

    def __str__(self) -> str:
        return f"{self.effect}, {self.place}"

    @property
    def module(self) -> str:
        """The name of the module that has the function `f`."""
        return self.place.replace(" ", "_")


def modules(forms: Mapping[Form, Mapping[str, object]]) -> dict[str, str]:
    """Return texts by file names of the modules of one place, the one with `f` first.

    Args:
        forms: the effects, with what an `Outside` calls its things.
    """
    steps = "".join(
        _STEP.format_map({**outside, "effect": EFFECTS[form.effect]})
        for form, outside in forms.items()
    )
    first = next(iter(forms))
    return {
        f"{first.module}{ending}.py": re.sub(
            "( *)EFFECTS\n", lambda found: textwrap.indent(steps, found[1]), text
        ).replace("NAME", first.module)
        for ending, text in PLACES[first.place].items()
    }


FORMS = [
    # Whatever is taken at equal distances has all places.
    Form(effect, [*PLACES][(first + number) % len(PLACES)])
    for first in range(len(PLACES))
    for number, effect in enumerate(EFFECTS)
]
