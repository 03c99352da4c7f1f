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
from pathlib import Path, PurePath

import pytest

from tests.searches import part
from tests.touched import by, since

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
    parser.addoption(
        "--some-slow",
        action="store_true",
        help="hold those of the slow tests that belong to the day (tests/searches.py)",
    )
    parser.addoption(
        "--touched",
        metavar="REVISION",
        help="leave out what the changes since this revision do not touch",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage."""
    # Modules and items stay for the whole run. To walk them again and again takes a sixth of a
    # collection, and each `gc.collect` of a test would take half a second more.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = [item for item in items if item.get_closest_marker("slow")]
    for item in slow:
        item.user_properties.append(("slow", True))  # for `.ci/summary.py`
    left_out = set[pytest.Item]()
    if config.getoption("--some-slow"):
        left_out |= {*slow} - {*part(slow)}
    if revision := config.getoption("--touched"):
        paths = {item: item.path.relative_to(config.rootpath).as_posix() for item in items}
        touched = by(since(revision), {PurePath(path).parts[1] for path in paths.values()})
        are_slow = {*slow}
        left_out |= {item for item in items if not touched.holds(paths[item], item in are_slow)}
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def cold_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled yet, also where the programs of other runs are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def update_fixtures(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-fixtures"))
