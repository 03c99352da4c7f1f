"""The files of a revision, written by us: what a repository configures does not run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jaxsight.cli.errors import CommandError
from jaxsight.cli.revisions.tree import revision_tree
from jaxsight.files.reading import is_marked


def git(folder: Path, *arguments: str, given: str | None = None) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        input=given,
    )
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    return home / "cache"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "src" / "model.py").write_text("one = 1\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "link").symlink_to("src/model.py")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def commit(folder: Path, text: str) -> str:
    (folder / "src" / "model.py").write_text(text)
    git(folder, "commit", "-q", "-am", "text")
    return git(folder, "rev-parse", "HEAD")


def test_it_has_the_files_of_the_commit_and_nothing_else(repository: Path) -> None:
    (repository / "src" / "model.py").write_text("two = 2\n")
    (repository / "new.py").write_text("")
    tree = revision_tree(repository / "src", "HEAD")
    assert tree.then(repository / "src" / "model.py").read_text() == "one = 1\n"
    assert sorted(path.name for path in tree.folder.iterdir()) == [".git", "link", "run", "src"]
    assert os.access(tree.folder / "run", os.X_OK)
    assert (tree.folder / "link").read_text() == "one = 1\n"
    assert is_marked(tree.folder), "it is the root of a project"
    assert tree.folder.stat().st_mode & 0o077 == 0
    assert git(repository, "worktree", "list").count("\n") == 0


def test_it_is_written_once(repository: Path) -> None:
    first = revision_tree(repository, "HEAD")
    (first.folder / "mark").write_text("")
    commit(repository, "two = 2\n")
    assert revision_tree(repository, "HEAD~1") == first
    assert (first.folder / "mark").exists()
    assert revision_tree(repository, "HEAD").folder != first.folder


def test_only_the_newest_revisions_are_kept(repository: Path) -> None:
    trees = []
    for number in range(6):
        commit(repository, f"x = {number}\n")
        trees.append(revision_tree(repository, "HEAD"))
        os.utime(trees[-1].folder / ".git", (number, number))
    assert [tree.folder.exists() for tree in trees] == [False, False, True, True, True, True]


def test_three_dots_are_where_branches_parted(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side")
    commit(repository, "two = 2\n")
    git(repository, "checkout", "-q", "main")
    ahead = commit(repository, "three = 3\n")
    git(repository, "checkout", "-q", "side")
    assert revision_tree(repository, "main").commit == ahead
    assert revision_tree(repository, "main...").commit == base


def test_modules_of_the_repository_are_imported_from_the_revision(
    repository: Path, tmp_path: Path
) -> None:
    tree = revision_tree(repository, "HEAD")
    (tmp_path / "link").symlink_to(repository / "src")
    folders = [str(tmp_path), str(repository / "src"), str(tmp_path / "link")]
    revised = tree.search_path(os.pathsep.join(folders), "").split(os.pathsep)
    assert revised == [str(tmp_path), str(tree.folder / "src")]
    assert tree.search_path("", "") == ""


def test_packages_in_editable_mode_are_those_of_the_revision(
    repository: Path, tmp_path: Path
) -> None:
    tree = revision_tree(repository, "HEAD")
    packages = tmp_path / "venv" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text("")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (packages / "one.pth").write_text(f"import one\n{repository}/python\n/elsewhere\nrelative\n")
    mapping = {"two": f"{repository}/packages/two/two", "three": "/elsewhere/three"}
    (packages / "__editable___two_1_0_finder.py").write_text(f"MAPPING = {mapping!r}\n")
    revised = tree.search_path("/given", str(python)).split(os.pathsep)
    assert revised == [
        "/given",
        str(tree.folder / "python"),
        str(tree.folder / "packages" / "two"),
    ]


def test_filters_of_the_repository_do_not_run(repository: Path) -> None:
    ran = repository / "ran"
    git(repository, "config", "filter.spy.smudge", f"touch {ran}")
    git(repository, "config", "core.hooksPath", str(repository / "hooks"))
    (repository / "hooks").mkdir()
    (repository / "hooks" / "post-checkout").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (repository / "hooks" / "post-checkout").chmod(0o755)
    (repository / ".gitattributes").write_text("*.py filter=spy\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "-q", "-m", "attributes")
    tree = revision_tree(repository, "HEAD")
    assert (tree.folder / "src" / "model.py").read_text() == "one = 1\n"
    assert not ran.exists()


def test_names_that_lead_outside_are_not_written(repository: Path, cache: Path) -> None:
    blob = git(repository, "hash-object", "-w", "--stdin", given="evil = 1\n")
    for depth in range(1, 6):
        tree = git(repository, "mktree", given=f"100644 blob {blob}\tevil.py\n")
        for _ in range(depth):
            tree = git(repository, "mktree", given=f"040000 tree {tree}\t..\n")
        head = git(repository, "commit-tree", tree, "-m", "evil")
        revision_tree(repository, head)
    assert not list(cache.rglob("evil.py"))
    assert not list(repository.parent.rglob("evil.py"))


def test_nothing_is_written_below_a_link(repository: Path, tmp_path: Path) -> None:
    """Such trees are made by hand: one name is a link and a folder."""
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    link, inner, blob = (
        git(repository, "hash-object", "-w", "--stdin", given=text)
        for text in (str(outside), "target", "evil = 1\n")
    )
    for mode, kind, name in (
        ("120000", "blob", "new"),
        ("120000", "blob", "kept"),
        ("100644", "blob", "new.py"),
    ):
        entry = blob if mode == "100644" else inner
        for depth in range(1, 4):
            tree = git(repository, "mktree", given=f"{mode} {kind} {entry}\t{name}\n")
            for _ in range(depth - 1):
                tree = git(repository, "mktree", given=f"040000 tree {tree}\tmade\n")
            both = f"120000 blob {link}\tx\n040000 tree {tree}\tx\n"
            head = git(repository, "commit-tree", git(repository, "mktree", given=both), "-m", "x")
            with pytest.raises(CommandError, match="cannot write the files of"):
                revision_tree(repository, head)
            assert [path.name for path in outside.rglob("*")] == ["kept"]


@pytest.mark.parametrize("revision", ["missing", "--output=x", "HEAD:src"])
def test_what_is_no_revision_is_an_error(repository: Path, revision: str) -> None:
    with pytest.raises(CommandError, match=f"^cannot read the revision {revision}: "):
        revision_tree(repository, revision)
    assert not (repository / "x").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="changes the owner")
def test_a_repository_of_another_user_is_an_error(repository: Path) -> None:
    for path in (repository, *repository.rglob("*")):
        os.chown(path, 1234, 1234, follow_symlinks=False)
    with pytest.raises(CommandError, match="detected dubious ownership in repository"):
        revision_tree(repository, "HEAD")


def test_a_file_outside_of_the_repository_is_an_error(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not in the repository"):
        revision_tree(repository, "HEAD").then(tmp_path / "other.py")
    with pytest.raises(CommandError, match="not a git repository"):
        revision_tree(tmp_path, "HEAD")
