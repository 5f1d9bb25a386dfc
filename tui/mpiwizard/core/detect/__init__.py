"""Stage 1, detect: a host becomes a machine, fact by fact, each with its evidence."""
