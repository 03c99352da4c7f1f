"""What processes share: messages, their frames, and the data in them.

Records are plain data and their own schema. This package must never import more than the standard
library, or decode what it reads to anything but these records.
"""
