"""What a run of the user's program compiled: read, explained, and shown as a page.

`recording/programs/` collects in the run's processes. `collected.py` reads what they logged,
`merging.py` puts programs together that several processes compiled and says in words why a
function was compiled again, `compiled_hlo.py` reads the kernels of optimized HLO with their
lines, and `page/` writes all of it as one HTML file.

Logs are files of unknown origin: records of another form are passed over, and this package must
never run or import what they name.
"""
