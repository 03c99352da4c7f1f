"""Commands about runs of the user's code, with consent, progress and a way to cancel.

Runs until functions were seen, measurements, bug reports, and profiles of runs of the past.
"""
