"""Commands that run the user's code for longer: with consent, progress, and a way to cancel."""
