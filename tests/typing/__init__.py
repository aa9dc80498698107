"""Files that only the type checker runs: what it must accept, infer and refuse."""
