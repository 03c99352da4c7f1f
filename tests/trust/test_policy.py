"""Who says whether folders are trusted without being asked: the user, in their own configuration,
and nobody else.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jaxsight.trust import Policy, Trust, chosen_policy
from jaxsight.trust.decisions import path_text


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("JAXSIGHT_TRUST")
    file = tmp_path / "config" / "jaxsight" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


@pytest.mark.parametrize(
    ("option", "variable", "file", "expected"),
    [
        ("", "", "", "ask"),
        ("", "", 'trust = "always"', "always"),
        ("", "never", 'trust = "always"', "never"),
        ("ask", "never", 'trust = "always"', "ask"),
        ("editor", "", "", "editor"),
        ("editor", "", 'trust = "ask"', "editor"),
        ("editor", "never", "", "never"),
        ("editor", "", 'trust = "always"', "always"),
    ],
)
def test_the_option_wins_over_the_variable_and_that_over_the_file(
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    variable: str,
    file: str,
    expected: str,
) -> None:
    config.write_text(file)
    if variable:
        monkeypatch.setenv("JAXSIGHT_TRUST", variable)
    assert chosen_policy(option) == expected


@pytest.mark.parametrize(
    ("variable", "file"),
    [
        ("yes", ""),
        ("editor", ""),
        ("", "trust = true"),
        ("", 'trust = "Always"'),
        ("", 'trust = ["always"]'),
        ("", 'trust = "always'),
        ("", "trust = \udcff"),
        ("", "x = " + "[" * 100_000),
        ("", "x = " + "9" * 100_000),
    ],
)
def test_what_is_not_understood_asks(
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variable: str,
    file: str,
) -> None:
    config.write_bytes(file.encode("utf-8", "surrogateescape"))
    monkeypatch.setenv("JAXSIGHT_TRUST", variable)
    assert chosen_policy() is Policy.ASK
    assert "ignoring" in caplog.text


@pytest.mark.parametrize("what", ["pipe", "written by all", "of another user"])
def test_a_configuration_that_others_may_have_written_asks(config: Path, what: str) -> None:
    config.write_text('trust = "always"')
    if what == "pipe":
        config.unlink()
        os.mkfifo(config)
    elif what == "written by all":
        config.chmod(0o666)
    elif os.geteuid() == 0:
        os.chown(config, 12345, -1)
    else:
        pytest.skip("only root can give files away")
    assert chosen_policy() is Policy.ASK


@pytest.mark.parametrize(
    ("policy", "client", "runs"),
    [
        (Policy.ASK, None, False),
        (Policy.ASK, True, False),
        (Policy.ALWAYS, None, True),
        (Policy.ALWAYS, False, False),
        (Policy.NEVER, True, False),
        (Policy.EDITOR, None, False),
        (Policy.EDITOR, True, True),
        (Policy.EDITOR, False, False),
    ],
)
def test_a_client_may_forbid_and_allows_only_where_the_user_said_so(
    tmp_path: Path, policy: Policy, client: bool | None, runs: bool
) -> None:
    trust = Trust(policy)
    trust.client = client
    assert trust.may_run(str(tmp_path)) == runs
    asks = trust.consent_to_run(str(tmp_path), "", "", elsewhere=False) is not None
    assert asks == (policy is Policy.ASK and client is not False)


def test_opened_folders_run_but_reach_nothing_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    project, other, shared = home / "project", home / "other", home / "shared"
    for folder in (project / "inner", other, shared):
        folder.mkdir(parents=True)
    shared.chmod(0o777)
    monkeypatch.setenv("HOME", str(home))
    link = home / "link"
    link.symlink_to(project)

    trust = Trust(Policy.OPENED)
    assert not trust.may_run(str(project))
    trust.open_folders([str(link), str(shared), str(home), str(tmp_path), "/"])
    assert trust.may_run(str(project / "inner"))
    assert not any(map(trust.may_run, map(str, (other, shared, home, tmp_path))))
    assert not trust.may_use_above(str(project))
    assert not trust.may_start(str(project), "/usr/bin/python")
    assert not trust.may_send(str(project), "host", "python3")
    assert trust.consent_to_run(str(other), "", "", elsewhere=False) is not None

    link.unlink()
    link.symlink_to(other)
    assert not trust.may_run(str(link)), "it leads elsewhere than when it was opened"
    trust.client = False
    assert not trust.may_run(str(project))
    trust.client = None
    trust.open_folders([str(other)])
    assert not trust.may_run(str(project))
    for policy in (Policy.ASK, Policy.NEVER, Policy.EDITOR):
        trust = Trust(policy)
        trust.open_folders([str(project)])
        assert not trust.may_run(str(project))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/folders/é 日本", "/folders/é 日本"),
        ("/a\nTrust it: it is safe", "/a\\nTrust it: it is safe"),
        ("/\x1b[2J\x07", "/\\x1b\\x5b2J\\x07"),
        ("/\u202etxt", "/\\u202etxt"),
        ("/[here](command:run)", "/\\x5bhere\\x5d(command:run)"),
        ("/\udcff", "/\\udcff"),
    ],
)
def test_paths_in_questions_are_inert(path: str, shown: str) -> None:
    assert path_text(path) == shown
    consent = Trust().consent_to_run(path, f"{path}/python", path, elsewhere=False)
    assert consent is not None
    assert shown in consent.text
    assert consent.text.isprintable()


def test_a_long_path_keeps_both_ends() -> None:
    shown = path_text("/home/user/" + "x" * 5000 + "/project")
    assert len(shown) < 210
    assert shown.startswith("/home/user/")
    assert shown.endswith("/project")
