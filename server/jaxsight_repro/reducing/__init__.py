"""Makes a repro smaller while its check holds.

`run` is the entry point. `equations` reduces a program that can be traced, `statements` the text of
other files. Both try **candidates**, smaller programs, of which the `checker` decides which are
interesting: it runs them in forked `children` of this process, which never initializes a backend
itself. A `Journal` keeps the results on disk, so that an interrupted reduction continues.

A **pass** (`checker.Pass`) takes a candidate and returns a smaller one that is interesting, or
the same. All passes are repeated until none makes the candidate smaller. On equations, in order:

* `recording.dive` continues with the innermost loop body or branch that makes the first NaN.
* `flatten` replaces calls by the equations of what they call.
* `trim` drops equations at the end; it needs no recorded values.
* `delete` deletes equations; what others need of them becomes an input with its recorded value.
* `drop_outputs` leaves as few outputs as possible.
* `bypass` replaces the result of an equation by an operand of the same type.
* `unwrap` replaces a loop or a `cond` by one iteration or branch.
* `thin` deletes equations inside loop bodies and branches.
* `prune` removes what no output needs, such as carries of loops that nothing reads.
* `fewer_devices` makes meshes smaller.
* `shrink` makes sizes of axes smaller.
* `narrow` makes dtypes narrower.
* `simplify` merges arguments, and makes their values simpler.

On statements, `focus` keeps the function or the statement that failed, `runs` of statements are
deleted, and `simplify` makes expressions simpler. Values that are missing then become zeros of the
types that they had.
"""
