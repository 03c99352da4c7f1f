"""Nothing is unpickled but what a command of ours has pickled."""

from __future__ import annotations

from collections.abc import Iterator

from tools.lint.checkout import Checkout, Offender, inside, outside

PICKLES = frozenset({"pickle", "shelve", "dill", "cloudpickle", "joblib"})
PICKLED = {
    "jaxsight_repro/capturing/recorder.py": "writes a case into a folder that this command made, "
    "and reads it in the command that writes its repro",
    "jaxsight_repro/compat/pickling.py": "the same",
    "jaxsight_repro/emit/from_case.py": "reads the case that its command wrote",
    "jaxsight_repro/reducing/loading.py": "what a child of this process sent through a pipe",
    "jaxsight_repro/reducing/equations/recording.py": "the same, and what it wrote into a file",
}
"""Modules that pickle. No file of unknown origin is ever unpickled."""
MARSHALS = "bytecode.py"
"""Keeps bytecode of our own modules."""


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield imports of what pickles, and permissions that nothing needs."""
    needed = set[str]()
    for module in checkout.modules:
        name = inside(module.path)
        for line, imported in module.imports():
            top = imported.partition(".")[0]
            if top in PICKLES:
                needed.add(name)
            may = name in PICKLED if top in PICKLES else name.endswith(f"/{MARSHALS}")
            if top in {*PICKLES, "marshal"} and not may:
                message = f"imports `{top}`; no file of unknown origin is ever unpickled"
                yield Offender(module.path, line, message)
    for name in PICKLED.keys() - needed:
        message = "pickles nothing, and needs no permission in `tools/lint/pickling.py`"
        yield Offender(outside(name), 1, message)
