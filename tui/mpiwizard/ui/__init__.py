"""The full-screen face.

GNU screen cannot show 24-bit colours, and Textual decides about colours when it is imported;
so this is settled here, before any module of the interface imports it.
"""

import os

if os.environ.get("STY") and not os.environ.get("TMUX"):
    os.environ.setdefault("TEXTUAL_COLOR_SYSTEM", "256")
