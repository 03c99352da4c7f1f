"""Which exceptions of a program are its own: a run without jaxsight ends with them, too."""

from __future__ import annotations

import itertools
import linecache
import re
import traceback
from collections.abc import Sequence
from types import FrameType, ModuleType

import jax
import numpy as np

from jaxsight.tracer import failures
from jaxsight.tracer.dry_runs.values.unknown import has_unknown, is_size
from jaxsight.tracer.execution import device_demand
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.isolation import code_origins
from jaxsight.wire.observations import ProgramError

_OF_MACHINES = (
    OSError,  # files and the network
    ImportError,
    MemoryError,
    RecursionError,  # its limit is another one here
    EOFError,  # there is no standard input
    NotImplementedError,  # JAX: no rule to lower a primitive for the platform
    jax.errors.JaxRuntimeError,  # XLA: what a device lacks
)
"""Errors that tell of this machine as often as of the program."""
_PLATFORM = re.compile(r"\b(?:backend|platform|GPU|TPU|CUDA|cuDNN|interpret mode)\b", re.IGNORECASE)
"""Messages about a device that the program may have where it is meant to run."""
_ASKS = re.compile(r"\bargv\b|\benviron\b|\bgetenv\b|\binput\(|^\s*(?:raise|assert)\b")
"""Lines that fail by what is outside of the program, or by its own decision about that."""

_FRAMES = 100
"""Frames of an error whose variables are looked at: deep recursion has thousands."""
_LISTS = re.compile(r"\b(?:i?glob|listdir|iterdir|scandir|os\.walk)\(")
"""Calls that list files: where the data is not there, they find none, and nothing says so."""


def met_unknown(error: BaseException) -> bool:
    """Return whether something unknown took part in an error: a variable of its functions is so."""
    frames = (f for f, _ in itertools.islice(traceback.walk_tb(error.__traceback__), _FRAMES))
    # At the top level of a file, any of its names may be unknown.
    functions = (frame for frame in frames if frame.f_locals is not frame.f_globals)
    values = [value for frame in functions for value in frame.f_locals.values()]
    arrays = (each for each in values if isinstance(each, jax.core.Tracer | jax.Array | np.ndarray))
    numbers = itertools.chain(values, *(array.shape for array in arrays))
    return any(map(has_unknown, values)) or any(map(is_size, numbers))


def program_error(error: BaseException, texts: Sequence[str]) -> ProgramError | None:
    """Return an exception as an error of the program; `None` if it tells of this machine.

    Args:
        error: what a statement raised.
        texts: the file's statements.
    """
    if not isinstance(error, Exception) or isinstance(error, _OF_MACHINES):
        return None
    if placeholders.absence_of(error) is not None or device_demand.needs(error, texts):
        return None
    if _PLATFORM.search(failures.message(error)):
        return None
    is_certain = _is_certain(error) and not any(map(_LISTS.search, texts))
    return ProgramError(failures.failure(error, "execute"), is_certain)


def _is_certain(error: Exception) -> bool:
    """Return whether the user's code, or a library for JAX, raised an error by what it was given.

    Other libraries may miss a login or a screen.
    """
    frames = [*traceback.walk_tb(error.__traceback__)]
    files = [frame.f_code.co_filename for frame, _ in frames]
    own = [at for at, file in enumerate(files) if code_origins.of_file(file) == code_origins.USER]
    if not own or _ASKS.search(linecache.getline(files[own[-1]], frames[own[-1]][1])):
        return False
    return own[-1] == len(frames) - 1 or _is_about_arrays(frames[-1][0])


def _is_about_arrays(frame: FrameType) -> bool:
    """Return whether a frame is of JAX, of NumPy or of a library that imports JAX."""
    modules = (value for value in frame.f_globals.values() if isinstance(value, ModuleType))
    names = {frame.f_globals.get("__name__", ""), *(module.__name__ for module in modules)}
    return any(str(name).partition(".")[0] in ("jax", "jaxlib", "numpy") for name in names)
