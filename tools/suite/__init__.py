"""Runs the tests: `make test` is `python -m tools.suite gate`, `make test-all` its command `all`.

The gate runs what a change can break: every quick test on the newest JAX, all tests of the packages
whose own files differ from those that passed, ten cases of each search, and one smoke run each of
what else is supported. Everything runs in parts, side by side or by night; a part that passes
writes down what it passed with (`tests/passed.json`). `ownership` says whose a file is, `selection`
what the gate holds, `parts` what there is to run and where, `running` runs it.

Standard library alone: this runs before anything is installed.
"""
