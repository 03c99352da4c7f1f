"""Options and settings that all tests share."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

if (
    importlib.util.find_spec("hypothesis") is not None
):  # not in the environment of the tests in VS Code
    from hypothesis import HealthCheck, settings

    # A busy machine makes no test fail: neither examples that take long to run nor such that take
    # long to make.
    settings.register_profile(
        "any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any speed")

# In the background of a shell, Ctrl-C is ignored, and programs that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What is compiled is kept apart from what the person who runs the tests has compiled; compilers are
# those that `make` installed. The programs alone may outlive a run, in the folder that
# `JAXSIGHT_TEST_CACHE` names: an entry's name is a digest of all that it depends on.
os.environ.setdefault("JAXSIGHT_COMPILERS", str(Path(__file__).parents[1] / ".venvs" / "compilers"))
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="jaxsight-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# Tests run the code of their own folders; those of trust itself (`tests/trust`) say otherwise.
# Nobody's decisions are read or written.
os.environ["JAXSIGHT_TRUST"] = "always"
# Commands run in their own processes; those of the server for commands are in `tests/cli`.
os.environ["JAXSIGHT_SERVER"] = "no"
for _kind in ("STATE", "CONFIG"):
    os.environ[f"XDG_{_kind}_HOME"] = str(Path(os.environ["XDG_CACHE_HOME"], _kind.lower()))
if _kept := os.environ.get("JAXSIGHT_TEST_CACHE"):
    Path(_kept).mkdir(mode=0o700, parents=True, exist_ok=True)
    _folder = Path(os.environ["XDG_CACHE_HOME"], "jaxsight")
    _folder.mkdir(mode=0o700)
    (_folder / "compiled").symlink_to(Path(_kept).absolute(), target_is_directory=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-fixtures",
        action="store_true",
        help="write what is shown now into tests/fixtures instead of comparing",
    )
    parser.addoption(
        "--every-setting",
        action="store_true",
        help="hold functions of libraries and hard programs in each style, with 64-bit types off and on",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage."""
    # Modules and items stay for the whole run: to walk them again and again takes a sixth of a
    # collection. They are not frozen, as Hypothesis asks `gc` what refers to its generator.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture
def cold_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled yet, also where the programs of other runs are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def update_fixtures(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-fixtures"))
