"""The detached process that runs a plan, and the way to start, watch and stop it."""
