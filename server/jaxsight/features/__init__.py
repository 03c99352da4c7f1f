"""What an editor or the terminal shows, one module or folder for each feature.

A feature has its policy (how long it waits, what it prefers) and its words. It must never know LSP,
import JAX, or keep answers: caches are the engine's (`queries/memory.py`).
"""
