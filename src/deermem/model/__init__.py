"""What the store is about: values and pure rules, without files, clocks, ids or threads."""
