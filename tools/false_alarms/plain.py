"""Run programs one after another in this process, and print the paths of those that end well."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import signal
import sys
from pathlib import Path

_SECONDS = 20  # of one program


def main() -> None:
    """Run the programs whose paths are lines of the standard input."""
    for line in sys.stdin.read().splitlines():
        path = Path(line)
        os.chdir(path.parent)
        sys.path.insert(0, str(path.parent))
        before = set(sys.modules)
        signal.alarm(_SECONDS)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(str(path), run_name="__main__")
            print(path, flush=True)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any program
            print(f"{path}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
        finally:
            signal.alarm(0)
            sys.path.remove(str(path.parent))
            for name in set(sys.modules) - before:
                if str(path.parent) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]


def _late(*_: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _late)
    main()
