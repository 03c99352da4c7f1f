"""Hosts that projects name: they are the last to be offered, and are asked about however chosen."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jaxsight.cli.trusted_paths import trust_paths
from jaxsight.events import Consent
from jaxsight.features.setup.targets import UNAPPROVED, targets
from jaxsight.lsp.features.targets import _first, _title
from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.trust import Trust
from jaxsight.workers.compilation.remote import PYTHON
from tests.trust.process import (
    FUNCTION,
    TRACED,
    answering,
    asked,
    decide,
    hover_with,
    open_file,
    questions,
    run,
    server,
    stored,
)
from tests.trust.test_attacks import KERNELS, jaxsight, mark, ran, ssh

__all__ = ["mark", "ssh"]

EVIL = "ssh://attacker"
SETTINGS = f'[tool.jaxsight]\ntarget = "{EVIL}"\ntargets = ["ssh://second/cuda:h100", "cpu"]\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that names hosts."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(SETTINGS)
    return folder


@pytest.fixture
async def session(project: Path) -> AsyncIterator[Session]:
    """A session of a user who trusts the project's code, and nothing else."""
    opened = Session(Projects(Trust(trusted=[str(project)])))
    opened.configure([str(project)], {"python": sys.executable})
    yield opened
    await opened.aclose()


async def test_hosts_of_a_project_are_last_and_marked(session: Session, project: Path) -> None:
    offered = (await targets(session.engine, str(project / "model.py"))).targets
    names = [offer.target for offer in offered if not offer.approved]
    assert names == [offer.target for offer in offered[-2:]]
    assert sorted(names) == [f"{EVIL}/cuda", "ssh://second/cuda:h100"]
    assert {offer.detail for offer in offered[-2:]} == {UNAPPROVED}
    assert offered[-2].active or offered[-1].active
    first = _first(offered)
    assert all(offer.approved for offer in first)
    assert _title(offered[-1]).endswith(" (needs your approval)")


async def test_an_approved_host_is_offered_like_others(session: Session, project: Path) -> None:
    trust = session.engine.projects.trust
    trust.decide(trust.consent_to_send(str(project), "attacker", PYTHON), "Allow")
    offered = (await targets(session.engine, str(project / "model.py"))).targets
    assert [offer.target for offer in offered if not offer.approved] == ["ssh://second/cuda:h100"]
    assert _first(offered)[0].target == f"{EVIL}/cuda"


@pytest.mark.parametrize("name", [EVIL, f"{EVIL}/cuda:h100", f"{EVIL}/cpu"])
async def test_a_host_that_is_chosen_is_asked_about_each_time(
    session: Session, project: Path, name: str
) -> None:
    of = session.engine.projects.of(str(project / "model.py"))
    for _ in range(2):  # the user declined the first time
        session.choose_target(name)
        assert "waits for your approval" in of.not_sent("attacker")
        assert "waits for your approval" in of.not_sent("attacker")
        event = session.events.get_nowait()
        assert isinstance(event, Consent)
        assert "attacker" in event.text
        assert session.events.empty()


def test_a_host_on_the_command_line_runs_no_other_python_of_a_project(project: Path) -> None:
    trust = trust_paths([project], [EVIL]).trust
    assert trust.may_send(str(project), "attacker", PYTHON)
    assert not trust.may_send(str(project), "attacker", "/tmp/planted")
    assert not trust.may_send(str(project), "other", PYTHON)
    named = trust_paths([project], [f"{EVIL} /opt/python"]).trust
    assert named.may_send(str(project), "attacker", "/opt/python")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["by name", "from a list"])
async def test_choosing_a_host_is_no_consent_in_an_editor(
    tmp_path: Path, project: Path, mark: Path, ssh: dict[str, str], how: str
) -> None:
    decide(tmp_path, project)
    async with server(tmp_path, project, environ=ssh, **KERNELS) as client:
        file = project / "model.py"
        open_file(client, file)
        await hover_with(client, file, TRACED)
        await asked(client)
        if how == "by name":
            await run(client, "jaxsight.chooseTarget", EVIL, file.as_uri())
        else:
            answering(client, EVIL)  # as an accidental Enter would
            await run(client, "jaxsight.chooseTarget")
            answering(client, None)
        await hover_with(client, file, "waits for your approval")
        assert any("attacker over ssh" in question for question in questions(client))
        assert not ran(mark)
    assert stored(tmp_path)["approvals"] == []


@pytest.mark.slow
@pytest.mark.parametrize("option", [(), ("--target", EVIL)])
def test_a_command_reaches_the_host_that_its_user_named(
    tmp_path: Path, project: Path, mark: Path, ssh: dict[str, str], option: tuple[str, ...]
) -> None:
    (project / "model.py").write_text(FUNCTION)
    python = ("--python", sys.executable)
    done = jaxsight(tmp_path, "kernels", "model.py:f", *option, *python, cwd=project, **ssh)
    assert mark.exists() == bool(option), done.stderr
    if not option:
        assert "waits for your approval" in done.stdout + done.stderr
