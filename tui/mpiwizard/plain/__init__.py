"""The face for pipes, CI and screen readers."""
