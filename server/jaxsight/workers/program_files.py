"""Read files of programs with the user's JAX, which runs no code of the user's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import fields, replace

from jaxsight.workers import child
from jaxsight.workers.confinement import start as confinement
from jaxsight.workers.own_python import UNLESS_SET, booted, with_packages
from jaxsight_source.options import ProgramText


class NotRead(Exception):
    """A file has no text in the language; the message says why.

    `different` says that text was written, but its program is different.
    """

    def __init__(self, why: str, *, different: bool = False) -> None:
        super().__init__(why)
        self.different = different


class NotTimely(NotRead):
    """Reading a file takes longer than it may."""


async def program_text(
    python: str, content: bytes, wanted: Mapping[str, object], limit: float
) -> ProgramText:
    """Return a file's program in a language.

    Args:
        python: the user's interpreter.
        content: of the file.
        wanted: as for `jaxsight_source.api.text_of`.
        limit: seconds after which the process is killed.

    Raises:
        NotRead: there is none, or not in time.
    """
    started = with_packages(python, *booted("source"), json.dumps(wanted))
    with confinement.temporary(UNLESS_SET | started.environment) as variables:
        command = confinement.confined(started.command)
        own = replace(started, command=command, environment=variables)
        try:
            status, out, errors = await asyncio.wait_for(child.answered(own, content), limit)
        except TimeoutError:
            raise NotTimely(f"the program was not read within {limit:g} s") from None
    try:
        answer = json.loads(out)
    except ValueError:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise NotRead(f"the process that reads it ended: {last or status}") from None
    if "error" in answer:
        raise NotRead(answer["error"], different=answer["type"] == "NotTheSame")
    names = {field.name for field in fields(ProgramText)}
    return ProgramText(**{name: answer[name] for name in names})
