"""Run all cells of the pages in a browser, as a reader does, and say how it went.

    python -m studies.live_report                        # every page that has cells
    python -m studies.live_report book/13_the_proofs     # some of them

The site is that of `make site OFFLINE=1`. The report is printed and kept in _build/live.txt; the seconds of each page
that ran to its end are kept in tools/live_seconds.json, from where the next build takes them to tell readers.
"""

import json
import sys
from math import ceil

from chromium import CHROMIUM, ROOT, run_page
from live_cells import SECONDS

SITE = ROOT / "_build/html"


def line(run):
    """Return a row of the report."""
    first = f"{run.first:6.1f}" if run.first else "     -"
    prints = f"{run.equal}/{run.printing}"
    return f"{run.page:<38} {run.cells:5d} {prints:>7} {run.seconds:7.0f} {first} {run.megabytes or 0:5d}  {run.said}"


def main(names):
    """Run the pages, report, and return the exit status."""
    if CHROMIUM is None:
        sys.exit("Chromium or Chrome is needed to run pages, and neither is installed")
    cells = SITE / "_static/live/cells"
    pages = sorted(str(path.relative_to(cells).with_suffix("")) for path in cells.rglob("*.json"))
    known = {name: seconds for name, seconds in json.loads(SECONDS.read_text()).items() if name in pages}
    names = names or pages
    rows = [f"{'page':<38} {'cells':>5} {'equal':>7} {'seconds':>7} {'first':>6} {'MB':>5}"]
    print(*rows, flush=True)
    failed = 0
    for name in names:
        run = run_page(SITE, name)
        rows.append(line(run))
        print(rows[-1], flush=True)
        failed += bool(run.failed or run.equal < run.printing)
        if not run.failed:
            known[name] = 10 * ceil((run.seconds - run.first) / 10)
    SECONDS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    (ROOT / "_build/live.txt").write_text("\n".join(rows) + "\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
