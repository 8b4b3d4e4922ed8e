"""What stands in for a package that is not installed, for processes whose environment says STAND_IN."""

import os
from pathlib import Path

_HERE = Path(__file__).parent
STAND_IN = {"PYTHONPATH": f"{_HERE}{os.pathsep}{_HERE.parent}"}
