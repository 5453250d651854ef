"""What measures the project, each run from the root as ``python -m studies.NAME``: see README.md."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tools"), str(ROOT / "course/tests")]  # what makes the pages, and what tries the grader
