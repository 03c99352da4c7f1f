"""Figures of compiled programs, in words and as the data of panels; no text of a user is read."""
