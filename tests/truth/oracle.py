"""The truth: a module imported whole in a fresh process, and its functions traced by JAX.

`python -m tests.truth.oracle` is a server: a line of JSON on standard input asks for the truth of
one folder, a line on standard output answers. It imports JAX once and forks for each request, so
that a request takes tens of milliseconds and yet begins with a process that has run nothing.
Modules that may affect the import of JAX itself get a process that has not imported it.

Only the printing of jaxprs and the notation of example inputs are jaxsight's own: how the module is
run is Python's `import`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 60
"""Seconds that one module may take."""
NO_TRUTH = ("OracleError", "Timeout", "Ended")
"""What stands for the error of a module about which the oracle knows nothing."""

_BEFORE_JAX = re.compile(r"environ|getenv|putenv|meta_path|path_hooks|JAX_")
"""Modules that mention one of these get a process that has not imported JAX."""

SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""So that the process that forks has one thread."""


@dataclass(frozen=True, slots=True)
class Request:
    """A module below `folder`, and its functions by qualified name with their arguments as (name,
    specification) pairs.
    """

    folder: str
    module: str
    functions: tuple[tuple[str, tuple[tuple[str, dict[str, Any]], ...], dict[str, int]], ...]
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Truth:
    """What JAX makes of one function.

    `error` is the type of what was raised, `stage` the `import` or the `trace`.

    `program` is the digest of the lowered program where it captures arrays: their values are not in
    the jaxpr's text.
    """

    jaxpr: str = ""
    program: str = ""
    error: str = ""
    stage: str = ""
    message: str = ""


class Oracle:
    """A process that answers requests. Closed by `close`."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "tests.truth.oracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, **SINGLE_THREADED, "PYTHONPATH": python_path()},
            text=True,
        )

    def truths(self, request: Request) -> dict[str, Truth]:
        """The truth of each function asked for."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(request)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the oracle ended")
        return {name: Truth(**truth) for name, truth in json.loads(line).items()}

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def truths(requests: Sequence[Request], python: str, jobs: int) -> list[dict[str, Truth]]:
    """The truths of many modules, `jobs` at a time."""
    oracles = [Oracle(python) for _ in range(max(1, min(jobs, len(requests))))]
    free = list(oracles)

    def one(request: Request) -> dict[str, Truth]:
        oracle = free.pop()
        try:
            return oracle.truths(request)
        finally:
            free.append(oracle)

    try:
        with ThreadPoolExecutor(len(oracles)) as pool:
            return list(pool.map(one, requests))
    finally:
        for oracle in oracles:
            oracle.close()


def needs_fresh(texts: Sequence[str]) -> bool:
    """Whether a module may affect how JAX is imported."""
    return any(_BEFORE_JAX.search(text) for text in texts)


def python_path() -> str:
    """Where the server that is measured and the tests are imported from."""
    import jaxsight

    return os.pathsep.join([str(Path(jaxsight.__file__).parents[1]), str(ROOT)])


# What follows runs in the oracle's process.


def serve() -> None:
    """Answer requests until standard input ends."""
    import jax
    import jax.numpy  # noqa: F401 - imported before the fork, once
    import numpy  # noqa: F401

    _printing()
    tasks = Path("/proc/self/task")
    if tasks.is_dir() and len(list(tasks.iterdir())) > 1:
        print("warning: the oracle forks a process with several threads", file=sys.stderr)
    for line in sys.stdin:
        request = json.loads(line)
        answer = _spawned(line) if request["fresh"] else _forked(request)
        print(json.dumps(answer), flush=True)


def _forked(request: dict[str, Any]) -> dict[str, Any]:
    incoming, outgoing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(incoming)
        os.setsid()
        _quiet()
        # NumPy's global state is drawn at its import, which here was before the fork.
        sys.modules["numpy"].random.seed()
        try:
            answer = json.dumps(_answer(request))
        except BaseException:  # noqa: BLE001 - whatever user code did
            answer = json.dumps(_all(request, "OracleError", "oracle", traceback.format_exc()))
        with os.fdopen(outgoing, "w") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(outgoing)
    text = _read(incoming)
    if text is None:
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not text:
        return _all(request, "Ended" if text == "" else "Timeout", "import", "")
    return dict(json.loads(text))


def _read(incoming: int) -> str | None:
    """All that comes from a pipe, or nothing after `PATIENCE`."""
    parts: list[bytes] = []
    try:
        while True:
            ready, _, _ = select.select([incoming], [], [], PATIENCE)
            if not ready:
                return None
            part = os.read(incoming, 1 << 16)
            if not part:
                return b"".join(parts).decode()
            parts.append(part)
    finally:
        os.close(incoming)


def _spawned(line: str) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.truth.oracle", "one"],
            input=line,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        return _all(json.loads(line), type(error).__name__, "import", "")


def _one() -> None:
    """Answer one request in a process that has not imported JAX."""
    request = json.loads(sys.stdin.readline())
    kept = os.dup(1)
    _quiet()
    answer = json.dumps(_answer(request))
    with os.fdopen(kept, "w") as pipe:
        pipe.write("\n" + answer + "\n")
    os._exit(0)


def _quiet() -> None:
    """Nothing to read, and nobody to read what user code prints."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def _all(request: dict[str, Any], error: str, stage: str, message: str) -> dict[str, Any]:
    truth = asdict(Truth(error=error, stage=stage, message=message))
    return {name: truth for name, _, _ in request["functions"]}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    folder = request["folder"]
    os.chdir(folder)
    sys.dont_write_bytecode = True
    # As `python -c "import main"` has it there.
    sys.path[:] = ["", *(each for each in sys.path if each not in ("", str(ROOT)))]
    sys.argv = ["-c"]
    try:
        module = importlib.import_module(request["module"])
    except BaseException as error:  # noqa: BLE001 - whatever user code raises
        return _all(request, type(error).__name__, "import", str(error)[:300])
    answers: dict[str, Any] = {}
    for name, arguments, sizes in request["functions"]:
        try:
            truth = _traced(module, name, arguments, sizes)
        except BaseException as error:  # noqa: BLE001
            truth = Truth(error=type(error).__name__, stage="trace", message=str(error)[:300])
        answers[name] = asdict(truth)
    return answers


def _traced(module: Any, name: str, arguments: Any, sizes: dict[str, int]) -> Truth:
    import inspect

    holder: Any = None
    function: Any = module
    static: Any = None
    for part in name.split("."):
        holder, static = function, inspect.getattr_static(function, part, None)
        function = getattr(holder, part)
    if isinstance(static, property):
        function = static.fget
    values = {each: value(spec, vars(module), sizes) for each, spec in arguments}
    staged = traced(function, values)
    program = _lowered(staged) if staged.jaxpr.consts else ""
    return Truth(jaxpr=_printing()(staged.jaxpr, str(Path.cwd())), program=program)


def traced(function: Any, values: dict[str, Any]) -> Any:
    """JAX's `Traced` of a function called with values by parameter."""
    _hide()
    args, kwargs = _bound(function, values)
    if hasattr(function, "trace") and hasattr(function, "lower"):
        return function.trace(*args, **kwargs)
    if type(function).__module__.startswith("equinox.") and hasattr(function, "lower"):
        function = function.__wrapped__  # `filter_jit`: the body, as of `jax.jit`
    return _staged(function, args, kwargs)


@functools.cache
def _hide() -> None:
    """Have JAX take the frames of this file for none of the user's: `jax.debug.breakpoint` looks
    into them.
    """
    from jax._src import traceback_util

    traceback_util.register_exclusion(__file__)


def _staged(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """JAX's `Traced` of a call whose arguments are traced where they are arrays."""
    import jax

    leaves, structure = jax.tree_util.tree_flatten((args, kwargs))

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        arrays = iter(jax.tree_util.tree_leaves((args, kwargs)))
        whole = [next(arrays) if _is_array(leaf) else leaf for leaf in leaves]
        args, kwargs = structure.unflatten(whole)
        results = jax.tree_util.tree_leaves(function(*args, **kwargs))
        return [leaf for leaf in results if _is_result(leaf)]

    given = [leaf if _is_array(leaf) else None for leaf in leaves]
    args, kwargs = structure.unflatten(given)
    return jax.jit(call).trace(*args, **kwargs)


def _lowered(traced: Any) -> str:
    """Names the lowered program, with the values of its constants."""
    from jaxsight.tracer.compat import lowering

    return hashlib.sha256(lowering.artifact(traced, "cpu").bytes).hexdigest()


def _printing() -> Any:
    """The printer of jaxprs that the measured server shows them with."""
    from jaxsight.tracer.programs.jaxpr_text import whole
    from jaxsight.wire.messages.requests import Show

    def printed(jaxpr: Any, folder: str) -> str:
        return whole(Show(0, 0), jaxpr).text.replace(folder + os.sep, "")

    return printed


def _is_array(leaf: Any) -> bool:
    import jax
    import numpy as np

    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct, np.ndarray, np.generic))


def _is_result(leaf: Any) -> bool:
    import jax

    return _is_array(leaf) or isinstance(leaf, (jax.core.Tracer, int, float, complex))


def value(spec: dict[str, Any], namespace: dict[str, Any], sizes: dict[str, int]) -> Any:
    """An argument as its example input says: an abstract array, or what an expression gives."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    match spec:
        case {"dtype": dtype, "shape": shape}:
            kind = np.dtype(getattr(jnp, dtype, dtype))
            return jax.ShapeDtypeStruct(tuple(shape), jax.dtypes.canonicalize_dtype(kind))
        case {"impl": impl, "shape": shape}:
            names = {"fry": "threefry2x32", "rbg": "rbg", "unsafe_rbg": "unsafe_rbg"}
            key = jax.eval_shape(lambda: jax.random.key(0, impl=names.get(impl, impl)))
            return jax.ShapeDtypeStruct(tuple(shape), key.dtype)
        case {"source": source}:
            given = eval(source, {**namespace, **sizes})
            return jax.tree_util.tree_map(_abstract, given)
        case {"kind": "dict", "children": children, "keys": keys}:
            values = [value(child, namespace, sizes) for child in children]
            return dict(zip(map(eval, keys), values, strict=True))
        case {"kind": kind, "children": children}:
            values = [value(child, namespace, sizes) for child in children]
            return values if kind == "list" else tuple(values)
    raise TypeError(spec)


def _abstract(leaf: Any) -> Any:
    import jax

    if not _is_array(leaf):
        return leaf
    typed = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(typed.shape, typed.dtype, weak_type=typed.weak_type)


def _bound(function: Any, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Values by parameter as a call, by position as far as there is no gap."""
    import inspect

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    left = dict(values)
    gap = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += left.pop(parameter.name, ())
            args += [left.pop(key) for key in sorted(left) if key.startswith(f"{parameter.name}[")]
        elif parameter.name not in left:
            gap = True
        elif gap or parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = left.pop(parameter.name)
        else:
            args.append(left.pop(parameter.name))
    return args, {**kwargs, **left}


if __name__ == "__main__":
    if sys.argv[1:] == ["one"]:
        _one()
    else:
        serve()
