"""When tracers and spares start, without processes."""

from __future__ import annotations

import asyncio
from typing import cast

from jaxsight.wire.messages.replies import VERSION, Hello
from jaxsight.workers.pool import Pool
from jaxsight.workers.process import TracerProcess
from jaxsight.workers.results import Death, Reason


class IdleProcess:
    """A tracer that is ready once its handshake is set, and ends when it is closed."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Hello | None] = loop.create_future()
        self.death: asyncio.Future[Death] = loop.create_future()
        self.pid = 1

    @property
    def alive(self) -> bool:
        return not self.death.done()

    def greet(self) -> None:
        self.ready.set_result(
            Hello(VERSION, "3.12", "python", "0.12", "0.12", "cpu", problem="", pid=1)
        )

    def kill(self, death: Death) -> None:
        if self.alive:
            self.death.set_result(death)

    async def aclose(self) -> None:
        self.kill(Death(Reason.STOPPED))


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_spare_does_not_start_between_the_first_answers() -> None:
    """They are followed by others at once, and the start of a spare would delay these."""
    started: list[IdleProcess] = []

    def spawn() -> TracerProcess:
        started.append(IdleProcess())
        return cast(TracerProcess, started[-1])

    ignore = lambda *_: None
    pool = Pool("python", spawn, spare=True, on_status=ignore, on_death=ignore)
    pool.ensure_active()
    pool.is_paused = False
    started[0].greet()
    await settled()
    pool.is_paused = True
    pool.use_pause()
    await settled()
    assert len(started) == 1
    await pool.aclose()
