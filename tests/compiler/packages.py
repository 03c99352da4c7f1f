"""A folder of packages that stands for pip's index, so that compilers are installed without one.

They are empty: whoever installs them gets a compiler that was installed before, by its path.
"""

from __future__ import annotations

import importlib.metadata
import os
import zipfile
from pathlib import Path

from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.installation import LIBTPU


def local_index(folder: Path, jax: str = "", platform: str = "cuda") -> dict[str, str]:
    """Make the packages that a compiler for a JAX, by default that of these tests, consists of.

    Returns:
        The environment variables with which pip finds them, and nothing else.
    """
    jax = jax or importlib.metadata.version("jax")
    compiler = environments.suiting(platform, jax)
    installed = list(Path(compiler.folder).glob("lib/python3*/site-packages")) if compiler else []
    folder.mkdir()
    _package(folder, "jax", jax, {"jaxsight_tests.pth": f"{installed[0]}\n" if installed else ""})
    _package(folder, "jax_cuda13_pjrt", jax, {})
    _package(folder, "jax_cuda13_plugin", jax, {})
    _package(folder, "libtpu", LIBTPU, {})
    return {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PIP_CONSTRAINT": "",
    }


def _package(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    information = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*content, f"{information}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in {**content, f"{information}/RECORD": record}.items():
            wheel.writestr(path, text)
