"""What a traced program is, for users and the compiler: text, fingerprint, and predicted folds."""
