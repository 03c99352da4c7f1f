"""Targets by name, and the interpreters that compile for them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from jaxsight.settings.schema import Settings
from jaxsight.targets.target import UnknownTarget, names, parse
from jaxsight.wire.messages.requests import FakeDevice
from jaxsight.workers.compilation import environments, installation
from jaxsight.workers.compilation.environments import CompilerEnvironment, identity
from jaxsight.workers.compilation.installation import InstallError


@pytest.mark.parametrize(
    ("text", "name", "short"),
    [
        ("cpu", "cpu", "cpu"),
        (" CUDA:H100 ", "cuda:h100", "h100"),
        ("gpu", "cuda", "cuda"),
        ("tpu:trillium", "tpu:v6e", "v6e"),
        ("tpu:v7x", "tpu:7x", "7x"),
        ("ssh://lab", "ssh://lab/cuda", "cuda@lab"),
        ("ssh://me@lab.example/tpu:v5e", "ssh://me@lab.example/tpu:v5e", "v5e@me@lab.example"),
    ],
)
def test_a_target_has_one_name(text: str, name: str, short: str) -> None:
    assert (parse(text).name, parse(text).short) == (name, short)
    assert parse(parse(text).name) == parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuda:h10", "did you mean cuda:h100"),
        ("tpu:v5", "did you mean tpu:v5"),
        ("quantum", "use one of cpu, cuda, rocm, tpu, cuda:v100"),
        ("ssh://", "has no host"),
        ("ssh://-oProxyCommand=x/cpu", "has no host"),
        ("ssh://a/ssh://b", "has more than one host"),
    ],
)
def test_a_wrong_name_is_told_with_the_nearest(text: str, message: str) -> None:
    with pytest.raises(UnknownTarget, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("h100", "cuda:h100"),
        ("H100x8", "cuda:h100x8"),
        ("v5e", "tpu:v5e"),
        ("v5e:4x4", "tpu:v5e:4x4"),
        ("trillium", "tpu:v6e"),
        ("cpu:8", "cpu:8"),
        ("cuda:h100x8", "cuda:h100x8"),
        ("ssh://lab/cuda:h100x8", "ssh://lab/cuda:h100x8"),
    ],
)
def test_the_platform_of_a_chip_may_be_left_out(text: str, name: str) -> None:
    assert parse(text).name == name


def test_a_pattern_without_a_number_of_devices_matches_any_number() -> None:
    settings = Settings(per_target_ignores={"h100": ("JX409",), "tpu:*": ("JX305",)})
    for name in ("cuda:h100", "cuda:h100x8", "ssh://lab/cuda:h100x8"):
        assert settings.ignored_on(parse(name)) == ("JX409",)
    assert settings.ignored_on(parse("tpu:v5e:4x4")) == ("JX305",)
    eight = Settings(per_target_ignores={"h100x8": ("JX409",)})
    assert eight.ignored_on(parse("cuda:h100x8")) == ("JX409",)
    assert eight.ignored_on(parse("cuda:h100")) == ()


def test_every_chip_can_be_described() -> None:
    for name in names():
        chip = parse(name).chip
        if chip is not None and chip.platform == "cuda":
            text = chip.specification()  # type: ignore[union-attr]
            assert text.count("{") == text.count("}")
        if chip is not None:
            assert 1e11 < chip.bandwidth < 1e13
            assert all(1e12 < rate < 1e16 for rate in chip.peak.values())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JAXSIGHT_COMPILERS", str(tmp_path))
    return tmp_path


def there(home: Path, jax: str, platform: str = "cuda") -> CompilerEnvironment:
    folder = home / f"{platform}-{jax}-py3.11"
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()  # any file will do for an interpreter
    made = CompilerEnvironment(platform, str(python), jax, str(folder))
    told = {"platform": platform, "python": str(python), "jax": jax, "folder": str(folder)}
    (folder / "jaxsight.json").write_text(json.dumps(told))
    return made


def test_the_same_version_compiles_else_the_nearest_later_one(home: Path) -> None:
    nine, twelve = there(home, "0.9.2"), there(home, "0.12.0.1")
    there(home, "0.11.0", "tpu")
    assert environments.suiting("cuda", "0.9.2") == nine
    assert environments.suiting("cuda", "0.8.0") == nine
    assert environments.suiting("cuda", "0.10.2") == twelve
    assert environments.suiting("cuda", "0.13.0") is None


def test_an_environment_that_is_half_made_is_none(home: Path) -> None:
    made = there(home, "0.10.2")
    Path(made.folder, "jaxsight.json").write_text('{"platform": "cu')
    assert environments.installed("cuda") == []


def test_a_removed_environment_is_gone(home: Path) -> None:
    installation.remove(there(home, "0.10.2"))
    assert not list(home.iterdir())


def test_a_version_that_does_not_exist_is_told_and_leaves_nothing_that_is_used(home: Path) -> None:
    steps: list[str] = []
    failing = home / "python"
    failing.write_text(
        '#!/bin/sh\n[ "$1 $2" = "-I -c" ] && echo py3.11 && exit\n[ "$3" != venv ] && exit 1\n'
        'mkdir -p "$4/bin"\necho "#!/bin/sh\necho no matching distribution; exit 1" > "$4/bin/python"\n'
        'chmod +x "$4/bin/python"\n'
    )
    failing.chmod(0o755)
    with pytest.raises(InstallError, match=r"failed to install jax==0\.99\.0: no matching"):
        installation.install("cuda", "0.99.0", str(failing), lambda step, _: steps.append(step))
    assert steps[0].startswith("creating an environment in ")
    assert environments.installed("cuda") == []


WITHOUT_ENSUREPIP = """\
#!/bin/sh
shift
case "$*" in
-c*) echo py3.14 ;;
*" --without-pip")
    mkdir -p "$3/bin"
    printf '#!/bin/sh\\necho 0.12.0\\n' > "$3/bin/python"
    chmod +x "$3/bin/python" ;;
*venv*) printf 'not created successfully because ensurepip is not\\navailable.  On Debian' && exit 1 ;;
*pip*) [ -f {log} ] && echo "$*" >> {log} || {{ echo "No module named pip"; exit 1; }} ;;
esac
"""
"""A Python of Debian without `python3-venv`; it has a pip where there is a log."""


def without_ensurepip(home: Path) -> tuple[Path, Path]:
    log, python = home / "pip.log", home / "python3.14"
    python.write_text(WITHOUT_ENSUREPIP.format(log=log))
    python.chmod(0o755)
    return python, log


def test_without_ensurepip_a_pip_outside_of_the_environment_installs(home: Path) -> None:
    python, log = without_ensurepip(home)
    log.touch()
    made = installation.install("cuda", "0.12.0", str(python), lambda *_: None)
    assert made == CompilerEnvironment(
        "cuda",
        str(home / "cuda-0.12.0-py3.14" / "bin" / "python"),
        "0.12.0",
        str(home / "cuda-0.12.0-py3.14"),
        "jax-cuda13-plugin 0.12.0",
    )
    calls = log.read_text().splitlines()
    assert all(call.startswith(f"-m pip --python {made.python} ") for call in calls)
    assert [call.split()[-1] for call in calls] == [
        "--version", "jax==0.12.0", "jax-cuda13-plugin==0.12.0",
    ]  # fmt: skip


def test_a_python_that_cannot_create_environments_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, _ = without_ensurepip(home)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(InstallError) as told:
        installation.install("cuda", "0.12.0", str(python), lambda *_: None)
    assert str(told.value) == (
        "failed to create the environment: this Python has no `venv` or `pip` "
        "(Debian: python3-venv); choose another interpreter"
    )
    assert sorted(each.name for each in home.iterdir()) == ["cuda-0.12.0-py3.14.lock", "python3.14"]


@pytest.mark.slow
def test_an_index_that_is_not_reached_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(InstallError, match="pip cannot reach its package index"):
        installation.install("tpu", "0.10.2", sys.executable, lambda *_: None)
    assert environments.installed("tpu") == []


def test_what_decides_is_in_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    here = CompilerEnvironment("here", "python", "0.10.2")
    cpu, h100 = parse("cpu"), parse("cuda:h100")
    ours = CompilerEnvironment("cuda", "python", "0.10.2", "/there", "jax-cuda13-plugin 0.10.2")
    older = CompilerEnvironment("cuda", "python", "0.10.2", "/there", "jax-cuda12-plugin 0.10.2")
    found = {identity(here, cpu), identity(ours, h100), identity(older, h100)}
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    found.add(identity(here, cpu))
    assert len(found) == 4


@pytest.mark.parametrize(
    ("target", "seen"),
    [
        ("cpu:8", None),
        ("cuda:h100x8", FakeDevice("cuda", "NVIDIA H100 80GB HBM3", "9.0")),
        ("ssh://far.example/cuda", FakeDevice("cuda")),
        ("rocm", FakeDevice("rocm")),
        # As `topologies.get_topology_desc` of libtpu 0.0.42 describes them.
        ("tpu:v4", FakeDevice("tpu", "TPU v4", cores=1)),
        ("tpu:v5e:4x4", FakeDevice("tpu", "TPU v5 lite", cores=1)),
        ("tpu:v5p", FakeDevice("tpu", "TPU v5", cores=2)),
        ("tpu:v6e", FakeDevice("tpu", "TPU v6 lite", cores=1)),
        ("tpu:7x", FakeDevice("tpu", "TPU7x", cores=1)),
    ],
)
def test_code_sees_the_device_of_a_target(target: str, seen: FakeDevice | None) -> None:
    assert parse(target).device == seen
