"""Run the code cells of a notebook as one program: `python run_notebook.py FILE [ARG]…`.

Magics and commands of the shell are left out, and a cell that fails does not keep later ones from
running. The notebook's folder is the working folder, as in Jupyter.
"""

from __future__ import annotations

import builtins
import linecache
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from jaxsight.files import reading
from jaxsight.text.magics import notebook_cells


def main(arguments: list[str]) -> int:
    """Run the cells; return whether one of them failed."""
    path = Path(arguments[0]).absolute()
    cells = notebook_cells(reading.text(path))
    program = ModuleType("__main__")
    sys.modules["__main__"] = program
    sys.argv, sys.path[0] = arguments, str(path.parent)
    os.chdir(path.parent)
    vars(builtins).update(display=print, get_ipython=lambda: None)
    lines = "".join(f"{cell}\n" for cell in cells).splitlines(keepends=True)
    linecache.cache[str(path)] = (sum(map(len, lines)), None, lines, str(path))
    failed, first = False, 0
    for cell in cells:
        try:
            code = compile("\n" * first + cell, str(path), "exec", dont_inherit=True)
            exec(code, vars(program))  # noqa: S102 - the cells
        except Exception:  # noqa: BLE001 - the user's code
            traceback.print_exc()
            failed = True
        first += cell.count("\n") + 1
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
