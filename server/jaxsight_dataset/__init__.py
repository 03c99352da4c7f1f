"""`jaxsight dataset`: pairs of Python functions and what JAX and XLA make of them.

The folders, in the order of the work:

* `generating` writes programs: pure functions of a specification and a number, without JAX;
* `mining` finds functions of installed packages that have example inputs;
* `rows` traces, compiles and runs programs, and describes each as a row;
* `tables` stores rows as Parquet and JSON Lines, with a card. Only this folder needs pyarrow;
* `tasks` asks questions about rows, and scores what models answer.

A dataset is made shard by shard. What a shard contains depends on the specification, the seed and
the shard's number alone: not on how many processes make them, in which order, or how often one of
them was killed. This package must never write a row that was not checked, or a mined program
without its licence.
"""

from __future__ import annotations

_LAZY = {
    "EvaluationRecord": "jaxsight_dataset.tasks.evaluation",
    "Program": "jaxsight_dataset.program",
    "QuestionSet": "jaxsight_dataset.tasks.selection",
    "Spec": "jaxsight_dataset.spec",
    "baseline": "jaxsight_dataset.tasks.evaluation",
    "evaluate": "jaxsight_dataset.tasks.evaluation",
    "generate": "jaxsight_dataset.generating",
    "questions": "jaxsight_dataset.tasks.evaluation",
    "read_rows": "jaxsight_dataset.reading",
}
"""The functions and classes for users, imported on first use: workers have no pyarrow."""


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)
