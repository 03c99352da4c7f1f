"""Imports see the editor's text, and what changed is imported anew, with all that imports it."""

import os
import textwrap
import time
from pathlib import Path

import pytest

from tests.tracer.isolation.driver import Driver, paths

USES = "from lib import scale\nTABLE = scale(2.0)\ndef f(x):\n    return scale(x) + TABLE\n"


def test_an_unsaved_text_wins_over_the_disk(tracer: Driver) -> None:
    tracer.write("lib.py", "def scale(x):\n    return x * 3.0\n")
    assert "3.0" in tracer.trace(USES).jaxpr
    tracer.edit("lib.py", "def scale(x):\n    return x * 5.0\n")
    unsaved = tracer.trace(USES).jaxpr
    assert "5.0" in unsaved
    assert "10.0" in unsaved
    tracer.edit("lib.py", None)
    assert "3.0" in tracer.trace(USES).jaxpr


def test_opening_a_file_without_changing_it_executes_nothing(tracer: Driver) -> None:
    tracer.write("lib.py", "def scale(x):\n    return x * 3.0\n")
    tracer.trace(USES)
    tracer.edit("lib.py", "def scale(x):\r\n    return x * 3.0\r\n")
    assert tracer.trace(USES).executed == 0


def test_a_file_that_was_never_saved_can_be_imported(tracer: Driver) -> None:
    tracer.edit("lib.py", "def scale(x):\n    return x * 3.0\n")
    assert "3.0" in tracer.trace(USES).jaxpr
    tracer.edit("lib.py", None)
    assert tracer.fail(USES).failure.type == "ModuleNotFoundError"


def test_a_change_on_disk_is_seen(tracer: Driver) -> None:
    path = tracer.write("lib.py", "def scale(x):\n    return x * 3.0\n")
    first = tracer.trace(USES)
    assert paths(first) == (str(path),)
    # The same size, within the same second: bytecode would not tell them apart.
    tracer.write("lib.py", "def scale(x):\n    return x * 7.0\n")
    assert "7.0" in tracer.trace(USES).jaxpr
    tracer.write("lib.py", "def scale(x):\n    return x * 9.0\n")
    assert "9.0" in tracer.trace(USES).jaxpr


SCALE = "def scale(x):\n    return x * {}.0\n"
FOUND_BEFORE = {
    "a package beside a module": ("lib.py", "lib/__init__.py", USES),
    "a package beside a module of a package": (
        "top/lib.py",
        "top/lib/__init__.py",
        USES.replace("lib", "top.lib"),
    ),
    "a package around a module": ("top/lib.py", "top/__init__.py", USES.replace("lib", "top.lib")),
    "a module beside a folder": ("lib/deep.py", "lib.py", USES.replace("lib", "lib.deep")),
    "a module nearer": ("src/lib.py", "lib.py", USES),
    "a package nearer": ("src/lib/__init__.py", "lib/__init__.py", USES),
    "a module of what fails": ("lib.py", "lib/__init__.py", USES),
}


@pytest.mark.parametrize("change", FOUND_BEFORE)
@pytest.mark.parametrize("on_disk", [True, False])
def test_a_module_that_is_found_before_another_one_is_seen(
    change: str, on_disk: bool, tracer: Driver
) -> None:
    before, after, text = FOUND_BEFORE[change]
    tracer.write(before, "1 / 0" if "fails" in change else SCALE.format(3))
    first = tracer.ask(text)
    assert dict(first.files)[str(tracer.project / after)] == ""
    if on_disk:
        deep = "class deep:\n    " + SCALE.format(7).replace("\n", "\n    ").rstrip() + "\n"
        tracer.write(after, deep if "folder" in change else SCALE.format(7))
        second = tracer.ask(text)
        assert second.executed or "folder" in change
        expected = {"a package around a module": "3.0", "a module beside a folder": "not a package"}
        assert expected.get(change, "7.0") in str(second)
    else:
        assert tracer.ask(text).executed == 0 or "fails" in change


def test_a_text_of_the_same_size_and_time_is_seen(tracer: Driver) -> None:
    path = tracer.write("lib.py", SCALE.format(3))
    os.utime(path, ns=(1, 1))
    tracer.trace(USES)
    time.sleep(0.2)  # until its version may be kept
    tracer.trace(USES)
    path.write_text(SCALE.format(7))
    os.utime(path, ns=(1, 1))
    assert "7.0" in tracer.trace(USES).jaxpr


def test_a_change_reaches_through_the_modules_between(tracer: Driver) -> None:
    deep = tracer.write("deep.py", "FACTOR = 3.0\n")
    lib = tracer.write("lib.py", "from deep import FACTOR\ndef scale(x):\n    return x * FACTOR\n")
    answer = tracer.trace(USES)
    assert paths(answer) == (str(deep), str(lib))
    tracer.edit("deep.py", "FACTOR = 4.0\n")
    assert "4.0" in tracer.trace(USES).jaxpr
    assert tracer.trace(USES).executed == 0
    assert paths(tracer.trace(USES)) == (str(deep), str(lib))


def test_a_change_reaches_what_a_function_imports_when_called(tracer: Driver) -> None:
    tracer.write("lib.py", "def scale(x):\n    return x * 3.0\n")
    uses = "def f(x):\n    from lib import scale\n    return scale(x)\n"
    assert "3.0" in tracer.trace(uses).jaxpr
    tracer.edit("lib.py", "def scale(x):\n    return x * 4.0\n")
    assert "4.0" in tracer.trace(uses).jaxpr


def test_a_change_elsewhere_executes_nothing(tracer: Driver) -> None:
    tracer.write("lib.py", "def scale(x):\n    return x * 3.0\n")
    tracer.write("other.py", "def thing():\n    pass\n")
    tracer.trace(USES)
    tracer.trace("import other\ndef f(x):\n    return other and x\n", file="second.py")
    tracer.edit("other.py", "def thing():\n    return 1\n")
    assert tracer.trace(USES).executed == 0


def test_a_failing_import_says_where_and_recovers(tracer: Driver) -> None:
    lib = tracer.write("lib.py", "\n1 / 0\n")
    failed = tracer.fail(USES)
    assert failed.failure.type == "ZeroDivisionError"
    assert [frame.line for frame in failed.failure.frames if frame.file == str(lib)] == [2]
    assert str(lib) in paths(failed)
    tracer.edit("lib.py", "def scale(x):\n    return x * 3.0\n")
    assert "3.0" in tracer.trace(USES).jaxpr


def test_relative_imports_work(tracer: Driver) -> None:
    tracer.write("pkg/__init__.py", "")
    tracer.write("pkg/sub/__init__.py", "")
    tracer.write("pkg/one.py", "A = 3.0\n")
    tracer.write("pkg/sub/two.py", "B = 5.0\n")
    text = "from ..one import A\nfrom . import two\ndef f(x):\n    return x * A * two.B\n"
    answer = tracer.trace(text, file="pkg/sub/main.py", module="pkg.sub.main")
    assert "3.0" in answer.jaxpr
    tracer.edit("pkg/sub/two.py", "B = 7.0\n")
    changed = tracer.trace(text, file="pkg/sub/main.py", module="pkg.sub.main")
    assert "7.0" in changed.jaxpr


def test_the_package_itself_can_be_traced(tracer: Driver) -> None:
    tracer.write("pkg/one.py", "A = 3.0\n")
    text = "from .one import A\ndef f(x):\n    return x * A\n"
    tracer.write("pkg/__init__.py", text)
    assert "3.0" in tracer.trace(text, file="pkg/__init__.py", module="pkg").jaxpr
    uses = "import pkg.one\ndef f(x):\n    return pkg.f(x) + pkg.one.A\n"
    assert "3.0" in tracer.trace(uses, file="uses.py").jaxpr
    assert tracer.trace(text, file="pkg/__init__.py", module="pkg").executed == 0


def test_a_src_layout_and_namespace_packages_are_found(tracer: Driver) -> None:
    tracer.write("src/space/part/one.py", "A = 3.0\n")
    text = "from space.part.one import A\ndef f(x):\n    return x * A\n"
    assert "3.0" in tracer.trace(text, file="script.py").jaxpr
    inside = "from .one import A\ndef f(x):\n    return x * A\n"
    answer = tracer.trace(inside, file="src/space/part/main.py", module="space.part.main")
    assert "3.0" in answer.jaxpr


def test_scripts_find_the_modules_beside_them(tracer: Driver) -> None:
    tracer.write("one/helpers.py", "A = 3.0\n")
    tracer.write("two/helpers.py", "A = 5.0\n")
    text = "from helpers import A\ndef f(x):\n    return x * A\n"
    assert "3.0" in tracer.trace(text, file="one/main.py").jaxpr
    assert "5.0" in tracer.trace(text, file="two/main.py").jaxpr
    assert "3.0" in tracer.trace(text, file="one/main.py").jaxpr


def test_a_relative_import_in_a_script_fails_as_python_says(tracer: Driver) -> None:
    failed = tracer.fail("from . import thing\ndef f(x):\n    return thing.A * x\n")
    assert failed.failure.message == "attempted relative import with no known parent package"


def test_a_file_whose_package_cannot_be_imported_says_so(tracer: Driver) -> None:
    text = "SCALE = 3.0\ndef f(x):\n    return x * SCALE\n"
    tracer.write("broken/core.py", text)
    tracer.write("broken/__init__.py", "1 / 0\n")
    for _ in range(2):
        answer = tracer.trace(text, file="broken/core.py", module="broken.core")
        assert [caveat.reason for caveat in answer.caveats] == [
            "runs without package `broken`, which raised ZeroDivisionError: “division by zero”"
        ]
    tracer.write("broken/__init__.py", "")
    assert tracer.trace(text, file="broken/core.py", module="broken.core").caveats == ()


PACKAGE = "from .core import f\nfrom .other import late\n"
CORE = "class Model:\n    size = 3.0\ndef f(x):\n    from .other import make\n    return x * make().size\n"
OTHER = "def make():\n    from .core import Model\n    return Model()\ndef late(x):\n    return x\n"


def test_a_package_that_imports_the_file_being_edited_still_works(tracer: Driver) -> None:
    tracer.write("pkg/__init__.py", PACKAGE)
    tracer.write("pkg/core.py", CORE)
    tracer.write("pkg/other.py", OTHER)
    answer = tracer.trace(CORE, file="pkg/core.py", module="pkg.core")
    assert "3.0" in answer.jaxpr
    assert str(tracer.project / "pkg/core.py") not in paths(answer)
    edited = CORE.replace("3.0", "4.0")
    tracer.edit("pkg/core.py", edited)
    assert "4.0" in tracer.trace(edited, file="pkg/core.py", module="pkg.core").jaxpr
    uses = "import pkg\ndef f(x):\n    return pkg.f(x)\n"
    assert "4.0" in tracer.trace(uses, file="uses.py").jaxpr


def test_an_edit_does_not_import_a_package_anew_that_passes_the_file_on(tracer: Driver) -> None:
    tracer.write("pkg/__init__.py", "print('importing pkg')\nfrom .core import f\n")
    core = "def f(x):\n    return x\n"
    for step in range(4, 8):
        tracer.edit("pkg/core.py", core)
        tracer.trace(core, file="pkg/core.py", module="pkg.core")
        core = f"def f(x):\n    return {step}.0 * x\n"
    assert tracer.prints("importing pkg")
    assert tracer.output.count("importing pkg") == 1


def test_an_edit_imports_anew_what_holds_on_to_the_file(tracer: Driver) -> None:
    tracer.write("pkg/__init__.py", "from .core import f\n")
    tracer.write("pkg/other.py", "from .core import helper\ndef use(x):\n    return helper(x)\n")
    core = """
    def helper(x):
        return x * 3.0
    def f(x):
        from .other import use
        return use(x)
    """
    for factor in ("3.0", "4.0"):
        text = core.replace("3.0", factor)
        tracer.edit("pkg/core.py", text)
        assert factor in tracer.trace(text, file="pkg/core.py", module="pkg.core").jaxpr


def test_modules_that_import_each_other_work_as_in_python(tracer: Driver) -> None:
    core = """
    class Model:
        size = 3.0
    from ring import make
    def f(x):
        return x * make().size
    """
    tracer.write("core.py", core)
    tracer.write("ring.py", "from core import Model\ndef make():\n    return Model()\n")
    request = {"file": "core.py", "module": "core"}
    assert "3.0" in tracer.trace(core, **request).jaxpr
    edited = core.replace("3.0", "4.0")
    tracer.edit("core.py", edited)
    assert "4.0" in tracer.trace(edited, **request).jaxpr


def test_a_broken_package_does_not_blank_the_file(tracer: Driver) -> None:
    tracer.write("pkg/__init__.py", "import jax.not_installed_anywhere\n")
    tracer.write("pkg/one.py", "A = 3.0\n")
    text = "from .one import A\ndef f(x):\n    return x * A\n"
    assert "3.0" in tracer.trace(text, file="pkg/main.py", module="pkg.main").jaxpr
    assert tracer.prints("not_installed_anywhere")
    tracer.write("pkg/__init__.py", "B = 5.0\n")
    text = "from . import B\ndef f(x):\n    return x * B\n"
    assert "5.0" in tracer.trace(text, file="pkg/main.py", module="pkg.main").jaxpr


def test_the_path_is_the_users_and_the_projects(tracer: Driver) -> None:
    text = """
    import sys
    FOREIGN = [each for each in sys.path if each.endswith(("tracer", "jaxsight"))]
    def f(x):
        return x * (len(FOREIGN) + 3) * (sys.path[0] == ROOT)
    """
    text = f"ROOT = {str(tracer.project)!r}\n" + textwrap.dedent(text)
    assert "3.0" in tracer.trace(text).jaxpr


def test_a_file_of_an_installed_package_that_passes_on_its_names(tmp_path: Path) -> None:
    driver = Driver(tmp_path, PYTHONPATH=str(tmp_path / "site-packages"))
    driver.write("site-packages/installed/__init__.py", "from installed._impl import f, other\n")
    driver.write("site-packages/installed/_more.py", "FACTOR = 3.0\n")
    text = """
        from installed import _more

        def f(x):
            return x * _more.FACTOR

        def other(x):
            return x
        """
    file = "site-packages/installed/_impl.py"
    driver.write(file, text)
    for factor in ("5.0", "4.0"):
        edited = text.replace("_more.FACTOR", f"_more.FACTOR * {factor}")
        answer = driver.trace(edited, file=file, module="installed._impl")
        assert f"mul b {factor}" in answer.jaxpr
    assert driver.output == ""
    assert driver.close() == 0


def test_files_of_an_installed_package_have_the_effects_of_the_package(tmp_path: Path) -> None:
    driver = Driver(tmp_path, PYTHONPATH=str(tmp_path / "site-packages"))
    driver.write("site-packages/installed/__init__.py", "from installed import _setting\n")
    driver.write(
        "site-packages/installed/_setting.py",
        "import jax\n\njax.config.update('jax_enable_x64', True)\n",
    )
    text = "import jax.numpy as jnp\n\n\ndef f(x):\n    return x + jnp.arange(4)\n"
    for name in ("one", "two"):
        driver.write(f"site-packages/installed/{name}.py", text)
    for name in ("one", "two", "one"):
        file = f"site-packages/installed/{name}.py"
        assert "i64[4]" in driver.trace(text, file=file, module=f"installed.{name}").jaxpr
    assert driver.close() == 0


@pytest.mark.parametrize("first", ["sets", "imports"])
def test_options_that_an_installed_package_sets_for_another_come_with_each_import(
    tmp_path: Path, first: str
) -> None:
    driver = Driver(tmp_path, PYTHONPATH=str(tmp_path / "site-packages"))
    driver.write(
        "site-packages/sets/__init__.py",
        "import jax\n\njax.config.update('jax_enable_x64', True)\n",
    )
    driver.write("site-packages/imports/__init__.py", "import sets\n")
    text = "{}import jax.numpy as jnp\n\n\ndef f(x):\n    return x + jnp.arange(4)\n"
    second = {"sets": "imports", "imports": "sets"}[first]
    for package, dtype in ((first, "i64"), ("", "i32"), (second, "i64")):
        source = text.format(f"import {package}\n" if package else "")
        assert f"{dtype}[4]" in driver.trace(source, file=f"{package or 'plain'}.py").jaxpr
    assert driver.close() == 0


def test_a_module_imported_during_a_trace_keeps_no_tracers(tracer: Driver) -> None:
    tracer.write("pk/__init__.py", "from . import a, b\n")
    tracer.write(
        "pk/b.py",
        "import jax.numpy as jnp\nZERO = jnp.zeros(1)\ndef double(x): return 2 * x + ZERO\n",
    )
    text = "def {name}(x):\n    from .b import double\n    return double(x)\n"
    source = text.format(name="first") + text.format(name="second")
    for name in ("first", "second"):
        tracer.trace(source, name, file="pk/a.py", module="pk.a")


def test_a_folder_without_init_below_a_package_outlives_its_package(tracer: Driver) -> None:
    tracer.write("pk/__init__.py", "from pk.sub.a import f\nfrom pk.sub.b import g\n")
    texts = {
        "a": "from pk.sub.base import A\nfrom pk.sub import b\n{}\ndef f(x):\n    return x * A\n",
        "b": "from pk.sub.base import A\n{}\ndef g(x):\n    return x * A\n",
    }
    tracer.write("pk/sub/base.py", "A = 3.0\n")
    for name, text in texts.items():
        tracer.write(f"pk/sub/{name}.py", text.format(""))
    for change in ("", "import os\nos.environ['PK_B'] = '1'", "LIMIT = 1"):
        for (name, text), function in zip(texts.items(), "fg", strict=True):
            file, module = f"pk/sub/{name}.py", f"pk.sub.{name}"
            tracer.edit("pk/sub/base.py", f"A = 3.0\n{change}\n")
            traced = tracer.trace(text.format(change), function, file=file, module=module)
            assert "3.0" in traced.jaxpr
