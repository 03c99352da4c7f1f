"""The folders that a confined process may write, by the variables that name them."""

WRITABLE = "JAXSIGHT_WRITABLE"
"""The variable that names what a confined process may write, as `PATH` names folders."""

KEPT = "JAXSIGHT_KEPT"
"""The variable that names a folder of those that lasts."""
