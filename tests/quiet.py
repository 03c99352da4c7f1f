"""Settings for tests that are not about kernels: nothing is compiled in the background."""

QUIET: dict[str, object] = {
    "inlayHints": {"kernels": False, "barriers": False, "collectives": False}
}
