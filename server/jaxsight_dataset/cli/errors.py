"""What surrounds the commands of `jaxsight dataset`: their errors, Ctrl-C, and what they run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.printing import Printer
from jaxsight_dataset.making.make import CannotMake
from jaxsight_dataset.spec import InvalidSpec
from jaxsight_dataset.tables.arrow import MissingLibrary
from jaxsight_dataset.tables.files import UnreadableFile
from jaxsight_dataset.tables.manifest import NoDataset
from jaxsight_dataset.tasks.predictions import InvalidPredictions
from jaxsight_dataset.tasks.task import NoBaseline

_PROBLEMS = (
    *(CannotMake, InvalidPredictions, InvalidSpec),
    *(MissingLibrary, NoBaseline, NoDataset, UnreadableFile),
)


def announce(code: str) -> None:
    """Say what is executed, before it is."""
    Printer(stderr=True).print(f"note: running {code} as your user")


@contextmanager
def explained() -> Iterator[None]:
    """Report what goes wrong with a dataset as an error of the command."""
    try:
        yield
    except _PROBLEMS as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot write the dataset: {error}") from error


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt this thread at once, and not the event loop around it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
