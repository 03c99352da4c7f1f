"""What this process may run and reach: the policy, the stored decisions, and its own decisions.

A decision is about a folder, by its real path, and applies to all folders below it. If something is
not allowed, the `Consent` that would allow it is asked for once, and nothing waits for the answer.
The real path is that of the question, also when the answer comes: whoever turns a link to another
folder in between gets nothing for it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from jaxsight.events import Consent
from jaxsight.files.ownership import is_own_folder
from jaxsight.targets.target import UnknownTarget, parse
from jaxsight.text.inert import one_line
from jaxsight.text.terminal import instruction
from jaxsight.trust.policy import Policy, chosen_policy
from jaxsight.trust.store import Decisions, TrustStore, store_file
from jaxsight.workers.compilation.remote import PYTHON

# Paths and names of a workspace in a question to its user, made inert.

_MOST = 200
"""Characters of a path in a question, a choice: editors show it in a small dialog. Shorter ones
hide folders that tell projects apart."""
_LINKS = str.maketrans({"[": "\\x5b", "]": "\\x5d", "<": "\\x3c", "`": "\\x60"})
"""Characters that some editors interpret as links, markup or code."""


def folder_text(folder: str, real: str) -> str:
    """Return a folder as it was opened, and where it really is."""
    leads = f" (leads to {path_text(real)})" if real != folder else ""
    return f"{path_text(folder)}{leads}"


def path_text(text: str) -> str:
    """Return a path or name on one line, without control characters or markup.

    The middle of a long one is omitted.
    """
    shown = one_line(text).translate(_LINKS)
    if len(shown) > _MOST:
        half = _MOST // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    return shown


TRUST = "Trust this folder"
ONCE = "Once"
ALLOW = "Allow"
NO = "No"
# A user who is typing when the question appears may answer by accident: Enter selects the first
# answer (eglot fills it in) or the last one (JupyterLab's dialog), `1` and Enter the first one
# (lists of Vim and Neovim). So the first answer refuses, and the last one about a folder is not
# stored.
_FOLDER_ANSWERS = NO, TRUST, ONCE
_REACH_ANSWERS = NO, ALLOW
COMMAND = "jaxsight.trust"
"""The editor command that asks again."""

SSH = "ssh://"


def over_ssh(host: str, python: str) -> str:
    """Return the name of an approval for a host.

    It includes a Python other than the default, because that is a command.
    """
    return f"{SSH}{host}" if python == PYTHON else f"{SSH}{host} {python}"


def stored_form(text: str) -> str:
    """Return an argument of `--allow` in its stored form.

    That is a host without target, with its Python if there is one, or an absolute path.
    """
    if not text.startswith(SSH):
        return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111 (links stay)
    target, _, python = text.partition(" ")
    try:
        return over_ssh(parse(target).host, python or PYTHON)
    except UnknownTarget:
        return text


def parse_host(target: str) -> str:
    """Return the host of an approval; empty if it is for an interpreter."""
    return target.removeprefix(SSH).partition(" ")[0] if target.startswith(SSH) else ""


def command(folder: str, target: str = "") -> str:
    """Return the command that lets a folder's code run, or lets it reach something."""
    option = f" --allow {shlex.quote(target)}" if target else ""
    return f"trust {shlex.quote(folder)}{option}"


class Trust:
    """See the module's docstring."""

    def __init__(
        self,
        policy: Policy = Policy.ASK,
        store: TrustStore | None = None,
        trusted: Iterable[str] = (),
        allowed: Iterable[str] = (),
        *,
        terminal: bool = False,
    ) -> None:
        """Start with the stored decisions.

        Args:
            policy: the policy for folders without a decision.
            store: the user's decisions; without it, decisions last as long as this process.
            trusted: folders that are trusted because the user named them.
            allowed: what every folder may reach, because the user named it.
            terminal: whether a command runs, which asks nothing.
        """
        self._terminal = terminal
        self.policy = policy
        self.client: bool | None = None
        """Whether the client trusts its workspace, if it says so."""
        self._store = store if store is not None else TrustStore(None)
        self._taken_up = self._store.read()
        self._here = Decisions(frozenset(map(os.path.realpath, trusted)))
        """This process's own decisions; not stored."""
        self._opened = Decisions()
        """Folders of the client's workspace, by `Policy.OPENED`."""
        self._allowed = frozenset(allowed)
        self._asked: dict[tuple[str, str], Consent] = {}

    @staticmethod
    def of_user(option: str = "") -> Trust:
        """Return the trust of a process that the user started; `option` as in `chosen_policy`."""
        return Trust(chosen_policy(option), TrustStore(store_file()))

    def may_run(self, folder: str) -> bool:
        """Return whether code of a folder, and interpreters in it, may run."""
        if self.client is False or self.policy is Policy.NEVER:
            return False
        match self.policy:
            case Policy.ALWAYS:
                return True
            case Policy.EDITOR:
                return self.client is True
        real = os.path.realpath(folder)
        decided = self._here.covers(real) or self._store.read().covers(real)
        return decided or self.is_opened(folder)

    def open_folders(self, folders: Iterable[str]) -> None:
        """Take the folders that the client has opened as its workspace.

        The user's home and folders above it, and those that others can write, are none that one
        opens: what is in them is from anywhere.
        """
        if self.policy is Policy.OPENED:
            home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - raises nothing
            real = {os.path.realpath(folder) for folder in folders if is_own_folder(folder)}
            safe = {folder for folder in real if not PurePath(home).is_relative_to(folder)}
            self._opened = Decisions(frozenset(safe))

    def is_opened(self, folder: str) -> bool:
        """Return whether code of a folder may run because the client has opened it."""
        return self._opened.covers(os.path.realpath(folder))

    def may_use_above(self, folder: str) -> bool:
        """Return whether settings and environments above the trusted folder may be used."""
        if self.policy is Policy.NEVER or not is_own_folder(folder):
            return False
        return self.policy is Policy.ALWAYS or self._store.read().covers(os.path.realpath(folder))

    def may_start(self, folder: str, python: str) -> bool:
        """Return whether an interpreter outside a folder, named in its settings, may run."""
        return self.policy is Policy.ALWAYS or self._may_reach(folder, python)

    def may_send(self, folder: str, host: str, python: str) -> bool:
        """Return whether programs of a folder may be compiled on a host, by a Python there."""
        return self._may_reach(folder, over_ssh(host, python))

    def ask_anew(self, host: str) -> None:
        """Let the questions about a host be asked again."""
        self._asked = {
            key: asked for key, asked in self._asked.items() if parse_host(key[1]) != host
        }

    def consent_to_run(
        self, folder: str, python: str, reason: str, *, elsewhere: bool
    ) -> Consent | None:
        """Return the question whether code of a folder may run; `None` if it must not be asked.

        Args:
            folder: the folder.
            python: the interpreter that would run it; may be empty.
            reason: why it was chosen.
            elsewhere: whether the interpreter must be allowed too; it is, along with the folder's
                code.
        """
        if self.policy not in (Policy.ASK, Policy.OPENED) or self.client is False:
            return None
        real_folder = os.path.realpath(folder)
        lies_in = os.path.dirname(python)  # noqa: PTH120 (plain text)
        real = os.path.realpath(lies_in) if python else ""
        leads = f" in {path_text(real)}" if real != lies_in else ""
        why = path_text(reason.replace("`", ""))
        interpreter = f" with {path_text(python)}{leads} ({why})" if python else ""
        return Consent(
            real_folder,
            "",
            f"jaxsight runs the code of {folder_text(folder, real_folder)}{interpreter} to trace "
            "its functions. Do you trust this folder?",
            _FOLDER_ANSWERS,
            python if elsewhere else "",
        )

    def consent_to_start(self, folder: str, python: str) -> Consent:
        """Return the question whether an interpreter outside the folder may run."""
        real = os.path.realpath(folder)
        return Consent(
            real,
            python,
            f"The settings of {folder_text(folder, real)} name an interpreter outside of it: "
            f"{path_text(python)}. Allow it to run?",
            _REACH_ANSWERS,
        )

    def consent_to_send(self, folder: str, host: str, python: str) -> Consent:
        """Return the question whether programs may be compiled on a host, by a Python there."""
        command = f" with {path_text(python)}" if python != PYTHON else ""
        real = os.path.realpath(folder)
        return Consent(
            real,
            over_ssh(host, python),
            f"Programs of {folder_text(folder, real)} would be compiled on {path_text(host)} "
            f"over ssh{command}: StableHLO with its constants leaves this machine. Allow it?",
            _REACH_ANSWERS,
        )

    def remedy(self, folder: str, target: str = "") -> str:
        """Return an instruction that lets a folder's code run, or lets it reach something."""
        action = f"run the command `{COMMAND}`"
        if not self._terminal:
            return f"{action} to decide"
        return f"{instruction(command(folder, target), action)} to allow it"

    def first_time(self, consent: Consent) -> bool:
        """Return whether this is asked for the first time, and record it."""
        key = consent.folder, consent.what
        first = key not in self._asked
        self._asked[key] = consent
        return first

    def waiting(self, folder: str) -> list[Consent]:
        """Return the questions about a folder that are not allowed yet."""
        real = os.path.realpath(folder)
        return [
            consent
            for (of, target), consent in self._asked.items()
            if of == real and not self._allows(folder, target)
        ]

    def decide(self, consent: Consent, answer: str | None) -> bool:
        """Take an answer for this process; return whether it allows anything new."""
        if answer not in consent.answers or answer == NO:
            return False
        self._here = _with(self._here, consent)
        self._asked.pop((consent.folder, consent.what), None)
        return True

    def keep(self, consent: Consent, answer: str | None) -> None:
        """Store a lasting answer for other and later processes.

        It blocks.
        """
        if answer not in (TRUST, ALLOW) or answer not in consent.answers:
            return
        self._store.change(lambda decisions: _with(decisions, consent))

    def changed(self) -> bool:
        """Return whether the decisions on disk changed since the last call."""
        before, self._taken_up = self._taken_up, self._store.read()
        return self._taken_up != before

    def _allows(self, folder: str, target: str) -> bool:
        if not target:
            return self.may_run(folder)
        if target.startswith(SSH):
            return self._may_reach(folder, target)
        return self.may_start(folder, target)

    def _may_reach(self, folder: str, target: str) -> bool:
        real = os.path.realpath(folder)
        return (
            target in self._allowed
            or self._here.approves(real, target)
            or self._store.read().approves(real, target)
        )


def _with(decisions: Decisions, consent: Consent) -> Decisions:
    """Return the decisions with a consent that was given."""
    folder = consent.folder
    target = consent.what or consent.python
    folders = decisions.folders if consent.what else decisions.folders | {folder}
    approvals = decisions.approvals | {(folder, target)} if target else decisions.approvals
    return replace(decisions, folders=folders, approvals=approvals)
