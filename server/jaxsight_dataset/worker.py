"""Answers requests about programs, one after another, in a process that may die of one of them."""

from __future__ import annotations

import gc
import json
import sys
import warnings
from dataclasses import asdict
from typing import TextIO

import jax

from jaxsight.tracer.isolation import refusals
from jaxsight.wire.frames import decode
from jaxsight.wire.messages.requests import Trace
from jaxsight_dataset.generating import generate
from jaxsight_dataset.mining import doctest_names, doctests, examples, harnesses, modules
from jaxsight_dataset.program import Record, RowProgram
from jaxsight_dataset.rows import check, comparing, describe
from jaxsight_dataset.rows.describe import Rejected
from jaxsight_dataset.rows.targets import TargetCompilers
from jaxsight_dataset.schema import LONGEST
from jaxsight_dataset.spec import Spec

_OBJECTS = 100_000
"""Objects after which garbage is collected: more than most programs make, so that collecting, which
took 3 % of the time, is left to the end of `_PROGRAMS`."""

_PROGRAMS = 64
"""Programs after which what JAX keeps of them is dropped, a choice: fewer trace helpers again."""
_NATIVE = frozenset({"ctypes.call_function", "ctypes.dlopen", "ctypes.dlsym", "sys.addaudithook"})


def serve(requests: TextIO, answers: TextIO, *, is_foreign: bool) -> None:
    """Answer each line with a line; programs have no effects if they are foreign."""
    warnings.simplefilter("ignore")
    gc.set_threshold(_OBJECTS)
    gc.collect()
    gc.freeze()  # JAX's modules stay, and need not be visited again
    for count, line in enumerate(requests, start=1):
        request = json.loads(line)
        if count == 1 and request["action"] == "mine":
            # Functions of packages choose their meshes by the devices that are there.
            jax.config.update("jax_num_cpu_devices", 1)  # type: ignore[no-untyped-call]
        if is_foreign and count == 1:
            _compilers.start(request.get("targets", ()))  # a process, which is refused afterwards
            _seal()
        answer = _answer(request)
        if "serial" in request:
            answer["serial"] = request["serial"]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if count % _PROGRAMS == 0:
            jax.clear_caches()  # type: ignore[no-untyped-call]
            gc.collect()


def _seal() -> None:
    """Refuse all effects, processes and native code, for the rest of the process.

    This cannot be switched off again. The system itself lets no file grow. It stops programs that
    do what they say, not those that exploit Python or JAX; what may be read can be read.
    """
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Bound now, as the program may replace names of these modules.
    refused, native, error = refusals.effect_of, _NATIVE, refusals.RefusedError

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        what = "run native code" if event in native else refused(event, arguments, ())
        if what:
            raise error(f"a program of a dataset may not {what}")

    sys.addaudithook(audit)


def _answer(request: Record) -> Record:
    try:
        return _ACTIONS[request["action"]](request)
    except Rejected as rejected:
        return {"rejected": rejected.cause, "message": str(rejected)}
    except Exception as error:  # noqa: BLE001 - a program may break any step
        message = f"{type(error).__name__}: {error}"
        return {"rejected": "internal error", "message": message[:LONGEST]}


def _program(request: Record) -> RowProgram:
    """Return the program of a request, or the one that its specification has at its number."""
    if "program" in request:
        return RowProgram.of_record(request["program"])
    return generate(Spec.of_record(request["spec"]), request["number"])


def _survey(request: Record) -> Record:
    program = _program(request)
    surveyed = asdict(describe.survey(program))
    return {**surveyed, "category": program.category, "template": program.template}


def _describe(request: Record) -> Record:
    program = _program(request)
    row = describe.describe(program, request["targets"], _compilers.labels)
    return {"row": row, "program": program.record()}


def _check(request: Record) -> Record:
    program = _program(request)
    return {"checks": check.check(program, *(request[name] for name in _CHECKED))}


def _compare(request: Record) -> Record:
    return {"proved": comparing.compare(_program(request), request["others"], request["most"])}


def _versions(_: Record) -> Record:
    return {"versions": describe.versions()}


def _mine(request: Record) -> Record:
    project = request.get("project", {})
    if project:
        examples.make_importable(project)
    match request:
        case {"package": package}:
            try:
                files = modules.files(package)
            except modules.NoPackage as error:
                return {"rejected": "no package", "message": str(error)}
            return {
                "modules": {
                    name: {"file": file, "doctests": doctest_names.doctests_of(file)}
                    for name, file in files.items()
                }
            }
        case {"harnesses": part}:
            mined = harnesses.mine(*part)
        case {"trace": record}:
            trace = decode(json.dumps(record).encode())
            assert isinstance(trace, Trace)
            mined = examples.mine(trace, project, request.get("labels", ()))
        case _:
            mined = doctests.mine(request["module"], request["doctest"], project)
    return mined.record()


_compilers = TargetCompilers()

_CHECKED = ("digest", "stablehlo", "hlo", "results")
_ACTIONS = {
    "mine": _mine,
    "survey": _survey,
    "describe": _describe,
    "check": _check,
    "compare": _compare,
    "versions": _versions,
}
