"""Temporary folders of work on an event loop, which are removed whatever becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path


@contextlib.asynccontextmanager
async def temporary_folder(prefix: str) -> AsyncIterator[Path]:
    """Yield a folder that is removed in the end, also if the task is cancelled."""
    folder = await asyncio.to_thread(
        tempfile.TemporaryDirectory, prefix=prefix, ignore_cleanup_errors=True
    )
    try:
        yield Path(folder.name)
    finally:
        await asyncio.shield(asyncio.to_thread(folder.cleanup))
