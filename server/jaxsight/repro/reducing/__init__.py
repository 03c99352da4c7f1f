"""Makes a repro smaller while its check holds.

`run.reduce` is the entry point. `equations` reduces a program that can be traced, `statements` the
text of other files. `checker` decides which candidates are interesting: it runs them in the forked
`children` of this process, which never initializes a backend itself. `journal` keeps the results on
disk, so that an interrupted reduction continues.
"""
