"""Stage 3, configure: a choice becomes a plan, every option with its reason, every command in full."""
