"""Give classes and modules of JAX other attributes for some time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


def replace(stack: contextlib.ExitStack, owner: object, name: str, value: object) -> None:
    """Set an attribute of a class or module until a stack is closed."""
    # Only the owner's own attribute: an inherited one reappears once ours is deleted.
    if name in vars(owner):
        stack.callback(setattr, owner, name, vars(owner)[name])
    else:
        stack.callback(delattr, owner, name)
    setattr(owner, name, value)


@contextlib.contextmanager
def replaced(*attributes: tuple[object, str, object]) -> Iterator[None]:
    """Set attributes of classes or modules in this block: owners, names and values."""
    with contextlib.ExitStack() as stack:
        for owner, name, value in attributes:
            replace(stack, owner, name, value)
        yield
