"""Links: code runs where the user agreed to what it really is, now and later."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jaxsight.events import Consent
from jaxsight.projects.projects import Projects
from jaxsight.trust import Decisions, Policy, Trust, TrustStore
from jaxsight.trust.decisions import TRUST
from tests.trust.process import (
    FUNCTION,
    TRACED,
    answering,
    asked,
    decide,
    hover,
    hover_with,
    open_file,
    questions,
    server,
    stored,
)
from tests.trust.test_attacks import jaxsight


def turn(link: Path, target: Path) -> None:
    """Let a link lead to another folder, at once."""
    beside = link.with_name(f"{link.name}.new")
    beside.symlink_to(target)
    beside.replace(link)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A folder that the user trusts."""
    return made(tmp_path / "good")


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A folder that nobody trusts."""
    return made(tmp_path / "evil")


def made(folder: Path) -> Path:
    (folder / "inner").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    for file in (folder / "model.py", folder / "inner" / "model.py"):
        file.write_text("x = 1\n")
    return folder


@pytest.fixture
async def projects(good: Path, tmp_path: Path) -> AsyncIterator[Projects]:
    """All projects of a user who trusts the good folder; the workspace is a link to it."""
    (tmp_path / "link").symlink_to(good)
    opened = projects_of(good)
    configure(opened, tmp_path / "link")
    yield opened
    await opened.aclose()


def projects_of(*trusted: Path) -> Projects:
    return Projects(Trust(trusted=map(str, trusted)))


def configure(projects: Projects, *roots: Path, trusted: bool | None = None) -> None:
    projects.configure(
        [str(root) for root in roots],
        {"python": sys.executable},
        trusted=trusted,
        editor_python={},
        editor_by_root={},
    )


async def test_a_link_that_leads_elsewhere_holds_its_code_back(
    projects: Projects, tmp_path: Path, evil: Path, good: Path
) -> None:
    link = tmp_path / "link"
    file = str(link / "model.py")
    before = projects.of(file)
    assert not before.held_back
    turn(link, evil)
    assert "leads to another folder" in before.held_back
    await asyncio.sleep(0)  # links are read once in each turn of the event loop
    assert "not trusted" in projects.of(file).held_back
    assert projects.relinked()
    assert not projects.relinked()
    turn(link, good)
    await asyncio.sleep(0)
    assert not projects.of(file).held_back


async def test_tracers_of_a_link_answer_nothing_once_it_leads_elsewhere(
    projects: Projects, tmp_path: Path, evil: Path
) -> None:
    from jaxsight.wire.messages.requests import NEW, Import
    from jaxsight.workers.results import Died

    link = tmp_path / "link"
    project = projects.of(str(link / "model.py"))
    turn(link, evil)
    request = Import(NEW, str(link / "model.py"), "model", str(link), ())
    assert isinstance(await project.import_whole(request), Died)
    assert isinstance(await project.ask(request), Died)
    project.prestart()
    assert project._started() is None


def link_of_a_folder(good: Path, evil: Path) -> Path:
    (good / "vendor").symlink_to(evil / "inner")
    return good / "vendor" / "model.py"


def link_of_a_project(good: Path, evil: Path) -> Path:
    (good / "vendor").symlink_to(evil)
    return good / "vendor" / "model.py"


def link_of_a_file(good: Path, evil: Path) -> Path:
    (good / "linked.py").symlink_to(evil / "model.py")
    return good / "linked.py"


def link_of_a_link(good: Path, evil: Path) -> Path:
    (good / "a").symlink_to(good / "b")
    (good / "b").symlink_to(evil)
    return good / "a" / "inner" / "model.py"


def link_upward(good: Path, evil: Path) -> Path:
    (good / "up").symlink_to("..")
    return good / "up" / "evil" / "model.py"


def library(good: Path, evil: Path) -> Path:
    (good / "site-packages").symlink_to(evil)
    return good / "site-packages" / "model.py"


LINKS = [link_of_a_folder, link_of_a_project, link_of_a_file, link_of_a_link, link_upward, library]


@pytest.mark.parametrize("make", LINKS, ids=lambda make: make.__name__)
async def test_a_link_in_a_trusted_folder_leads_no_code_in(
    make: object, good: Path, evil: Path
) -> None:
    file = make(good, evil)  # type: ignore[operator]
    projects = projects_of(good)
    configure(projects, good)
    assert not projects.of(str(good / "model.py")).held_back
    project = projects.of(str(file))
    assert "not trusted" in project.held_back
    consent = project.consent()
    assert consent is not None
    assert Path(consent.folder).is_relative_to(evil)
    projects.trust.decide(consent, TRUST)
    projects.decided()
    assert not projects.of(str(file)).held_back
    await projects.aclose()


@pytest.mark.parametrize("make", LINKS, ids=lambda make: make.__name__)
async def test_a_link_to_trusted_code_runs_nothing_beside_it(
    make: object, good: Path, evil: Path
) -> None:
    file = make(evil, good)  # type: ignore[operator]
    projects = projects_of(good)
    configure(projects, evil)
    consent = projects.of(str(file)).consent()
    assert consent is not None
    assert consent.folder == str(evil)
    projects.trust.decide(consent, TRUST)
    projects.decided()
    assert not projects.of(str(file)).held_back
    await projects.aclose()


async def test_a_file_that_becomes_a_link_is_held_back(good: Path, evil: Path) -> None:
    projects = projects_of(good)
    configure(projects, good)
    file = good / "inner" / "model.py"
    assert not projects.of(str(file)).held_back
    file.unlink()
    file.symlink_to(evil / "model.py")
    await asyncio.sleep(0)  # links are read once in each turn of the event loop
    assert "not trusted" in projects.of(str(file)).held_back
    await projects.aclose()


@pytest.mark.parametrize("where", ["inside", "another trusted folder", "of the interpreter"])
async def test_links_to_what_is_trusted_ask_nothing(good: Path, tmp_path: Path, where: str) -> None:
    other = made(tmp_path / "other")
    packages = good / ".venv" / "lib" / "python3.12" / "site-packages"
    target = {"inside": good / "inner", "another trusted folder": other}.get(where)
    if target is not None:
        (good / "linked").symlink_to(target)
        file = good / "linked" / "model.py"
    else:
        environment = tmp_path / "environments" / "one"
        (environment / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
        (environment / "pyvenv.cfg").write_text("")
        (environment / "bin").mkdir()
        (environment / "bin" / "python").symlink_to(sys.executable)
        (good / ".venv").symlink_to(environment)
        file = packages / "library.py"
        file.write_text("x = 1\n")
    projects = projects_of(good, other)
    projects.configure([str(good)], {}, trusted=None, editor_python={}, editor_by_root={})
    assert not projects.of(str(file)).held_back
    await projects.aclose()


def test_the_question_shows_where_a_link_leads_and_the_answer_is_about_that(
    tmp_path: Path, good: Path, evil: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(good)
    store = TrustStore(tmp_path / "state" / "trust.json")
    trust = Trust(Policy.ASK, store)
    consent = trust.consent_to_run(str(link), "", "", elsewhere=False)
    assert consent is not None
    assert f"the code of {link} (leads to {good}) " in consent.text
    for target in (evil, tmp_path, Path("/")):
        turn(link, target)
        assert trust.decide(consent, TRUST)
        trust.keep(consent, TRUST)
        assert store.read().folders == {str(good)}
        assert not trust.may_run(str(link))
    turn(link, good)
    assert trust.may_run(str(link))


@pytest.mark.parametrize("kind", ["host", "interpreter"])
def test_what_a_folder_may_reach_is_about_the_folder_of_the_question(
    tmp_path: Path, good: Path, evil: Path, kind: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(good)
    trust = Trust()
    consent: Consent = (
        trust.consent_to_send(str(link), "host", "python3")
        if kind == "host"
        else trust.consent_to_start(str(link), "/opt/python")
    )
    assert f"(leads to {good})" in consent.text
    turn(link, evil)
    trust.decide(consent, "Allow")
    reached = (
        trust.may_send if kind == "host" else lambda folder, host, _: trust.may_start(folder, host)
    )
    name = "host" if kind == "host" else "/opt/python"
    assert reached(str(good), name, "python3")
    assert not reached(str(evil), name, "python3")
    assert not reached(str(link), name, "python3")


def test_a_decision_about_a_folder_says_nothing_of_a_link_in_its_place(
    tmp_path: Path, good: Path, evil: Path
) -> None:
    trust = Trust(trusted=[str(good)])
    good.rename(tmp_path / "moved")
    good.symlink_to(evil)
    assert not trust.may_run(str(good))
    assert Decisions(frozenset({str(evil)})).covers(str(evil))


@pytest.mark.slow
async def test_a_workspace_that_is_turned_while_the_server_runs_asks_again(
    tmp_path: Path, good: Path, evil: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(good)
    mark = tmp_path / "ran"
    (evil / "helper.py").write_text(f"open({str(mark)!r}, 'w').close()\nk = 1\n")
    (good / "helper.py").write_text("k = 1\n")
    text = FUNCTION.replace("import jax", "import helper, jax")
    decide(tmp_path, good)
    async with server(tmp_path, link) as client:
        file = link / "model.py"
        open_file(client, file, text)
        await hover_with(client, file, TRACED)
        assert questions(client) == []
        turn(link, evil)
        client.edit(file.as_uri(), 2, {"text": text.replace("jnp.sin(x)", "jnp.cos(x)")})
        assert "not trusted" in await hover_with(client, file, "not trusted")
        (question,) = await asked(client)
        assert f"{link} (leads to {evil})" in question["message"]
        assert not mark.exists()
        answering(client, None)
    assert stored(tmp_path)["folders"] == [str(good)]


@pytest.mark.slow
async def test_a_link_that_is_turned_before_the_answer_trusts_what_was_shown(
    tmp_path: Path, good: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(good)
    async with server(tmp_path, link) as client:

        def answer(params: object) -> dict[str, str] | None:
            answering(client, None)  # of what comes next, which is about the other folder
            turn(link, tmp_path)
            return {"title": TRUST}

        client.answers["window/showMessageRequest"] = answer
        file = link / "model.py"
        open_file(client, file)
        await hover(client, file)
        await asked(client)
        await client.settled()
    assert json.loads((tmp_path / "home/.local/state/jaxsight/trust.json").read_text())[
        "folders"
    ] == [str(good)]


@pytest.mark.slow
@pytest.mark.parametrize("named", ["the link", "the folder"])
def test_a_command_runs_what_it_is_given_and_nothing_that_links_in_it_lead_to(
    tmp_path: Path, good: Path, evil: Path, named: str
) -> None:
    (evil / "model.py").write_text(FUNCTION.replace("jnp.sin(x)", "x.no_such_attribute"))
    (good / "linked.py").symlink_to(evil / "model.py")
    done = jaxsight(tmp_path, "check", "linked.py" if named == "the link" else ".", cwd=good)
    was_traced = "no_such_attribute" in done.stdout
    assert was_traced == (named == "the link"), done.stderr
    if named == "the folder":
        assert "jaxsight trust" in done.stdout + done.stderr
