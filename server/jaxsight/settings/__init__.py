"""Settings: one schema, read from `pyproject.toml` and from the editor, merged, documented.

project = read_project(root)              # its problems are findings in pyproject.toml
settings = merge(project, editor_values)  # problems of the editor's values: settings.problems

A value that is not valid is a problem, and its default holds. This package must never raise for
one.
"""
