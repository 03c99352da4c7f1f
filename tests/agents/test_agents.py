"""What agents are given: the plugin and its skill name what there is, and the transcripts are short."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from jaxsight import __version__
from jaxsight.cli.app import app
from jaxsight.features.asking.asking import Topic
from tools.agents.tasks import MOST_CALLS, MOST_CHARACTERS, PAGE, PROGRAMS, TASKS, Task, transcript

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "claude-code"
SKILL = (PLUGIN / "skills" / "jaxsight" / "SKILL.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
SECTIONS = dict(
    re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
)


def read(path: str) -> dict[str, object]:
    return dict(json.loads((PLUGIN / path).read_text(encoding="utf-8")))


def answers(section: str) -> list[str]:
    """The answers of a transcript."""
    return re.findall(r"^```text\n>>> [^\n]*\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)


def test_the_plugin_starts_commands_that_there_are() -> None:
    manifest = read(".claude-plugin/plugin.json")
    assert (manifest["name"], manifest["version"]) == ("jaxsight", __version__)
    servers = [read(".mcp.json")["mcpServers"], read(".lsp.json")]
    started = [server["jaxsight"] for server in servers if isinstance(server, dict)]
    assert [each["command"] for each in started] == ["jaxsight", "jaxsight"]
    assert {each["args"][0] for each in started} <= app.commands.keys()
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    [plugin] = market["plugins"]
    assert (ROOT / plugin["source"]).resolve() == PLUGIN
    assert plugin["description"] == manifest["description"]


@pytest.mark.parametrize("text", [SKILL, GUIDE], ids=["skill", "guide"])
def test_the_skill_names_commands_and_questions_that_there_are(text: str) -> None:
    commands = set(re.findall(r"`(?:[^`\n]*; )?jaxsight ([a-z]+) ", text))
    assert commands
    assert commands <= app.commands.keys()
    questions = set(re.findall(r'question="(\w+)"', text))
    assert questions <= {topic.value for topic in Topic}


def test_the_skill_is_short_and_says_when_to_use_it() -> None:
    assert len(SKILL.splitlines()) <= 150
    front = re.match(r"---\nname: jaxsight\ndescription: (Use when .*)\n---\n", SKILL)
    assert front is not None
    assert len(front[1]) <= 1024


def test_each_task_is_answered_in_few_calls_and_characters() -> None:
    assert list(SECTIONS) == [task.title for task in TASKS]
    assert len(TASKS) == 12
    for task in TASKS:
        section = SECTIONS[task.title]
        program = (PROGRAMS / f"{task.file}.py").read_text(encoding="utf-8")
        assert f'```python title="{task.file}.py"\n{program}```' in section
        given = answers(section)
        assert 1 <= len(given) == len(task.calls) <= MOST_CALLS
        assert sum(map(len, given)) <= MOST_CHARACTERS


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", [t for t in TASKS if t.file in ("shapes", "nan")], ids=lambda t: t.file
)
async def test_a_transcript_is_what_the_tools_answer(task: Task, tmp_path: Path) -> None:
    """Of two tasks: the others take a compiler for a GPU, or long."""
    shutil.copy(PROGRAMS / f"{task.file}.py", tmp_path)
    made = await transcript(task, tmp_path)
    version = re.compile(r"JAX [\d.]+")
    assert version.sub("", made.text) in version.sub("", SECTIONS[task.title])
