"""Decisions on disk: kept for all processes, believed only where nobody else can have written
them.
"""

from __future__ import annotations

import json
import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.trust import Decisions, Trust, TrustStore, store_file
from jaxsight.trust.decisions import ONCE, TRUST
from tests.trust.process import SERVER


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "jaxsight" / "trust.json"


def trusting(*folders: str) -> Callable[[Decisions], Decisions]:
    return lambda known: replace(known, folders=known.folders | set(folders))


def test_what_one_process_wrote_another_reads(file: Path) -> None:
    reader = TrustStore(file)
    assert reader.read() == Decisions()
    assert TrustStore(file).change(trusting("/folders/é\udcff\n"))
    assert TrustStore(file).change(
        lambda known: replace(known, approvals=known.approvals | {("/folders/a", "ssh://host")})
    )
    assert reader.read() == Decisions(
        frozenset({"/folders/é\udcff\n"}), frozenset({("/folders/a", "ssh://host")})
    )


def test_only_the_user_may_read_and_write_it(file: Path) -> None:
    file.parent.mkdir(parents=True, mode=0o755)
    assert TrustStore(file).change(trusting("/work"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert sorted(each.name for each in file.parent.iterdir()) == ["trust.json", "trust.lock"]


def test_what_is_below_a_folder_is_covered_and_nothing_beside_it(file: Path) -> None:
    known = Decisions(frozenset({"/folders/a"}), frozenset({("/folders/a", "ssh://host")}))
    for folder, covered in [
        ("/folders/a", True),
        ("/folders/a/b/c", True),
        ("/folders/ab", False),
        ("/work", False),
        ("/", False),
    ]:
        assert known.covers(folder) == covered
        assert known.approves(folder, "ssh://host") == covered
        assert not known.approves(folder, "ssh://other")


SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
from jaxsight.trust import TrustStore
for number in range(10):
    folder = f"/folders/{sys.argv[2]}/{number}"
    assert TrustStore(Path(sys.argv[1])).change(lambda d: replace(d, folders=d.folders | {folder}))
"""


def test_processes_that_write_at_once_lose_nothing_of_each_others(file: Path) -> None:
    names = ["a", "b", "c", "d"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(file), name],
            env={**os.environ, "PYTHONPATH": str(SERVER)},
        )
        for name in names
    ]
    assert [process.wait(120) for process in processes] == [0] * len(names)
    expected = {f"/folders/{name}/{number}" for name in names for number in range(10)}
    assert TrustStore(file).read().folders == expected


BROKEN = {
    "empty": b"",
    "cut": b'{"version": 1, "folders": ["/wo',
    "no object": b"[]",
    "no version": b'{"folders": ["/work"], "approvals": []}',
    "version as text": b'{"version": "1", "folders": ["/work"], "approvals": []}',
    "newer": b'{"version": 2, "folders": ["/work"], "approvals": []}',
    "wrong list": b'{"version": 1, "folders": "/work", "approvals": []}',
    "wrong entry": b'{"version": 1, "folders": ["/work", 3], "approvals": []}',
    "wrong approval": b'{"version": 1, "folders": ["/work"], "approvals": [{"folder": "/work"}]}',
    "deep": b"[" * 200_000,
    "not UTF-8": b'{"version": 1, "folders": ["\xff"], "approvals": []}',
    "large": b" " * (9 * 1024 * 1024),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_ignored_and_the_log_says_so(
    file: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_bytes(content)
    file.chmod(0o600)
    store = TrustStore(file)
    assert store.read() == Decisions()
    assert f"ignoring {file}" in caplog.text
    written = store.change(trusting("/new"))
    assert written == (content != BROKEN["newer"])  # what a newer version keeps is not destroyed
    assert store.read().folders == ({"/new"} if written else set())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.chmod(0o620),
        lambda file: file.chmod(0o602),
        lambda file: file.parent.chmod(0o770),
        lambda file: file.parent.chmod(0o777),
        lambda file: (file.unlink(), os.mkfifo(file)),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: (file.unlink(), file.symlink_to(file)),
        lambda file: (file.unlink(), file.symlink_to("/dev/zero")),
    ],
    ids=["group", "all", "folder group", "folder all", "pipe", "folder", "loop", "device"],
)
def test_a_file_that_others_may_have_written_is_ignored(
    file: Path, spoil: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    TrustStore(file).change(trusting("/work"))
    spoil(file)
    assert TrustStore(file).read() == Decisions()
    assert f"ignoring {file}" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_ignored(file: Path) -> None:
    TrustStore(file).change(trusting("/work"))
    os.chown(file, 12345, -1)
    assert TrustStore(file).read() == Decisions()
    os.chown(file, 0, -1)
    assert TrustStore(file).read().folders == {"/work"}
    os.chown(file.parent, 12345, -1)
    assert TrustStore(file).read() == Decisions()
    assert TrustStore(file).change(trusting("/more")) is False


def nobody(_: int) -> object:
    """What the system knows of a user who is in no list, as in some containers."""
    raise KeyError


@pytest.mark.parametrize("home", ["missing", "a file", "unset"])
def test_without_a_home_decisions_hold_for_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    place = tmp_path / "home"
    if home == "a file":
        place.write_text("")
    if home == "unset":
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", nobody)
        assert store_file() is None
    else:
        monkeypatch.setenv("HOME", "/proc/nobody" if home == "missing" else str(place))
    trust = Trust(store=TrustStore(store_file()))
    project = tmp_path / "project"
    project.mkdir()
    consent = trust.consent_to_run(str(project), "", "", elsewhere=False)
    assert consent is not None
    assert trust.decide(consent, TRUST)
    trust.keep(consent, TRUST)
    assert trust.may_run(str(project / "below"))
    assert not Trust(store=TrustStore(store_file())).may_run(str(project))


def test_once_is_not_written_and_links_do_not_matter(file: Path, tmp_path: Path) -> None:
    project, link = tmp_path / "project", tmp_path / "link"
    project.mkdir()
    link.symlink_to(project)
    trust = Trust(store=TrustStore(file))
    for answer in (ONCE, TRUST):
        consent = trust.consent_to_run(str(link), "", "", elsewhere=False)
        assert consent is not None
        assert trust.decide(consent, answer)
        trust.keep(consent, answer)
        assert trust.may_run(str(project))
        assert file.exists() == (answer == TRUST)
    assert json.loads(file.read_text())["folders"] == [str(project.resolve())]
