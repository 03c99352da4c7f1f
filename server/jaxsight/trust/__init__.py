"""Consent: which folders' code may run, and what their settings may reach outside of them.

Nothing of a workspace runs before its user agrees. `policy` reads the user's general preference,
`store` keeps decisions about single folders, `decisions` combines both for one process and asks.
A workspace must never decide about itself: what its files say counts only after the decision.
"""

from jaxsight.trust.decisions import Trust
from jaxsight.trust.policy import Policy, chosen_policy
from jaxsight.trust.store import Decisions, TrustStore, store_file

__all__ = ["Decisions", "Policy", "Trust", "TrustStore", "chosen_policy", "store_file"]
