"""The accelerators that the JAX of this Python has plugins for; run as a script, print them.

A plugin is a module below `jax_plugins` (`discover_pjrt_plugins` in `jax/_src/xla_bridge.py`), as
the packages `jax-cuda13-plugin` and `jax-rocm7-plugin` have; TPUs need the package `libtpu`.
Modules are looked for, and none is imported.
"""

from __future__ import annotations

import importlib.util
import json
import pkgutil
import re

_PLUGIN = re.compile(r"xla_(cuda|rocm)\d*")


def plugins() -> tuple[str, ...]:
    """Return the platforms with an installed plugin, of `cuda`, `rocm` and `tpu`."""
    found = []
    try:
        spec = importlib.util.find_spec("jax_plugins")
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
        names = [module.name for module in pkgutil.iter_modules(places)]
        found = [match[1] for name in names if (match := _PLUGIN.fullmatch(name))]
        if importlib.util.find_spec("libtpu") is not None:
            found.append("tpu")
    except (ImportError, ValueError, OSError):
        pass  # a package of this name that cannot be looked into is no plugin
    return tuple(sorted(set(found)))


if __name__ == "__main__":
    import importlib.metadata  # with a reader of mail, which the server does not need

    print(json.dumps({"jax": importlib.metadata.version("jax"), "plugins": plugins()}))
