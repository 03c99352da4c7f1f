"""Figures of compiled programs, in words and as the data of panels.

They run in the server, in compilers and in the user's process. They must never read a text of the
user's: what they show is in the compiler's answer.
"""
