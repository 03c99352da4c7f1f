"""A compiler on another machine, over the user's own ssh: the same process, the same messages.

The other machine needs Python 3.11 or newer and JAX, with the plugin for its device; nothing is
installed or written there.
The compiler's modules are sent first over the pipe and imported from memory, so both ends always
use the same version.
After them, only StableHLO with its constants is sent, never source.
"""

from __future__ import annotations

import base64
import json
import shlex
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jaxsight.workers.own_python import program

PYTHON = "python3"
CANNOT_CONNECT = 255
"""The exit status of ssh itself, ssh(1)."""

OPTIONS = (
    "-T",
    "-o", "BatchMode=yes",  # nobody can type a password
    "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15",  # seconds; TCP: 127, tcp(7)
)  # fmt: skip

_PACKAGES = Path(__file__).resolve().parents[3]
_SENT = (
    "jaxsight/__init__.py", "jaxsight/timeline.py", "jaxsight/compiler/**/*.py",
    "jaxsight/hlo/*.py", "jaxsight/targets/**/*.py", "jaxsight/wire/**/*.py",
    "jaxsight/files/__init__.py",
    "jaxsight_source/__init__.py", "jaxsight_source/options.py",
    "jaxsight_source/files/*.py",
    # To run programs:
    "jaxsight/measuring/*.py", "jaxsight/profiles/*.py", "jaxsight/files/locks.py",
    "jaxsight/files/reading.py",
    "jaxsight/text/*.py", "jaxsight_source/compat/*.py", "jaxsight_source/jaxprs/__init__.py",
    "jaxsight_source/jaxprs/arguments.py",
)  # fmt: skip

# Runs there before any module of ours: it reads the modules from the pipe, and not a byte more.
_START = """
import importlib.abc, importlib.util, json, os, sys, zlib
if sys.version_info < (3, 11):
    version = sys.version.split()[0]
    sys.exit(sys.executable + " is Python " + version + "; 3.11 is the oldest that compiles")
def take(count):
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more:
            sys.exit("connection closed")
        data += more
    return data
modules = json.loads(zlib.decompress(take(int.from_bytes(take(4), "big"))))
class Sent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name in modules:
            return importlib.util.spec_from_loader(name, self, is_package=modules[name][0])
    def exec_module(self, module):
        text = modules[module.__name__][1]
        exec(compile(text, "<jaxsight " + module.__name__ + ">", "exec"), module.__dict__)
sys.meta_path.insert(0, Sent())
os.environ.update(VARIABLES)
from jaxsight.wire.descriptors import take_descriptors
from jaxsight.compiler.serve import serve
serve(*take_descriptors())
"""


def command(host: str, variables: Mapping[str, str], python: str = PYTHON) -> list[str]:
    """Return the command that runs the compiler on `host`; it reads `modules()` first.

    Args:
        host: a host name for ssh.
        variables: environment variables, in addition to those of a login there.
        python: the Python executable there; a leading `~` is the home folder there.
    """
    start = _START.replace("VARIABLES", repr(dict(variables)))
    # Not from the folder of the login, which `-c` puts first on the path.
    path = "import sys;sys.path=[*filter(None,sys.path)]"
    sent = base64.b64encode(start.encode())
    code = f"{path};import base64;exec(base64.b64decode({sent!r}))"
    remote_python = (
        f"~/{shlex.quote(python[2:])}" if python.startswith("~/") else shlex.quote(python)
    )
    return [
        program("ssh") or "ssh",
        *OPTIONS,
        # So that no host is taken for an option.
        "--",
        host,
        f"{remote_python} -X utf8 -c {shlex.quote(code)}",
    ]


@cache
def modules() -> bytes:
    """Return all modules of a compiler, preceded by their length."""
    sources = {}
    for path in (path for pattern in _SENT for path in sorted(_PACKAGES.glob(pattern))):
        is_package = path.name == "__init__.py"
        parts = path.relative_to(_PACKAGES).with_suffix("").parts
        name = ".".join(parts[:-1] if is_package else parts)
        sources[name] = is_package, path.read_text("utf-8")
    data = zlib.compress(json.dumps(sources).encode())
    return len(data).to_bytes(4, "big") + data
