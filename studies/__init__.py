"""What measures the project, each run from the root as ``python -m studies.NAME``: see README.md."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tools"))  # with which the pages are made
