"""A resident server: commands of one user and one environment are run by a process that stays.

`client` is what the command `jaxsight` does: it finds the server or starts one, and passes it the
arguments, the working folder and the descriptors of its standard streams, on which the server reads
and writes as the command itself would. `server` runs one command at a time, in its own process,
and ends when nobody has asked for a while. `session_pool` holds what makes the next command fast:
the session with its tracers, compilers and caches. `place` says where server and client meet.

A server answers for one version of jaxsight, one Python, one set of environment variables and the
same limits (memory, open files, priority, processors): with others, clients look for another
socket. What a command may run is decided by its own arguments, as without a server.
"""
