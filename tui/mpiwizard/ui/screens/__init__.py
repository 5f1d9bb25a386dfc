"""One screen per stage."""
