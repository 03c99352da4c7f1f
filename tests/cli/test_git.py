"""`--against REV` reads what is in a repository, and starts none of the programs that it names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxsight.cli import git
from tests.trust.baits import programs, sprung


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A partial clone, which lacks the content of the first commit."""
    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    run(tmp_path, "init", "-q", str(upstream))
    run(upstream, "config", "uploadpack.allowFilter", "true")
    for text in ("one = 1\n", "two = 2\n"):
        (upstream / "model.py").write_text(text)
        run(upstream, "add", ".")
        run(upstream, "commit", "-q", "-m", text)
    run(tmp_path, "clone", "-q", "--filter=blob:none", "--no-local", upstream.as_uri(), str(clone))
    return clone


def run(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def ssh(folder: Path, spy: str) -> None:
    run(folder, "config", "remote.origin.url", "ssh://evil.example/x")
    run(folder, "config", "core.sshCommand", spy)


def transport(folder: Path, spy: str) -> None:
    run(folder, "config", "remote.origin.url", f"ext::{spy} %S")
    run(folder, "config", "protocol.ext.allow", "always")


def upload(folder: Path, spy: str) -> None:
    run(folder, "config", "remote.origin.uploadpack", spy)
    run(folder, "config", "protocol.file.allow", "always")


def helper(folder: Path, spy: str) -> None:
    run(folder, "config", "remote.origin.vcs", "spy")
    programs(folder, Path(spy).with_name("ran"), "git-remote-spy")


def proxy(folder: Path, spy: str) -> None:
    run(folder, "config", "remote.origin.url", "git://evil.example/x")
    run(folder, "config", "core.gitProxy", spy)


def rewritten(folder: Path, spy: str) -> None:
    run(folder, "config", f"url.ext::{spy} .insteadOf", (folder.parent / "upstream").as_uri())
    run(folder, "config", "protocol.ext.allow", "always")


def monitor(folder: Path, spy: str) -> None:
    run(folder, "config", "core.fsmonitor", spy)
    run(folder, "config", "core.pager", spy)
    run(folder, "config", "pager.cat-file", spy)
    run(folder, "config", "core.editor", spy)


def filters(folder: Path, spy: str) -> None:
    (folder / ".gitattributes").write_text("*.py filter=spy diff=spy\n")
    for name in (
        "filter.spy.smudge",
        "filter.spy.clean",
        "filter.spy.process",
        "diff.spy.textconv",
    ):
        run(folder, "config", name, spy)
    run(folder, "config", "diff.external", spy)


def hooks(folder: Path, spy: str) -> None:
    run(folder, "config", "core.hooksPath", str(Path(spy).parent))
    run(folder, "config", "gpg.program", spy)
    run(folder, "config", "log.showSignature", "true")


ATTACKS = [ssh, transport, upload, helper, proxy, rewritten, monitor, filters, hooks]


@pytest.mark.parametrize("revision", ["HEAD", "HEAD~1"])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_repository_starts_no_program(
    attack: Callable[[Path, str], None],
    revision: str,
    repository: Path,
    mark: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = programs(repository.parent / "spies", mark, "spy", "post-checkout", "git-remote-spy")
    attack(repository, str(folder / "spy"))
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    file = repository / "model.py"
    if revision == "HEAD":
        assert git.committed(file, revision) == b"two = 2\n"
    else:
        with pytest.raises(git.NoAnswer, match="not on this machine"):
            git.committed(file, revision)
    assert sprung(mark) == []


def test_git_is_not_looked_up_in_the_repository(
    repository: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(repository, mark, "git")
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    assert git.committed(repository / "model.py", "HEAD") == b"two = 2\n"
    assert sprung(mark) == []


def test_a_revision_is_no_option(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(git.NoAnswer, match="is not a revision"):
        git.committed(repository / "model.py", f"--output={tmp_path / 'written'}")
    assert not (tmp_path / "written").exists()


def test_a_pipe_in_place_of_an_object_does_not_wait(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "_SECONDS", 1.0)
    os.mkfifo(repository / "pipe")
    run(repository, "config", "include.path", str(repository / "pipe"))
    with pytest.raises(git.NoAnswer, match="did not answer within 1 s"):
        git.committed(repository / "model.py", "HEAD")


def test_a_large_object_is_not_read(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git.reading, "SOURCE", 4)
    with pytest.raises(git.NoAnswer, match="larger than 4 B"):
        git.committed(repository / "model.py", "HEAD")
