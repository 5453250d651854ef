"""How bright colours are, for the tests that ask whether they can be read: in Python, and in a page."""

import numpy as np
from matplotlib.colors import to_rgb

CONTRAST = 4.5  # of WCAG 2 at level AA, asked in pages of large text too

# What is seen of a colour painted on an element: it lies over the grounds of all that the element lies in.
TEXTS = """least => {
    const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const known = new Map();
    function parse(css) {
        if (!known.has(css)) {
            context.clearRect(0, 0, 1, 1);
            context.fillStyle = css;
            context.fillRect(0, 0, 1, 1);
            const [r, g, b, alpha] = context.getImageData(0, 0, 1, 1).data;
            known.set(css, { rgb: [r, g, b], alpha: alpha / 255 });
        }
        return known.get(css);
    }
    function over(top, ground) {
        const alpha = top.alpha + ground.alpha * (1 - top.alpha);
        const mix = (a, b) => alpha && (a * top.alpha + b * ground.alpha * (1 - top.alpha)) / alpha;
        return { rgb: top.rgb.map((value, k) => mix(value, ground.rgb[k])), alpha };
    }
    const painters = new Map();
    function painter(element) {
        if (element && !painters.has(element)) {
            const { backgroundColor, opacity } = getComputedStyle(element);
            const own = { element, ground: parse(backgroundColor), opacity };
            const paints = own.ground.alpha > 0 || opacity !== "1";
            painters.set(element, paints ? own : painter(element.parentElement));
        }
        return element ? painters.get(element) : null;
    }
    function seen(element, colour) {
        for (let layer = painter(element); layer; layer = painter(layer.element.parentElement)) {
            colour = over(colour, layer.ground);
            colour = { rgb: colour.rgb, alpha: colour.alpha * layer.opacity };
        }
        return over(colour, parse("white")).rgb;
    }
    function luminance(rgb) {
        const linear = x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = rgb.map(value => linear(value / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    }
    function contrast(element) {
        const colours = [parse(getComputedStyle(element).color), parse("transparent")];
        const [dark, light] = colours.map(colour => luminance(seen(element, colour))).sort((a, b) => a - b);
        return (light + 0.05) / (dark + 0.05);
    }
    function visible(element) {
        const { width, height } = element.getBoundingClientRect();
        const shown = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
        return shown && width > 1 && height > 1;
    }
    function tags(element, levels) {
        return element && levels ? tags(element.parentElement, levels - 1) + element.cloneNode().outerHTML : "";
    }
    const elements = new Set(document.querySelectorAll("mjx-math"));
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.data.trim()) elements.add(walker.currentNode.parentElement);
    const texts = [...elements].filter(element => !element.closest("mjx-assistive-mml") && visible(element));
    const faint = texts.map(element => [contrast(element), element]).filter(([value]) => value < least);
    return [texts.length, faint.map(([value, element]) => `${value.toFixed(2)}: ${tags(element, 3)}`)];
}"""


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]
