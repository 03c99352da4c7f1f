"""Parts of `jaxsight check`: the findings of a file, fixes, baselines, and recompilations."""
