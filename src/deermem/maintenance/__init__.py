"""What operators do with a whole store: check it, save it, bring it back, and mend it."""
