"""The files that the answers of tracers were made of."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from jaxsight.files.texts import Version
from jaxsight.wire.messages.replies import Cancelled, DryCalls, Failed, Traced
from jaxsight.workers.results import Died

T = TypeVar("T")


@dataclass(slots=True)
class Sources:
    """Files with the versions that tracers reported."""

    files: dict[str, Version] = field(default_factory=dict)
    unknown: int = 0
    """Questions whose answers depend on files that are not known, or that have changed since."""

    async def collect(self, asked: Awaitable[T]) -> T:
        """Return the answer to a question, after adding its files.

        Those of a question that is cancelled, or that ends its tracer, are not known. An answer
        about an earlier one has none of its own.
        """
        self.unknown += 1
        match reply := await asked:
            case Traced() | Failed() | DryCalls():
                kept = (self.files.setdefault(path, version) for path, version in reply.files)
                are_same = list(kept) == [version for _, version in reply.files]
                self.unknown -= are_same
            case Died() | Cancelled():
                pass
            case _:
                self.unknown -= 1
        return reply
