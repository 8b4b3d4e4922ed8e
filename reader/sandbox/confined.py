"""macOS: whether the profile that the governor started us under is in force."""

import os
from collections.abc import Callable


def confirm(look: Callable[[str], object] = os.listdir) -> None:
    """Return if the system refuses a look at a folder that everybody may see; else raise OSError."""
    try:
        look("/")
    except PermissionError:
        return
    raise OSError("not confined")
