"""The columns of the tables, and the version of the schema."""

from __future__ import annotations

VERSION = 1
