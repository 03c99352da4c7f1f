"""Settings for tests that are not about kernels: nothing is compiled in the background, and no
example inputs are proposed.
"""

QUIET: dict[str, object] = {
    "inlayHints": {"kernels": False, "barriers": False, "collectives": False},
    "proposeInputs": False,
}
