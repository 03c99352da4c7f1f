"""How many findings are right on functions of libraries that nobody chose by hand.

`look` searches installed packages for functions that can be traced with an entry of
`tests.truth.libraries`' menu, `check` makes their arrays larger where the functions take that and
writes the findings of each file as a line of JSON, and `show` prints them beside the code:

    python -m tools.precision look distreqx exponax --each 20 --functions functions.jsonl
    python -m tools.precision check --functions functions.jsonl --results results.jsonl
    python -m tools.precision show --results results.jsonl

Each step writes as it goes and continues where it was stopped. Verdicts on what was found are in
`judged.md`.
"""
