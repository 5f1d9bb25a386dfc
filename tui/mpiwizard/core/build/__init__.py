"""Stage 4, build: a plan becomes a run, and a run becomes an installation."""
