"""Processes: start, monitor, kill and replace them, and exchange messages with them.

That one crashes, hangs or lies is an event with a reason, and an answer for whoever asked. This
package must never run user code itself, or block the event loop.
"""
