"""The platform that code sees, which is that of the target, and who asks for it."""
