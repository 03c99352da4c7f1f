"""Choose the module of a dump folder that was being compiled when its run ended.

`XLA_FLAGS=--xla_dump_to=DIR` writes `module_0012.jit_step.before_optimizations.txt` before a module
is compiled, and `module_0012.jit_step.cpu_after_optimizations.txt` afterwards
(`xla/service/dump.cc`; the word before `after` names the target). On CPUs, each kernel of it has a
file `….KERNEL.ir-with-opt.ll`, and `….obj-file.KERNEL.o` once its machine code is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.text.units import count

_FILE = re.compile(
    r"(?P<module>(?:.*\.)?module_\d+\.[^/]*?)\.(?P<stage>before_optimizations|"
    r"(?:[\w.]+_)?after_optimizations|snapshot\.-?\d+)\.?(?P<kind>txt|hlo\.pb|pb)$"
)

_KERNEL = re.compile(
    r"(?P<module>(?:.*\.)?module_\d+\.[^/]*?)\.(?P<object>obj-file\.)?"
    r"(?P<kernel>[\w.-]*?(?:_kernel_module|__compute_module)[\w.-]*?)\.(?:ir-with-opt\.ll|o)"
)

_MOST_LISTED = 12
"""Modules that a message names, chosen to stay readable; `--module` takes any."""


class NoModule(LookupError):
    """No file was chosen; the message says why, then what to do after `; `."""


@dataclass(frozen=True, slots=True)
class ChosenDump:
    """A file to read.

    Attributes:
        why: why this one of a folder, as a sentence; empty for a file.
    """

    path: Path
    why: str = ""


@dataclass(slots=True)
class _Module:
    name: str
    before: Path | None = None
    after: Path | None = None
    written: float = 0.0
    kernels: set[str] = field(default_factory=set)
    compiled: set[str] = field(default_factory=set)

    def take(self, path: Path, stage: str) -> None:
        """Note a file of the module; protos have all numbers of constants, texts may not."""
        is_before = stage == "before_optimizations"
        current = self.before if is_before else self.after
        if current is None or current.suffix == ".txt":
            setattr(self, "before" if is_before else "after", path)
        self.written = max(self.written, path.stat().st_mtime)

    @property
    def is_unfinished(self) -> bool:
        """Whether it was not optimized, or not all of its kernels have machine code."""
        has_code = self.kernels <= self.compiled
        return self.before is not None and (self.after is None or not has_code)


def choose(dump: Path, module: str = "") -> ChosenDump:
    """Return the file of a dump to read.

    Args:
        dump: a file, or the folder of a run.
        module: the name of a module of a folder, or a part of it; empty for the one that was being
            compiled when the run ended.

    Raises:
        NoModule: there is none, or several.
    """
    if not dump.is_dir():
        if not dump.is_file():
            raise NoModule(f"no such file: {dump}")
        return ChosenDump(dump)
    modules = _modules(dump)
    if not modules:
        raise NoModule(
            f"no dumped module in {dump}; run the program with XLA_FLAGS=--xla_dump_to={dump}"
        )
    if module:
        return _named(modules, module)
    unfinished = [each for each in modules if each.is_unfinished]
    if len(unfinished) == 1:
        (only,) = unfinished
        why = "it was being compiled when the run ended"
        return ChosenDump(_file(only), f"{only.name}: {why}, of {count(len(modules), 'module')}")
    if unfinished:
        raise NoModule(
            f"{len(unfinished)} modules were being compiled when the run ended: "
            f"{_listed(unfinished)}; choose one with --module"
        )
    last, *others = modules
    if others and others[0].written == last.written:
        raise NoModule(
            f"all {count(len(modules), 'module')} of the run are compiled: {_listed(modules)}; "
            "choose one with --module"
        )
    why = "all modules are compiled, and it is the last one, which may have been running"
    return ChosenDump(_file(last), f"{last.name}: {why}")


def _named(modules: Iterable[_Module], name: str) -> ChosenDump:
    known = list(modules)
    exact = [each for each in known if name in (each.name, each.name.partition(".")[2])]
    found = exact or [each for each in known if name in each.name]
    if len(found) != 1:
        problem = "no module" if not found else "several modules"
        raise NoModule(f"{problem} named {name}; the run has {_listed(found or known)}")
    return ChosenDump(_file(found[0]), f"{found[0].name}: named")


def _file(module: _Module) -> Path:
    """Return the file of a module: before optimizations, if it is there."""
    path = module.before or module.after
    assert path is not None
    return path


def _modules(folder: Path) -> list[_Module]:
    """Return the modules of a folder, those that were written last first."""
    found: dict[str, _Module] = {}
    for path in sorted(folder.iterdir()):
        if match := _FILE.fullmatch(path.name):
            if match["stage"].startswith("snapshot"):
                continue
            module = found.setdefault(match["module"], _Module(match["module"]))
            module.take(path, match["stage"])
    for path in folder.iterdir():
        if (match := _KERNEL.fullmatch(path.name)) and match["module"] in found:
            module = found[match["module"]]
            (module.compiled if match["object"] else module.kernels).add(match["kernel"])
    return sorted(found.values(), key=lambda module: (-module.written, module.name))


def _listed(modules: Iterable[_Module]) -> str:
    names = [module.name for module in modules]
    rest = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")
