"""What the commands of `jaxsight dataset` share: progress, and what they print."""
