"""The pictures of book/assets/stripes.js: a still one for paper, and moving ones for README.md.

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
from matplotlib.colors import LinearSegmentedColormap
from PIL import Image

from amptutorial.book.figures import use_style

ASSETS = Path(__file__).parents[1] / "book/assets"
PICTURE = ASSETS / "stripes.png"
LIGHT, DARK = ("white", "black"), ("#0d1117", "#f0f6fc")  # ground and ink, as where README.md is shown
MOVING = {ASSETS / "stripes.gif": LIGHT, ASSETS / "stripes-dark.gif": DARK}
BLUE, VERMILION, GREY = "#0072b2", "#d55e00", "#808080"  # as on the pages
SEED, ROWS, STRENGTH = 17, 200, 8  # as the pages begin: of the seeds 1 to 20 the one with the median error
LAST, COLOURS = 6, 20  # iteration and number of colours of the moving pictures
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


def panels(counts, truth, fit, found, dpi, theme):
    """Return the picture of a table, its truth and a fit, which is labelled `found`, in a theme's ground and ink."""
    ground, ink = theme
    figure = plt.figure(figsize=(12, 6.3), dpi=dpi, facecolor=ground)
    figure.text(0.5, 0.9, "How well can embeddings be learned?", ha="center", va="center", size=30, color=ink)
    size = 2 * np.std(truth)
    mixed = LinearSegmentedColormap.from_list
    stripes = {"cmap": mixed("stripes", [BLUE, ground, VERMILION]), "vmin": -size, "vmax": size}
    shown = (
        ("counts of words in documents", counts, {"cmap": mixed("dots", [ground, GREY]), "vmin": 0, "vmax": 3}),
        ("how they are associated", truth, stripes),
        (found, fit, stripes),
    )
    for place, (name, values, look) in enumerate(shown):
        axes = figure.add_axes(((28 + 232 * place) / 720, 66 / 378, 200 / 720, 200 / 378))
        axes.imshow(values, interpolation="nearest", **look)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color(GREY)
        axes.set_title(name, y=-0.12, size=17, color=ink)
    written = BytesIO()
    figure.savefig(written, format="png", facecolor=ground)
    plt.close(figure)
    return Image.open(written).convert("RGB")


def paint():
    """Write the pictures. The moving ones have an iteration a frame, stay at the last, and stop after three rounds."""
    (table,) = ask([{"rows": ROWS, "strength": STRENGTH, "seed": SEED}])
    counts, truth, fit = (np.reshape(table[name], (ROWS, ROWS)) for name in ("counts", "truth", "fit"))
    use_style()
    plt.rcParams["figure.constrained_layout.use"] = False
    still = panels(counts, truth, fit, "found by AMP", dpi=100, theme=LIGHT)
    still.quantize(32).save(PICTURE, optimize=True)
    fits = [np.transpose(each["A"]) @ each["B"] / np.sqrt(ROWS) for each in table["fits"][:LAST]]
    labels = [f"found after {k} iteration{'s' * (k != 1)}" for k in range(LAST + 1)]
    below = 0, 104, 720, 350  # without the title, which README.md has
    for path, theme in MOVING.items():
        frames = [
            panels(counts, truth, each, label, dpi=60, theme=theme).crop(below)
            for each, label in zip([0 * truth, *fits], labels, strict=True)
        ]
        palette = frames[-1].quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
        frames = [each.quantize(COLOURS, palette=palette, dither=Image.Dither.NONE) for each in frames]
        pace = [600] * LAST + [3000]
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=pace, loop=2, optimize=True)


if __name__ == "__main__":
    paint()
