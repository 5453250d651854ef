"""The pictures of book/assets/stripes.js: a still one for paper, and a moving one for README.md.

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
PICTURE, MOVING = ASSETS / "stripes.png", ASSETS / "stripes.gif"
SEED, ROWS, STRENGTH = 1, 160, 4  # as the pages begin
LAST, COLOURS = 8, 32  # iteration and number of colours of the moving picture
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


def panels(counts, truth, fit, found, dpi):
    """Return the picture of a table, its truth and a fit, which is labelled `found`."""
    figure = plt.figure(figsize=(12, 6.3), dpi=dpi, facecolor="white")
    figure.text(0.5, 0.9, "How well can embeddings be learned?", ha="center", va="center", size=30)
    size = 2 * np.std(truth)
    stripes = {"cmap": "RdBu_r", "vmin": -size, "vmax": size}
    shown = (
        ("counts of words in documents", counts, {"cmap": "Greys", "vmin": 0, "vmax": 4}),
        ("how they are associated", truth, stripes),
        (found, fit, stripes),
    )
    for place, (name, values, look) in enumerate(shown):
        axes = figure.add_axes((0.03 + 0.325 * place, 0.17, 0.29, 0.29 * 12 / 6.3))
        axes.imshow(values, interpolation="nearest", **look)
        axes.set(xticks=[], yticks=[])
        axes.set_title(name, y=-0.12, size=17)
    written = BytesIO()
    figure.savefig(written, format="png")
    plt.close(figure)
    return Image.open(written).convert("RGB")


def paint():
    """Write both pictures. The moving one has an iteration a frame, stays at the last, and stops after three rounds."""
    (table,) = ask([{"rows": ROWS, "strength": STRENGTH, "seed": SEED}])
    counts, truth, fit = (np.reshape(table[name], (ROWS, ROWS)) for name in ("counts", "truth", "fit"))
    use_style()
    plt.rcParams["figure.constrained_layout.use"] = False
    still = panels(counts, truth, fit, "found in the counts alone", dpi=100)
    still.quantize(32).save(PICTURE, optimize=True)
    fits = [np.transpose(each["A"]) @ each["B"] / np.sqrt(ROWS) for each in table["fits"][:LAST]]
    labels = [f"found after {k} iteration{'s' * (k != 1)}" for k in range(LAST + 1)]
    below = 0, 90, 720, 378  # without the title, which README.md has
    frames = [
        panels(counts, truth, each, label, dpi=60).crop(below)
        for each, label in zip([0 * truth, *fits], labels, strict=True)
    ]
    palette = frames[-1].quantize(COLOURS)
    frames = [each.quantize(COLOURS, palette=palette, dither=Image.Dither.NONE) for each in frames]
    pace = [600] * LAST + [3000]
    frames[0].save(MOVING, save_all=True, append_images=frames[1:], duration=pace, loop=2, optimize=True)


if __name__ == "__main__":
    paint()
