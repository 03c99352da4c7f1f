"""The user's general preference, `trust = ask|opened|always|never`, in their own configuration.

A project's files never decide this, nor do the settings that a client sends: many editors merge a
project's files into those.
"""

from __future__ import annotations

import logging
import os
import stat
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from jaxsight.files import private
from jaxsight.files.ownership import NotOurs, read_own

log = logging.getLogger(__name__)

VARIABLE = "JAXSIGHT_TRUST"
FILE = "config.toml"
KEY = "trust"
_MOST = 1024 * 1024
"""Bytes of a configuration that is read: one has a few lines, more is another file."""
_ROOT = 0
"""The user id of root: files of the administrator or a package manager count as the user's."""


class Policy(StrEnum):
    """Whether code of a folder may run about which there is no decision."""

    ASK = "ask"
    OPENED = "opened"
    """As `ask`, but code runs in folders that the client opens as its workspace: for clients that
    nobody sits in front of, and that a user starts in a folder."""
    ALWAYS = "always"
    NEVER = "never"
    EDITOR = "editor"
    """The editor has its own trust and reports it."""


USERS = tuple(policy for policy in Policy if policy is not Policy.EDITOR)


def chosen_policy(option: str = "", environ: Mapping[str, str] | None = None) -> Policy:
    """Return the policy of this process.

    Args:
        option: the option `--trust` of the server; may be empty. `editor` replaces `ask` only.
        environ: the environment variables; by default those of this process.
    """
    if option and option != Policy.EDITOR:
        return Policy(option)
    environ = os.environ if environ is None else environ
    policy = _read(environ.get(VARIABLE, ""), f"the environment variable {VARIABLE}") or _of_file()
    if option == Policy.EDITOR and policy in (None, Policy.ASK):
        return Policy.EDITOR
    return policy or Policy.ASK


def config_file() -> Path | None:
    """Return the path of the user's configuration; `None` if there is no home folder."""
    return private.own_folder("user_config_dir", FILE)


def _of_file() -> Policy | None:
    if (path := config_file()) is None:
        return None
    try:
        data = read_own(path, most=_MOST, forbidden=stat.S_IWOTH, owners=(_ROOT,))
        table = tomllib.loads(data.decode("utf-8-sig"))
    except FileNotFoundError:
        return None
    except (OSError, NotOurs, ValueError, RecursionError) as error:
        log.warning("ignoring %s: %s", path, error)
        return None
    for key in table:
        if key != KEY:
            log.warning("%s: unknown key %r", path, key)
    return _read(table.get(KEY, ""), str(path))


def _read(value: object, source: str) -> Policy | None:
    """Return the policy with a name; `None` for an empty or an invalid one, which is logged."""
    if value == "":
        return None
    if value in USERS:
        return Policy(str(value))
    log.warning("ignoring %s: expected one of %s, got %.40r", source, ", ".join(USERS), value)
    return None
