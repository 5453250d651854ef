"""The still picture of book/assets/stripes.js: on paper, without scripts, and on the card that other sites show.

python tools/draw_stripes.py
"""

import json
import shutil
import subprocess
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from amptutorial.book.figures import use_style

ASSETS = Path(__file__).parents[1] / "book/assets"
PICTURE = ASSETS / "stripes.png"
SEED, ROWS, STRENGTH = 1, 160, 4  # as the pages begin
ASKED = """
import {{ amp, draw, product, score, wrong }} from "./stripes.js";
const found = {settings}.map(({{ rows, strength, seed }}) => {{
    const table = draw({{ rows, strength }}, seed), fits = amp(score(table.counts), table.start, strength);
    const fit = product(fits.at(-1).A, fits.at(-1).B);
    return {{ ...table, fits, fit, error: wrong(fit, table.truth) }};
}});
console.log(JSON.stringify(found, (_, x) => (ArrayBuffer.isView(x) ? Array.from(x) : x)));
"""


def run(program, *scripts):
    """Return what a program prints as JSON, run by Node.js beside these scripts of the pages."""
    with TemporaryDirectory() as folder:
        for name in scripts:
            shutil.copy(ASSETS / name, folder)
        Path(folder, "package.json").write_text('{"type": "module"}')
        path = Path(folder, "asked.js")
        path.write_text(program)
        return json.loads(subprocess.run(["node", path], capture_output=True, text=True, check=True).stdout)


def ask(settings):
    """Return what the script of the pages computes for each of the settings, by Node.js: ``rows, strength, seed``."""
    return run(ASKED.format(settings=json.dumps(settings)), "stripes.js", "hero.js")


def paint():
    """Write the picture."""
    (table,) = ask([{"rows": ROWS, "strength": STRENGTH, "seed": SEED}])
    counts, truth, fit = (np.reshape(table[name], (ROWS, ROWS)) for name in ("counts", "truth", "fit"))
    use_style()
    plt.rcParams["figure.constrained_layout.use"] = False
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    figure.text(0.5, 0.9, "How well can embeddings be learned?", ha="center", va="center", size=30)
    size = 2 * np.std(truth)
    stripes = {"cmap": "RdBu_r", "vmin": -size, "vmax": size}
    panels = (
        ("counts of words in documents", counts, {"cmap": "Greys", "vmin": 0, "vmax": 4}),
        ("how they are associated", truth, stripes),
        ("found in the counts alone", fit, stripes),
    )
    for place, (name, values, look) in enumerate(panels):
        axes = figure.add_axes((0.03 + 0.325 * place, 0.17, 0.29, 0.29 * 12 / 6.3))
        axes.imshow(values, interpolation="nearest", **look)
        axes.set(xticks=[], yticks=[])
        axes.set_title(name, y=-0.12, size=17)
    written = BytesIO()
    figure.savefig(written, format="png")
    Image.open(written).convert("RGB").quantize(32).save(PICTURE, optimize=True)


if __name__ == "__main__":
    paint()
