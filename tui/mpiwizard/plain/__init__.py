"""The face for pipes, CI and screen readers: results on stdout, talk on stderr, nothing redrawn."""
