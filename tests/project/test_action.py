"""The steps of `action.yml`, run in a folder that has nothing but a fresh clone."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.trust.baits import laid, sprung

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")

BEFORE = '''\
import jax.numpy as jnp


def f(x):
    """Return the sum.

    Example inputs:
        x: f32[64, 64]
    """
    return jnp.sum(x * 2.0)


def g(x):
    """Return the tanh.

    Example inputs:
        x: f32[1024]
    """
    return jnp.tanh(x) * 2.0
'''
AFTER = (
    BEFORE.replace(
        "    return jnp.sum", "    if x[0, 0] > 0:\n        return x\n    return jnp.sum"
    )
    .replace("jnp.tanh(x)", "jnp.sort(jnp.tanh(x))")
    .replace("import jax.numpy", "import jax; import jax.numpy")
)


@dataclass
class GitHub:
    """The comments of a pull request."""

    address: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    may_write: bool = True


@pytest.fixture
def github() -> Iterator[GitHub]:
    state = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def answer(self, status: int, content: object) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            state.requests.append(f"GET {self.path}")
            page = int(self.path.rpartition("page=")[2])
            self.answer(200, state.comments[100 * (page - 1) : 100 * page])

        def change(self) -> None:
            state.requests.append(f"{self.command} {self.path}")
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
            if not state.may_write or self.headers["Authorization"] != "Bearer secret":
                self.answer(403, {"message": "Resource not accessible by integration"})
            elif self.command == "POST":
                comment = {"id": len(state.comments), "body": body, "user": {"type": "Bot"}}
                state.comments.append(comment)
                self.answer(201, comment)
            else:
                state.comments[int(self.path.rpartition("/")[2])]["body"] = body
                self.answer(200, {})

        do_POST = do_PATCH = change

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Job:
    """A job of a workflow whose only step is the action."""

    folder: Path
    github: GitHub
    inputs: Mapping[str, str]
    event: Mapping[str, Any]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""

    def value(self, expression: str) -> str:
        names = expression.split(".")
        if names[0] == "inputs":
            name = names[1]
            written = str(ACTION["inputs"][name]["default"])
            return self.inputs.get(name, self.filled(written))
        if names[0] == "steps":
            return self.outputs.get(names[1], {}).get(names[3], "")
        known: Any = {
            "github": {"action_path": ROOT, "token": "secret", "event": self.event},
            "runner": {"temp": self.folder / "temp"},
        }
        for name in names:
            known = known.get(name, {})
        return str(known) if known != {} else ""

    def filled(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: self.value(match[1]), text)

    def holds(self, condition: str) -> bool:
        """Whether all parts of a condition hold: `a == 'b'`, or a value that is not empty."""
        for part in condition.split(" && "):
            left, _, right = part.partition(" == ")
            value = self.value(left)
            if not value or (right and value != right.strip("'")):
                return False
        return True

    def run(self) -> int:
        """Run the steps that are scripts, up to one that fails; return its status."""
        temp = self.folder / "temp"
        temp.mkdir(exist_ok=True)
        for step in STEPS:
            if "run" not in step or not self.holds(step.get("if", "github.action_path")):
                continue
            output = temp / "output"
            output.write_text("")
            env = {
                "HOME": str(self.folder),
                "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                "GITHUB_API_URL": self.github.address,
                "GITHUB_OUTPUT": str(output),
                "GITHUB_REPOSITORY": "owner/name",
                "GITHUB_STEP_SUMMARY": str(temp / "summary.md"),
                "JAX_PLATFORMS": "cpu",
                **{name: self.filled(text) for name, text in step["env"].items()},
            }
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.folder / "project",
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            self.log += done.stdout + done.stderr
            if done.returncode:
                return done.returncode
            lines = output.read_text().splitlines()
            self.outputs[step.get("id", "")] = dict(line.split("=", 1) for line in lines)
        return 0


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def job(tmp_path: Path, github: GitHub) -> Job:
    """A job in the clone of a repository with a pull request that adds an error."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    (project / "model.py").write_text(BEFORE)
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "before")
    base = git(project, "rev-parse", "HEAD")
    (project / "model.py").write_text(AFTER)
    git(project, "commit", "-q", "-am", "after")
    inputs = {"command": os.fspath(Path(sys.executable).with_name("jaxsight"))}
    event = {"pull_request": {"number": 7, "base": {"sha": base}}}
    return Job(tmp_path, github, inputs, event)


def test_inputs_reach_scripts_as_variables_only() -> None:
    scripts = [step["run"] for step in STEPS if "run" in step]
    assert len(scripts) == 4
    assert not any("${{" in script for script in scripts)
    used = {name for step in STEPS for name in re.findall(r"inputs\.(\w+)", json.dumps(step))}
    assert used == set(ACTION["inputs"])


def test_actions_of_others_have_a_version() -> None:
    others = [step["uses"] for step in STEPS if "uses" in step]
    assert [each.partition("@")[0] for each in others] == [
        "actions/cache",
        "github/codeql-action/upload-sarif",
    ]
    assert all(re.fullmatch(r"[\w/-]+@v\d+", each) for each in others)


def test_the_page_names_all_inputs() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(ACTION["inputs"])


def hook_environment(job: Job) -> dict[str, str]:
    """The variables in which pre-commit runs a hook: its environment has no JAX."""
    own = job.folder / "own"
    if not own.exists():
        (own / "bin").mkdir(parents=True)
        (own / "pyvenv.cfg").write_text("")
        (own / "bin" / "jaxsight").symlink_to(Path(sys.executable).with_name("jaxsight"))
        (own / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
        (own / "bin" / "python3").chmod(0o755)
        (own / "bin" / "python").symlink_to("python3")
    path = f"{own}/bin:{Path(sys.executable).parent}:/usr/bin:/bin"
    variables = {"HOME": str(job.folder), "PATH": path, "VIRTUAL_ENV": str(own)}
    return {**variables, "JAXSIGHT_SERVER": os.environ["JAXSIGHT_SERVER"]}


WHEEL = {
    "jaxsight.py": "def main():\n    print('installed')\n",
    "jaxsight-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: jaxsight\nVersion: 1\n",
    "jaxsight-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "jaxsight-1.dist-info/entry_points.txt": "[console_scripts]\njaxsight = jaxsight:main\n",
    "jaxsight-1.dist-info/RECORD": "",
}


@pytest.mark.slow
def test_installing_imports_nothing_of_the_checkout(tmp_path: Path) -> None:
    mark, output, wheel = (
        tmp_path / "mark",
        tmp_path / "output",
        tmp_path / "jaxsight-1-py3-none-any.whl",
    )
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in WHEEL.items():
            file.writestr(name, text)
    done = subprocess.run(
        ["bash", ROOT / "action" / "install.sh"],
        cwd=laid(tmp_path / "checkout", mark),
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "ACTION": str(wheel),
            "COMMAND": "",
            "TEMP_FOLDER": str(tmp_path),
            "GITHUB_OUTPUT": str(output),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, sprung(mark)) == (0, "installed\n", []), done.stderr
    assert output.read_text() == f"command={tmp_path}/jaxsight-environment/bin/jaxsight\n"


@pytest.mark.slow
def test_a_hook_checks_the_files_that_are_committed(job: Job) -> None:
    hook, _ = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    folder = job.folder / "project"
    (folder / "notes.py").write_text("x = 1\n")

    def commit(*names: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*shlex.split(hook["entry"]), *names],
            cwd=folder,
            env=hook_environment(job),
            capture_output=True,
            text=True,
            check=False,
        )

    failed = commit("model.py", "notes.py")
    assert failed.returncode == 1
    assert "error[JX401]" in failed.stdout
    assert commit("notes.py").returncode == 0
    assert commit("missing.py").returncode == 1


def test_a_step_that_fails_ends_the_job(job: Job) -> None:
    job.inputs = {**job.inputs, "paths": "missing"}
    assert job.run() == 2
    assert "no such file or folder: missing" in job.log
    assert job.github.comments == []


@pytest.mark.slow
def test_a_pull_request_gets_one_comment_that_later_runs_update(job: Job) -> None:
    project = job.folder / "project"
    (project / "model.py").write_text(BEFORE)
    _, locked = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    env = hook_environment(job)
    for command in (f"jaxsight lock --python {sys.executable}", locked["entry"]):
        subprocess.run(shlex.split(command), cwd=project, env=env, check=True, capture_output=True)
    (project / "model.py").write_text(AFTER)
    assert job.run() == 1, job.log
    assert "::error title=jaxsight (JX401),file=model.py,line=10" in job.log
    [comment] = job.github.comments
    assert comment["body"].startswith(
        "<!-- jaxsight -->\n### ❌ jaxsight diff: 2 of 2 functions differ from "
    )
    assert "| ❌ | `model.py:21 g` | 1 → " in comment["body"]
    assert "accept it with `jaxsight check --locked --update`" in job.log
    sarif = json.loads(Path(job.outputs["check"]["sarif"]).read_text())
    assert [each["ruleId"] for each in sarif["runs"][0]["results"]] == [
        "JX401",
        "JX502",
        "JX502",
    ]

    (project / "model.py").write_text(BEFORE)
    assert job.run() == 0, job.log
    [comment] = job.github.comments
    assert "### ✅ jaxsight diff: 0 of 2 functions differ from " in comment["body"]
    assert [each.split()[0] for each in job.github.requests] == ["GET", "POST", "GET", "PATCH"]


def comment(job: Job, report: str) -> subprocess.CompletedProcess[str]:
    file = job.folder / "report.md"
    file.write_text(report)
    env = {
        "PATH": os.environ["PATH"],
        "GITHUB_API_URL": job.github.address,
        "GITHUB_REPOSITORY": "owner/name",
        "NUMBER": "7",
        "REPORT": str(file),
        "TOKEN": "secret",
    }
    return subprocess.run(
        [sys.executable, str(ROOT / "action" / "comment.py")],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_comment_is_found_among_hundreds_but_not_one_of_a_person(job: Job) -> None:
    mark = "<!-- jaxsight -->"
    others = [{"id": n, "body": mark, "user": {"type": "User"}} for n in range(150)]
    own = {"id": 150, "body": f"{mark}\nold", "user": {"type": "Bot"}}
    job.github.comments = [*others, own]
    comment(job, "new\n")
    assert len(job.github.comments) == 151
    assert job.github.comments[150]["body"] == f"{mark}\nnew\n"
    assert job.github.requests == [
        "GET /repos/owner/name/issues/7/comments?per_page=100&page=1",
        "GET /repos/owner/name/issues/7/comments?per_page=100&page=2",
        "PATCH /repos/owner/name/issues/comments/150",
    ]


def test_a_long_report_is_cut_at_a_line(job: Job) -> None:
    comment(job, "a line of the report\n" * 9_000)
    [written] = job.github.comments
    assert len(written["body"]) < 65_536
    assert written["body"].endswith("a line of the report\n\nand more: see the job's summary\n")


def test_nothing_to_compare_is_no_comment_but_updates_one(job: Job) -> None:
    comment(job, "")
    assert job.github.comments == []
    comment(job, "new\n")
    comment(job, "")
    [written] = job.github.comments
    assert written["body"] == "<!-- jaxsight -->\njaxsight diff: no functions to compare\n"


def test_a_token_that_may_not_write_is_no_error(job: Job) -> None:
    job.github.may_write = False
    done = comment(job, "new\n")
    assert job.github.comments == []
    assert done.stdout.startswith("::notice title=jaxsight::no comment")
