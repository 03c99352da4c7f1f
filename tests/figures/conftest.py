"""The sessions of the commands that these tests run."""

from tests.terminal import _place, sessions, tmp_path

__all__ = ["_place", "sessions", "tmp_path"]
