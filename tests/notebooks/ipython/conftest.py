"""Only where IPython is: the environment `notebooks` of `make test-all`."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("nbclient") else ["test_*.py"]
