"""Stage 6, validate: it works, and this is how fast, beside what others expected."""
