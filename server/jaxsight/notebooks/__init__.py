"""jaxsight in notebooks: pictures of live functions, and magics.

It runs in the user's process, on functions as they are there. It must never need a package of the
server's.
"""
