"""jaxsight's tools as functions, for scripts and notebooks; they run in the user's process."""
