"""The command as a person runs it: its output, its exit status."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rich_click as click

from jaxsight.cli.app import app
from tests.terminal import SERVER, jaxsight

COMMANDS = {
    "Look": ["show", "ask", "kernels", "sourcerize", "sweep", "measure", "profile", "report"],
    "Check": ["check", "lock", "diff", "explain"],
    "Bugs": ["repro"],
    "Data": ["dataset"],
    "Set up": ["targets", "trust", "record", "server", "mcp"],
}
MODEL = '''\
import jax.numpy as jnp


def double(x):
    """Twice.

    Example inputs:
        x: f32[3, B]
        where B=4
    Example inputs (one):
        x: f32[1]
    """
    print("tracing")
    y = x * 2
    return y


def branch(x):
    """
    Example inputs:
        x: f32[]
    """
    if x > 0:
        return x
    return -x


def bare(x):
    return x
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.jaxsight]\npython = {json.dumps(sys.executable)}\n"
    )
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def test_version_is_printed_without_importing_the_engine(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['jaxsight', '--version']\n"
        "from jaxsight.__main__ import main; main()\n"
        "assert not {'click', 'rich', 'pygls', 'asyncio'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split()[0], done.stderr, done.returncode) == ("jaxsight", "", 0)


def test_help_lists_all_commands_without_importing_any(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['jaxsight', '--help']\n"
        "from jaxsight.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('jaxsight.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SERVER), "COLUMNS": "200"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    help, modules = done.stdout.rsplit("\n", 2)[:2]
    own = ["__main__", "cli", "cli.app", "cli.parameters", "extensions"]
    assert sorted(ast.literal_eval(modules)) == [f"jaxsight.{name}" for name in own]
    groups = dict(re.findall(r"╭─ ([\w ]+) ─+╮\n(.*?)╰", help, re.DOTALL))
    assert list(groups) == [*COMMANDS, "Options"]
    listed = {}
    for group, names in COMMANDS.items():
        own_rows = dict(re.findall(r"│ ([a-z]+) +([A-Z][^│]*?) +│", groups[group]))
        assert list(own_rows) == names
        listed |= own_rows
    for name, summary in listed.items():
        assert summary in jaxsight(name, "--help", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    "arguments", [["trust", "--list"], ["explain", "JX207", "--json"], ["explain", "key-reuse"]]
)
def test_short_commands_import_nothing_that_takes_long(arguments: list[str]) -> None:
    code = (
        "import sys; sys.argv = ['jaxsight', *sys.argv[1:]]\n"
        "from jaxsight.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'rich_click.rich_help_rendering', 'asyncio', 'jaxsight.session'} & {*sys.modules}"
    )
    subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def _commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and those below it, with their names."""
    yield " ".join(names), command
    for below, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, *names, below)


def _all_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(app)
    for name in app.list_commands(context):
        resolved = app.resolve_command(context, [name])[1]
        assert resolved is not None
        yield from _commands(resolved, name)


def test_no_default_is_out_of_the_range_of_its_option() -> None:
    """click refuses such a default where the option is not given."""
    ranges = 0
    for name, command in _all_commands():
        for option in command.params:
            if isinstance(option.type, click.IntRange | click.FloatRange):
                ranges += 1
                if option.default is not None:
                    assert option.type.min is not None
                    assert option.default >= option.type.min, (name, option.name)
    assert ranges > 5


def test_help_calls_arguments_by_the_names_of_the_usage_and_lists_their_choices(
    tmp_path: Path,
) -> None:
    for name, command in _all_commands():
        arguments = [each for each in command.params if isinstance(each, click.Argument)]
        if not arguments or getattr(command, "commands", {}):
            continue
        help = jaxsight(*name.split(), "--help", cwd=tmp_path).stdout
        usage, _, rest = help.partition("─ Arguments ─")
        panel, _, options = rest.partition("─ Options ─")
        assert not re.search(r"\.{4}|…\.", usage), name
        assert '[default: ""]' not in options, name
        for argument in arguments:
            called = argument.make_metavar(click.Context(command))
            assert called in usage
            row = re.search(rf"│[* ]+{re.escape(called)} +(.*)│", panel)
            assert row is not None, (name, called)
            assert all(each in row[1] for each in getattr(argument.type, "choices", ())), name


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("kernels",), "Missing argument 'FILE:FUNCTION'."),
        (("sweep",), "Missing argument 'FILE:FUNCTION|SIZE=VALUES...'."),
        (("dataset", "questions", "kernels", "."), "Missing option '--output' / '-o'."),
    ],
)
def test_what_is_missing_of_a_command_line_is_named(
    arguments: tuple[str, ...], missing: str, tmp_path: Path
) -> None:
    done = jaxsight(*arguments, cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("", 2)
    assert missing in done.stderr


@pytest.mark.parametrize("command", ["show", "sourcerize", "check", "server"])
def test_help_names_the_options_and_gives_examples(command: str, tmp_path: Path) -> None:
    done = jaxsight(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "--help" in done.stdout
    assert command == "server" or f"jaxsight {command} " in done.stdout


def test_show_prints_signature_and_jaxpr(project: Path) -> None:
    done = jaxsight("show", "model.py:double", cwd=project)
    assert done.returncode == 0, done.stderr
    signatures = "double(x: f32[3,B]) -> f32[3,B]\ndouble(x: f32[3,4]) -> f32[3,4]\n"
    assert done.stdout.startswith(signatures)
    assert "{ lambda ; a:f32[3,4]. let" in done.stdout


def test_what_user_code_prints_goes_to_stderr_after_the_files_name(project: Path) -> None:
    done = jaxsight("show", "model.py:double", cwd=project, fresh=True)
    assert "tracing" not in done.stdout
    assert f"{project / 'model.py'}: tracing\n" in done.stderr


def test_show_takes_the_set_that_is_named(project: Path) -> None:
    done = jaxsight("show", "model.py:double", "--set", "one", "--json", cwd=project)
    shown = json.loads(done.stdout)
    assert (shown["set"], shown["outputs"], shown["parameters"]) == (
        "one",
        "f32[1]",
        [{"name": "x", "value": "f32[1]"}],
    )


def test_show_names_the_sets_when_there_is_no_such_one(project: Path) -> None:
    done = jaxsight("show", "model.py:double", "--set", "two", cwd=project)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "named 'two'; it has an unnamed set, 'one'" in " ".join(done.stderr.split())


def test_show_names_the_option_that_prints_a_whole_jaxpr(project: Path) -> None:
    inputs = '    """\n    Example inputs:\n        x: f32[3]\n    """\n'
    body = "    x = x * x\n" * 30
    (project / "long.py").write_text(f"def f(x):\n{inputs}{body}    return x\n")
    shown = jaxsight("show", "long.py:f", "--what", "hover", cwd=project).stdout
    assert shown.endswith("folded; `--what jaxpr` prints the whole jaxpr\n")


def test_show_shapes_prints_the_source_with_its_shapes(project: Path) -> None:
    done = jaxsight("show", "model.py:double", "--what", "shapes", cwd=project)
    lines = done.stdout.splitlines()
    assert lines[0].split("#") == ["def double(x):  ", " x: f32[3,B]"]
    assert lines[-3].split("#") == ["    y = x * 2   ", " y: f32[3,B]"]
    assert lines[-1] == "-> f32[3,B]"


def test_show_jaxpr_prints_the_whole_jaxpr_and_nothing_else(project: Path) -> None:
    done = jaxsight("show", "model.py:double", "--what", "jaxpr", cwd=project)
    assert done.stdout.startswith("{ lambda ; a:f32[3,4]. let")
    assert done.stdout.endswith("}\n")


def test_show_of_a_function_that_fails_is_a_report_and_exit_status_1(project: Path) -> None:
    done = jaxsight("show", "model.py:branch", cwd=project)
    assert done.returncode == 1
    assert done.stdout.startswith("error[JX401]: ")
    assert "    if x > 0:\n   |        ^^^^^\n" in done.stdout


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("modle.py:double", "no such file: modle.py; did you mean model.py?"),
        ("model.py:doubel", "no function doubel in model.py; did you mean double?"),
        (
            "model.py",
            "missing function: write model.py:FUNCTION; functions: double, branch, bare",
        ),
        (
            "model.py:bare",
            "bare: no example inputs, and proposed ones compute nothing from arrays; add a section",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_clear_line_and_exit_status_2(
    project: Path, address: str, said: str
) -> None:
    done = jaxsight("show", address, cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {said}" in done.stderr
    assert done.stderr.count("error: ") == 1


def test_example_inputs_that_are_not_understood_are_told_where_they_stand(project: Path) -> None:
    text = 'def {}(x):\n    """\n    Example inputs:\n        x: f31[8]\n    """\n    return x\n'
    (project / "typos.py").write_text(text.format("one") + text.format("two"))
    done = jaxsight("kernels", "typos.py:two", cwd=project)
    assert done.returncode == 2
    assert done.stderr.endswith("error: the example inputs of two have errors\n")
    assert "typos.py:10:12" in done.stdout
    assert "typos.py:4:12" not in done.stdout


def test_an_interpreter_without_jax_is_named_with_the_way_out(
    project: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    python = str(bare / "bin" / "python")
    done = jaxsight("show", "model.py:double", "--python", python, cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert python in done.stderr
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr


def test_sourcerize_prints_a_module_that_holds_the_function(project: Path) -> None:
    done = jaxsight("sourcerize", "model.py:double", cwd=project, fresh=True)
    assert done.returncode == 0
    assert "tracing" in done.stderr
    namespace: dict[str, Any] = {}
    exec(done.stdout, namespace)
    assert namespace["double"](np.ones((3, 4), np.float32)).sum() == 24


def test_sourcerize_takes_a_set_a_style_and_a_transformation(project: Path) -> None:
    options = ["--set", "one", "--style", "pretty", "--transform", "vmap", "--json"]
    done = jaxsight("sourcerize", "model.py:double", *options, cwd=project)
    shown = json.loads(done.stdout)
    assert done.returncode == 0
    assert (shown["function"], shown["set"], shown["style"]) == ("double", "one", "pretty")
    assert (shown["transform"], shown["verified"], shown["equations"]) == ("vmap", True, 1)
    assert "def double_vmap(x):" in shown["source"]
    (link,) = shown["links"]
    assert link["location"] == {"row": 14, "column": 9}
    assert "*" in shown["source"].splitlines()[link["row"] - 1] or "mul" in shown["source"]


SCOPED = """\
import jax
import jax.numpy as jnp


def model(x):
    \"\"\"Normal.

    Example inputs:
        x: f32[3]
    \"\"\"
    with jax.named_scope("norm"):
        return jnp.where(x > 0, x, 0.5)
"""


def test_sourcerize_keeps_scopes_and_writes_jitted_functions_in_place(tmp_path: Path) -> None:
    (tmp_path / "scoped.py").write_text(SCOPED, encoding="utf-8")
    done = jaxsight("sourcerize", "scoped.py:model", "--inline", "--scopes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'with jax.named_scope("norm"):' in done.stdout
    assert "jax.jit" not in done.stdout
    done = jaxsight("sourcerize", "scoped.py:model", cwd=tmp_path)
    assert "named_scope" not in done.stdout
    assert "jax.jit" in done.stdout


def test_sourcerize_writes_into_a_file(project: Path) -> None:
    done = jaxsight("sourcerize", "model.py:double", "--output", "out.py", cwd=project)
    assert (done.returncode, done.stdout) == (0, "")
    assert "def double(x):" in (project / "out.py").read_text()
    done = jaxsight("sourcerize", "model.py:double", "-o", "no/such/out.py", cwd=project)
    assert done.returncode == 2
    assert done.stderr.endswith("out.py: No such file or directory\n")


@pytest.fixture
def holding(project: Path) -> Path:
    """A project with a function that holds a large array."""
    (project / "holding.py").write_text(
        "import jax.numpy as jnp, numpy as np\n"
        "TABLE = jnp.asarray(np.random.default_rng(0).normal(size=(600, 500)))\n\n"
        "def dense(x):\n"
        '    """Example inputs: x: f32[600]"""\n'
        "    h = x @ TABLE\n"
        "    return h * 2\n"
    )
    return project


def test_sourcerize_writes_arrays_into_a_file_beside_the_source(holding: Path) -> None:
    options = ["--constants", "npz", "--output", "out.py"]
    done = jaxsight("sourcerize", "holding.py:dense", *options, cwd=holding)
    assert (done.returncode, done.stdout) == (0, "")
    assert (holding / "out.npz").stat().st_size > 1_000_000
    made = runpy.run_path(str(holding / "out.py"))["dense"]
    assert made(np.zeros(600, np.float32)).shape == (500,)


@pytest.mark.slow
def test_sourcerize_asks_where_arrays_go_that_fit_nowhere(holding: Path) -> None:
    done = jaxsight("sourcerize", "holding.py:dense", "--constants", "inline", cwd=holding)
    assert (done.returncode, done.stdout) == (1, "")
    assert "1,200,000 bytes" in done.stderr
    assert "--constants" in done.stderr
    done = jaxsight("sourcerize", "holding.py:dense", "--constants", "npz", cwd=holding)
    assert (done.returncode, done.stdout) == (2, "")
    assert "requires --output" in done.stderr
    done = jaxsight("sourcerize", "holding.py:dense", cwd=holding)
    assert "def dense(x, *, constant):" in done.stdout


def test_sourcerize_comments_on_types_and_on_the_source(holding: Path) -> None:
    options = ["--shapes", "--sources", "--constants", "argument"]
    done = jaxsight("sourcerize", "holding.py:dense", *options, cwd=holding)
    assert "    # h = x @ TABLE\n" in done.stdout
    assert "  # f32[500]\n" in done.stdout


def test_sourcerize_checks_without_printing_source(project: Path) -> None:
    done = jaxsight("sourcerize", "model.py:double", "--check", cwd=project)
    assert done.returncode == 0
    assert done.stdout == (
        "double: the source is the same program, 1 equation"
        " (run eagerly, under jit, under grad with equal results)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["model.py:nothing"], 2, "no function nothing"),
        (["model.py:bare"], 2, "bare: no example inputs"),
        (["model.py:double", "--transform", "grad"], 1, "tracing grad(double) failed"),
        (["model.py:double", "--style", "poetry"], 2, "poetry"),
        (["model.py:branch"], 1, "error[JX401]"),
    ],
)
def test_sourcerize_says_why_there_is_no_source(
    arguments: list[str], status: int, words: str, project: Path
) -> None:
    done = jaxsight("sourcerize", *arguments, cwd=project)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interpreter_that_does_not_exist_is_named(project: Path) -> None:
    done = jaxsight("check", "--python", "no/such/python", cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no/such/python" in done.stderr
    assert "option `--python`" in done.stderr
    assert "jaxsight.python" not in done.stderr


def test_the_note_names_the_option_that_chose_the_interpreter(project: Path) -> None:
    done = jaxsight("show", "model.py:double", "--python", sys.executable, cwd=project)
    assert f"note: Python: {sys.executable} (`--python`)\n" in done.stderr
    told = jaxsight("show", "model.py:double", "--json", "--python", sys.executable, cwd=project)
    assert json.loads(told.stdout)["python"] == {"path": sys.executable, "reason": "`--python`"}


def test_check_reports_and_counts_findings(project: Path) -> None:
    done = jaxsight("check", cwd=project)
    assert done.returncode == 1
    assert "error[JX401]: " in done.stdout
    assert done.stdout.endswith("1 finding: examined 2 of 2 functions (2 docstring) in 1 file.\n")


def test_check_without_findings_says_so_and_exits_with_0(project: Path) -> None:
    done = jaxsight("check", "--ignore", "JX4", cwd=project)
    assert done.returncode == 0
    note, _, summary = done.stdout.splitlines()
    assert re.fullmatch(
        r"note: model\.py:18: `branch` is not compiled for \w+: "
        r"tracing fails \(JX401, line 23\)",
        note,
    )
    assert summary == "No findings: examined 2 of 2 functions (2 docstring) in 1 file."


def test_per_file_ignores_of_the_project_leave_findings_out(project: Path) -> None:
    with (project / "pyproject.toml").open("a") as settings:
        settings.write('per-file-ignores = { "model.py" = ["JX40"] }\n')
    assert jaxsight("check", cwd=project).returncode == 0


def test_check_does_not_fail_for_information(project: Path) -> None:
    (project / "noted.py").write_text(
        "import jax.numpy as jnp\nfrom jaxtyping import Array, Float\n\n"
        'def f(x: Float[Array, "3"]):\n    return jnp.sin(x) + missing\n'
    )
    done = jaxsight("check", "noted.py", cwd=project)
    assert "information[JX400]" in done.stdout
    assert done.returncode == 0


@pytest.mark.slow
def test_check_writes_json_alone_to_stdout_and_other_formats_to_files(project: Path) -> None:
    reports = ("--report", "gitlab:quality.json", "--report", "junit:junit.xml")
    done = jaxsight("check", "model.py", "--output-format", "json", *reports, cwd=project)
    [issue] = json.loads((project / "quality.json").read_text())
    assert issue["location"] == {"path": "model.py", "lines": {"begin": 23}}
    assert '<failure message="' in (project / "junit.xml").read_text()
    [found, refused, examined] = json.loads(done.stdout)
    assert (examined["code"], examined["origins"]) == ("examined", {"docstring": 2})
    assert (refused["code"], refused["function"]) == ("not-compiled", "branch")
    assert (found["code"], found["filename"]) == ("JX401", str(project / "model.py"))
    assert found["location"] == {"row": 23, "column": 8}
    assert found["end_location"] == {"row": 23, "column": 13}


@pytest.mark.parametrize(
    ("report", "error"),
    [("sarif", "no file in 'sarif'"), ("pdf:a.pdf", "unknown format 'pdf'")],
)
def test_a_report_that_cannot_be_written_is_refused(project: Path, report: str, error: str) -> None:
    done = jaxsight("check", "--report", report, cwd=project)
    assert done.returncode == 2
    assert error in done.stderr


def test_check_reports_settings_and_syntax_as_well(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        f"[tool.jaxsight]\npython = {json.dumps(sys.executable)}\nsizes = 3\n"
    )
    (project / "model.py").write_text("def f(:\n    pass\n")
    done = jaxsight("check", "--output-format", "json", cwd=project)
    assert done.returncode == 1
    found = {
        (Path(one["filename"]).name, one["code"], one["location"]["row"])
        for one in json.loads(done.stdout)
    }
    assert found == {("model.py", "invalid-syntax", 1), ("pyproject.toml", "JX900", 3)}


def test_a_code_that_does_not_exist_is_refused(project: Path) -> None:
    done = jaxsight("check", "--select", "JX7", cwd=project)
    assert done.returncode == 2
    assert 'unknown rule "JX7"' in done.stderr


def test_colours_are_for_terminals_only(project: Path) -> None:
    done = jaxsight("check", cwd=project)
    assert "\x1b[" not in done.stdout + done.stderr


OTHER_PYTHON = os.environ.get("JAXSIGHT_OTHER_PYTHON", "")


@pytest.mark.skipif(not OTHER_PYTHON, reason="JAXSIGHT_OTHER_PYTHON names no second interpreter")
def test_the_server_runs_on_one_python_and_the_tracer_on_another(tmp_path: Path) -> None:
    (tmp_path / "which.py").write_text(
        'import sys\n\n\ndef f(x):\n    """\n    Example inputs:\n        x: f32[2]\n    """\n'
        "    print(sys.version_info[:2])\n    return x\n"
    )
    done = jaxsight("show", "which.py:f", "--python", OTHER_PYTHON, cwd=tmp_path)
    assert done.stdout.startswith("f(x: f32[2]) -> f32[2]")
    version = subprocess.run(
        [OTHER_PYTHON, "-c", "import sys; print(sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert version != str(sys.version_info[:2])
    assert f"which.py: {version}" in done.stderr


FUSED = '''\
import jax.numpy as jnp


def total(x):
    """
    Example inputs:
        x: f32[131072, 2]
    """
    k = jnp.stack((jnp.arange(len(x)), jnp.arange(len(x))), axis=-1)
    return x * 2 + jnp.sum(k * x, axis=1, keepdims=True)


def written_out(x):
    """
    Example inputs:
        x: f32[131072, 2]
    """
    k = jnp.stack((jnp.arange(len(x)), jnp.arange(len(x))), axis=-1)
    return x * 2 + (k[:, 0] * x[:, 0] + k[:, 1] * x[:, 1])[:, None]
'''


def test_kernels_as_json_have_what_programs_need(project: Path) -> None:
    (project / "fused.py").write_text(FUSED)
    done = jaxsight("kernels", "fused.py:total", "--target", "cpu", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["function"], told["target"], told["kernel_count"]) == ("total", "cpu", 2)
    assert told["launch_count"] == 2
    assert told["temp_bytes"] > 0
    assert told["loops"] == []
    assert told["estimate_seconds"] is None
    assert told["estimate_is_lower_bound"] is None
    first, last = told["kernels"]
    assert first["ends_because"] == "reduction"
    assert last["ends_because"] == "output"
    assert last["lines"][-1] == 10
    keys = {"name", "kind", "ends_because", "equations", "lines", "bytes_in", "bytes_out"}
    assert keys <= first.keys()
    assert min(told[f"{stage}_seconds"] for stage in ("trace", "lower", "compile")) > 0
    lines = {each["line"]: each["equations"] for each in told["equations_by_line"]}
    assert set(lines) <= {9, 10}
    assert sum(lines.values()) == told["equation_count"]


SHARDED = """\
import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def f(x, w):
    \"\"\"
    Example inputs:
        x: f32[64, 256]
        w: f32[256, 512]
    Expect (cpu:8): kernels <= 0
    \"\"\"
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "model")))
    return (x @ w).sum()
"""


KERNEL = '''\
from jax.experimental import pallas as pl


def double(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2


def large(x):
    """
    Example inputs:
        x: f32[65536, 1024]
    """
    spec = pl.BlockSpec((2048, 1024), lambda i: (i, 0))
    return pl.pallas_call(double, x, grid=(32,), in_specs=[spec], out_specs=spec)(x)
'''


def test_kernels_as_json_have_the_blocks_where_the_compiler_is_missing(project: Path) -> None:
    (project / "kernel.py").write_text(KERNEL)
    arguments = ("kernels", "kernel.py:large", "--target", "tpu:v5e")
    none = {"cwd": project, "JAXSIGHT_COMPILERS": str(project / "none")}
    done = jaxsight(*arguments, "--target", "cpu", "--json", **none)
    missing, refused = json.loads(done.stdout)
    assert done.returncode == 1
    assert "is not installed" in missing["error"]
    (kernel,) = missing["pallas_kernels"]
    assert (kernel["grid"], kernel["vmem_bytes"]) == ([32], 32 << 20)
    assert (refused["target"], refused["pallas_kernels"][0]["vmem_bytes"]) == ("cpu", None)
    table = jaxsight(*arguments, **none).stdout
    assert "VMEM 32 MiB of 16 MiB (estimated to be too much), SMEM 0 B of 1 MiB" in table


def test_kernels_of_several_devices_as_json_say_whose_figures_they_are(project: Path) -> None:
    (project / "sharded.py").write_text(SHARDED)
    done = jaxsight("kernels", "sharded.py:f", "-t", "cpu:8", "--json", cwd=project)
    record = json.loads(done.stdout)
    assert (record["target"], record["devices"], record["per_device"]) == ("cpu:8", 8, True)
    assert record["meshes"] == [{"axes": {"data": 2, "model": 4}, "devices": list(range(8))}]
    moved = sum(each["bytes"] * each["runs"] for each in record["collectives"])
    assert record["moved_bytes"] == record["moved_bytes_at_least"] == moved > 0
    assert record["moved_bytes_known"]
    assert record["communication_seconds"] is None
    arguments = {each["name"]: each for each in record["shardings"]["arguments"]}
    assert arguments["x"] == {
        "name": "x", "type": "f32[64,256]", "spec": [[], ["model"]], "unreduced": []
    }  # fmt: skip
    assert [each["spec"] for each in record["shardings"]["results"]] == [[]]
    for collective in record["collectives"]:
        assert collective["kind"] == "all-reduce"
        assert collective["axes"] == ["model"]
        assert collective["groups"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert collective["lines"] == [15]
        assert collective["inserted"]


def test_check_takes_a_target(project: Path) -> None:
    (project / "sharded.py").write_text(SHARDED.replace("Expect (cpu:8)", "Expect"))
    done = jaxsight("check", "sharded.py", "--target", "cpu:8", "--select", "JX501", cwd=project)
    assert done.returncode == 1
    assert "error[JX501]: expected kernels <= 0 on cpu:8, got " in done.stdout
    wrong = jaxsight("check", "sharded.py", "--target", "cpu:many", cwd=project)
    assert wrong.returncode == 2
    assert "unknown target 'cpu:many'" in wrong.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.slow
def test_the_estimate_of_a_program_is_a_lower_bound_where_a_kernel_has_none(project: Path) -> None:
    (project / "solved.py").write_text(
        "import jax.numpy as jnp\n\n\n"
        "def solved(a):\n"
        '    """\n    Example inputs:\n        a: f32[64, 64]\n    """\n'
        "    return jnp.linalg.cholesky(a)\n"
    )
    done = jaxsight("kernels", "solved.py:solved", "--target", "cuda:h100", cwd=project)
    assert done.returncode == 0, done.stdout
    total = r"^total ≥ \d+\.\d µs \(no estimate for kernel 2\)$"
    assert re.search(total, done.stdout, re.MULTILINE)


def test_kernels_by_module_are_sums(project: Path) -> None:
    source = FUSED + (
        "\n\ndef both(x):\n"
        '    """\n    Example inputs:\n        x: f32[131072, 2]\n    """\n'
        "    return jnp.sort(total(x), axis=0) + jnp.sort(written_out(x), axis=0)\n"
    )
    (project / "both.py").write_text(source)
    done = jaxsight("kernels", "both.py:both", "--by-module", "-t", "cpu", cwd=project)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert rows["module"] == ["kernels", "launches", "in", "+", "out"]  # a CPU has no estimates
    count = sum(int(rows[name][0]) for name in ("total", "written_out", "both"))
    assert f"▣ both: {count} kernels" in done.stdout
    assert "fusion boundary" not in done.stdout


def test_kernels_of_one_function_are_one_row_by_module(project: Path) -> None:
    (project / "fused.py").write_text(FUSED)
    done = jaxsight("kernels", "fused.py:total", "--by-module", "-t", "cpu", cwd=project)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["total", "2", "2", "4", "MiB"] in rows, done.stdout


def test_kernels_are_compared(project: Path) -> None:
    (project / "fused.py").write_text(FUSED)
    arguments = ("kernels", "fused.py:written_out", "--against", "fused.py:total", "-t", "cpu")
    done = jaxsight(*arguments, cwd=project)
    assert done.returncode == 0, done.stderr
    assert "▣ written_out: 1 kernel · 1 launch · temp 0 B · cpu" in done.stdout
    assert "kernels 2 → 1 · launches 2 → 1 · temp 1 MiB → 0 B" in done.stdout


def test_kernels_are_drawn_as_svg(project: Path) -> None:
    (project / "fused.py").write_text(FUSED)
    arguments = ("kernels", "fused.py:total", "-t", "cpu", "--svg")
    done = jaxsight(*arguments, cwd=project, PATH="/nowhere")  # no program draws it
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<svg")
    assert "<title>total: 2 kernels · 2 launches · temp 1 MiB · cpu</title>" in done.stdout
    assert ">jnp.sum(" in done.stdout


def test_targets_are_listed_with_what_they_need(project: Path) -> None:
    done = jaxsight("targets", "--json", cwd=project)
    told = {each["target"]: each for each in json.loads(done.stdout)}
    assert told["cpu"]["state"] == "ready"
    assert {"cuda:h100", "cuda:a100", "tpu:v5e", "tpu:7x"} <= told.keys()
    several = {name: told[name]["several"] for name in ("cpu", "cuda:h100", "tpu:v5e", "tpu:7x")}
    assert several == {
        "cpu": "cpu:8", "cuda:h100": "cuda:h100x8", "tpu:v5e": "tpu:v5e:2x4",
        "tpu:7x": "tpu:7x:2x2x1",
    }  # fmt: skip
    assert all(each["state"] in ("ready", "needs", "cannot") for each in told.values())
    assert all(each["detail"] for each in told.values())


def test_a_wrong_target_is_told_with_the_nearest(project: Path) -> None:
    (project / "fused.py").write_text(FUSED)
    done = jaxsight("kernels", "fused.py:total", "--target", "cuda:h10", cwd=project)
    assert done.returncode == 2
    assert "unknown target 'cuda:h10'; did you mean cuda:h100" in done.stderr


def test_a_target_that_is_not_installed_says_what_installs_it(project: Path) -> None:
    (project / "fused.py").write_text(FUSED)
    none = str(project / "compilers")
    done = jaxsight(
        "kernels", "fused.py:total", "--target", "tpu:v5e", cwd=project, JAXSIGHT_COMPILERS=none
    )
    assert done.returncode == 1
    assert "jaxsight targets install tpu" in done.stdout
    listed = jaxsight("targets", cwd=project, JAXSIGHT_COMPILERS=none).stdout
    assert re.search(r"tpu:v5e +TPU v5e +needs +`jaxsight targets install tpu`, about", listed)


def test_check_fails_on_a_broken_contract(project: Path) -> None:
    text = FUSED.replace("f32[131072, 2]\n", "f32[131072, 2]\n    Expect (cpu): kernels <= 1\n")
    (project / "fused.py").write_text(text)
    done = jaxsight("check", "fused.py", "--output-format", "json", cwd=project)
    assert done.returncode == 1
    (found,) = [each for each in json.loads(done.stdout) if each["code"] == "JX501"]
    assert found["message"] == "expected kernels <= 1 on cpu, got 2"


def test_kernels_are_compared_with_a_git_revision(project: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=project, check=True, capture_output=True)

    (project / "fused.py").write_text(FUSED)
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    slow = FUSED.split("def written_out")[0]
    fast = FUSED.split("def written_out")[1].split("k = ")[1]
    (project / "fused.py").write_text(slow.split("    k = ")[0] + "    k = " + fast)
    done = jaxsight("kernels", "fused.py:total", "--against", "HEAD", "-t", "cpu", cwd=project)
    assert "kernels 2 → 1" in done.stdout, done.stderr
    done = jaxsight("kernels", "fused.py:total", "--against", "nowhere", "-t", "cpu", cwd=project)
    assert done.returncode == 2
    assert "cannot read fused.py at nowhere" in done.stderr


FIXABLE = '''\
import jax
import jax.numpy as jnp


def root(x):
    """
    Example inputs:
        x: f32[8]
    """
    return jnp.where(x > 0, jnp.sqrt(x), 0.0) + jnp.where(x > 1, jnp.log(x), 0.0)


def draws(key):
    """
    Example inputs:
        key: key<fry>[]
    """
    return jax.random.normal(key) + jax.random.uniform(key)
'''

FIXED = FIXABLE.replace(
    "    return jnp.where(x > 0, jnp.sqrt(x), 0.0) + jnp.where(x > 1, jnp.log(x), 0.0)",
    """\
    safe = jnp.where(x > 0, x, 1.0)
    safe_2 = jnp.where(x > 1, x, 1.0)
    return jnp.where(x > 0, jnp.sqrt(safe), 0.0) + jnp.where(x > 1, jnp.log(safe_2), 0.0)""",
)


@pytest.mark.slow
def test_check_fixes_what_is_proved_and_leaves_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_bytes(FIXABLE.replace("\n", "\r\n").encode())
    done = jaxsight("check", "model.py", "--fix", cwd=tmp_path)
    assert file.read_bytes() == FIXED.replace("\n", "\r\n").encode()
    first, second, summary, *_ = done.stdout.splitlines()
    assert first.startswith("model.py:10: JX405 Guard `x` with a second `where`")
    assert second.startswith("model.py:11: JX405 Guard `x` with a second `where`")
    assert summary == "Fixed 2 findings. 1 hidden fix can be enabled with --unsafe-fixes."
    assert "JX403" in done.stdout
    assert done.returncode == 1, "what is left is reported"


def test_check_fixes_what_changes_values_when_it_is_told_to(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(FIXABLE)
    done = jaxsight("check", "--select", "JX403", "--output-format", "json", cwd=tmp_path)
    finding, _ = json.loads(done.stdout)
    assert finding["fix"]["applicability"] == "unsafe"
    assert finding["fix"]["message"].startswith("Split `key` into 2 keys")
    assert len(finding["fix"]["edits"]) == 3
    done = jaxsight(
        "check", "--unsafe-fixes", "--select", "JX403", "--output-format", "json", cwd=tmp_path
    )
    assert "key_1, key_2 = jax.random.split(key)" in file.read_text()
    assert [one["code"] for one in json.loads(done.stdout)] == ["examined"]
    assert "model.py:18: JX403 Split `key` into 2 keys" in done.stderr
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "kernels", "ask"])
def test_a_function_of_the_text_on_stdin_is_that_of_the_named_file(
    project: Path, command: str
) -> None:
    named = ["--stdin-filename", "model.py:double", "--json"]
    text = MODEL.replace("x * 2", "x @ jnp.ones((4, 5))")
    done = jaxsight(command, "-", *named, cwd=project, input=text)
    assert json.loads(done.stdout)["function"] == "double", done.stderr
    if command == "show":
        assert "f32[3,5]" in json.loads(done.stdout)["outputs"]
    refused = jaxsight(command, "model.py:double", *named, cwd=project)
    assert "`-` and --stdin-filename FILE:FUNCTION require each other" in refused.stderr


def test_a_command_whose_package_is_missing_is_not_listed() -> None:
    code = (
        "import sys; sys.modules['jaxsight_dataset'] = None\n"
        "sys.argv = ['jaxsight', *sys.argv[1:]]\n"
        "from jaxsight.__main__ import main\n"
        "main()"
    )
    help = subprocess.run(
        [sys.executable, "-c", code, "--help"],
        env={**os.environ, "PYTHONPATH": str(SERVER), "COLUMNS": "200"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    assert " repro " in help
    assert " dataset " not in help
