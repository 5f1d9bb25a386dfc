"""Stage 5, tune: what is measurably better is kept, with its undo."""
