"""Consent: which folders' code may run, and what of their settings may reach outside.

Nothing of a workspace runs before its user agreed. `policy` reads what the user wants in general,
`store` keeps what they decided about single folders, `decisions` holds both for one process and
says what to ask.
"""

from jaxsight.engine.trust.decisions import Trust
from jaxsight.engine.trust.policy import Policy, chosen_policy
from jaxsight.engine.trust.store import Decisions, Store, store_file

__all__ = ["Decisions", "Policy", "Store", "Trust", "chosen_policy", "store_file"]
