"""The pieces the screens share."""
