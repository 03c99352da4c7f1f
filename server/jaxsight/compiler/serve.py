"""The compiler's loop: it compiles programs in order until the server closes the pipe.

Everything runs in the main thread: XLA cannot be interrupted, so to cancel a compile, the server
kills the process.
"""

from __future__ import annotations

import base64
import binascii
import logging
import math
import os
import platform
import select
import sys
import threading
import time

from jaxsight.compiler import stand_ins
from jaxsight.compiler.hlo import read
from jaxsight.compiler.hlo.shapes import sizes
from jaxsight.targets.target import parse
from jaxsight.wire import frames as wire
from jaxsight.wire.donation import aliases
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.messages.compiling import (
    COMPILER_VERSION,
    Compile,
    Compiled,
    Memory,
    NotCompiled,
    Ready,
)

log = logging.getLogger(__name__)

READ_AT_ONCE = 1 << 20
BROKEN_PROTOCOL = 3


def serve(incoming: int, outgoing: int) -> None:
    """Send the handshake, then answer requests; never return."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    problem, jaxlib, stablehlo = "", "", ""
    try:
        from jaxsight.compiler.compat import xla
    except BaseException as error:  # noqa: BLE001 - an unsupported jaxlib may raise anything
        problem = f"{sys.executable} cannot compile: {type(error).__name__}: {error}"
    else:
        jaxlib, stablehlo = xla.JAXLIB, xla.newest_stablehlo()
    wire.write(
        outgoing,
        Ready(
            COMPILER_VERSION,
            platform.python_version(),
            sys.executable,
            jaxlib,
            stablehlo,
            problem,
            os.getpid(),
        ),
    )
    _end_with(incoming)
    frames = wire.FrameReader()
    try:
        while data := os.read(incoming, READ_AT_ONCE):
            for message in frames.feed(data):
                if isinstance(message, Compile):
                    wire.write(
                        outgoing,
                        answer(message)
                        if not problem
                        else NotCompiled(message.id, "target", problem),
                    )
                else:
                    log.error("a compiler was sent %s", type(message).__name__)
    except (wire.WireError, OSError):
        log.exception("cannot read the server's messages")
        _end(BROKEN_PROTOCOL)
    _end(0)


def _end_with(incoming: int) -> None:
    """Exit when the server closes its end of the pipe, even during a compile.

    Over ssh, nobody else ends this process.
    """
    if not hasattr(select, "poll"):
        return
    watch = select.poll()
    watch.register(incoming, getattr(select, "POLLRDHUP", 0))  # a hangup is always reported

    def wait() -> None:
        watch.poll()
        _end(0)

    threading.Thread(target=wait, daemon=True, name="end of the pipe").start()


def _end(status: int) -> None:
    """Exit at once, regardless of other threads, and remove temporary files."""
    stand_ins.remove()
    os._exit(status)


def answer(request: Compile) -> Compiled | NotCompiled:
    """Compile a program in this process."""
    from jaxsight.compiler import attempts, devices
    from jaxsight.compiler.compat import xla

    try:
        program = base64.b64decode(request.program, validate=True)
    except binascii.Error as error:
        return NotCompiled(request.id, "program", f"the program is not valid base64: {error}")
    try:
        device = devices.device(request.target)
        begin = time.perf_counter()
        options, target = dict(request.options), parse(request.target)
        compiled, differences = attempts.compile(program, device, options, target)
        seconds = time.perf_counter() - begin
    except devices.NotHere as error:
        return NotCompiled(request.id, "target", str(error))
    except xla.Refused as error:
        return NotCompiled(request.id, error.kind, str(error))
    graph = read(
        compiled.hlo,
        constants=request.constants,
        barriers=request.barriers,
        platform=parse(request.target).platform,
        trips=dict(request.trips),
    )
    return Compiled(
        id=request.id,
        target=request.target,
        how="device" if device.device.here else "ahead of time",
        graph=graph,
        memory=Memory(
            temporaries=compiled.temporaries,
            arguments=compiled.arguments,
            outputs=compiled.outputs,
            aliased=compiled.aliased,
            code=compiled.code,
            peak=compiled.peak,
        ),
        hlo=compiled.hlo,
        seconds=seconds,
        flops=compiled.flops,
        bytes_accessed=compiled.bytes_accessed,
        jaxlib=xla.JAXLIB,
        platform=device.device.platform_version,
        aliases=aliases(compiled.hlo),
        notes=(*_notes(device.notes, graph), *differences),
    )


_LARGE_SORT = 80_000
_NARROW_SORT = 512
"""Above `_LARGE_SORT` bytes, or `_NARROW_SORT` elements of 16 bits or fewer, XLA uses CUB for sorts
of one key and at most one value (`IsCubSortFasterOnH100`, `IsCubCompatibleSort` in
`xla/service/gpu/transforms/sort_rewriter.cc`).
"""


def _notes(notes: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    """Return those notes of a device that apply to these kernels."""
    from jaxsight.compiler import devices

    about = {
        devices.GUESSED: any(
            kernel.ends_because in ("matmul", "convolution") for kernel in graph.kernels
        ),
        devices.SORTS: any(map(_may_be_cubs, graph.kernels)),
    }
    return tuple(note for note in notes if about[note])


def _may_be_cubs(kernel: Kernel) -> bool:
    """Return whether a kernel is a sort for which XLA may use CUB on some device."""
    if kernel.ends_because != "sort" or "sort" not in kernel.what or len(kernel.inputs) > 2:
        return False
    arrays = [(value.bytes, math.prod(sizes(value))) for value in kernel.inputs]
    return any(
        size > _LARGE_SORT or (count > _NARROW_SORT and size <= 2 * count) for size, count in arrays
    )
