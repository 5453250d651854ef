"""Experiments for the reader's own hands: sliders, and pictures that follow them.

On a page without a kernel only what lies in the page can change. So every combination
of the *stored* parameters is drawn when the chapter runs, and the browser itself links
their sliders to the pictures. With a kernel the same sliders redraw, and those of the
*live* parameters join them. The style sheet of the book decides which of the two is
seen: it shows `.amp-page` and hides `.amp-live`, and a notebook does the opposite.
The `book` extra brings ipywidgets.
"""

import inspect
from base64 import b64encode
from functools import cache, partial
from html import escape
from io import BytesIO
from itertools import product

import matplotlib.pyplot as plt
from ipywidgets import HTML, Layout, SelectionSlider, Stack, VBox, jslink
from matplotlib.figure import Figure
from PIL import Image

from .figures import STYLE

PALETTE = 64  # colours of a picture: enough for smooth edges, at a third of the bytes


def explore(draw, *, stored, live=None, size=STYLE["figure.figsize"]):
    """Return sliders and the picture that `draw` makes of their values.

    Parameters
    ----------
    draw : callable
        `draw(figure, **parameters) -> str` draws into an empty matplotlib figure, with
        axes that do not move with the parameters, and returns one sentence with the
        numbers that the picture shows. The first line of its docstring describes the
        picture to readers who do not see it. The defaults of its parameters are where
        the sliders begin.
    stored : dict of str to sequence
        The values of the parameters that move on a page without a kernel too: one
        picture is drawn, and stored in the page, for each combination.
    live : dict of str to sequence, optional
        The values of the parameters that need a kernel.
    size : (float, float)
        Width and height of the figure, in inches.

    Returns
    -------
    Explorer

    Raises
    ------
    ValueError
        If a parameter is not one of `draw`'s, has no default, or a default that is not
        among its values; if `draw` has no docstring or nothing is stored.

    Examples
    --------
    >>> def draw(figure, power=1):
    ...     '''Draw a power of x.'''
    ...     figure.subplots().plot([0, 1, 2], [0, 1, 2**power])
    ...     return f"The curve ends at {2**power}."
    >>> box = explore(draw, stored={"power": [1, 2, 3]})
    >>> [type(child).__name__ for child in box.children]
    ['SelectionSlider', 'Stack', 'HTML', 'HTML']
    >>> len(box.children[1].children), "The curve ends at 2." in box.children[2].value
    (3, True)
    """
    live = live or {}
    values = {name: tuple(options) for name, options in {**stored, **live}.items()}
    check_experiment(draw, stored, live, values)
    starts = {name: inspect.signature(draw).parameters[name].default for name in values}
    sliders = {name: make_slider(name, values[name], starts[name]) for name in values}

    @cache  # nothing is drawn twice: the stored pictures are the first of the live ones
    def frame(*chosen):
        return render(draw, size, dict(zip(values, chosen, strict=True)))

    for name in live:
        sliders[name].add_class("amp-live")
    fixed = [starts[name] for name in live]
    drawn = [frame(*chosen, *fixed) for chosen in product(*map(values.get, stored))]
    page = stack([sliders[name] for name in stored], (html for html, _ in drawn))
    picture = HTML().add_class("amp-live")

    def redraw(change=None):
        try:
            picture.value, _ = frame(*(slider.value for slider in sliders.values()))
        # or the last picture would stay, and the error be in a log that nobody opens
        except Exception as error:
            picture.value = f"<pre>{escape(repr(error))}</pre>"
            raise

    for slider in sliders.values():
        slider.observe(redraw, "value")
    redraw()
    box = Explorer(
        [*sliders.values(), page, picture, note(len(drawn), live)],
        [text for _, text in drawn],
    )
    return box.add_class("amp-explore")


class Explorer(VBox):
    """Sliders and pictures.

    In a notebook that was not run yet, a text says what the pictures show; tests
    compare a run with this text.
    """

    def __init__(self, children, texts):
        super().__init__(children)
        self.texts = texts

    def _repr_mimebundle_(self, **kwargs):
        words = "\n".join(
            [
                "Run this notebook to see pictures with sliders here. They show:",
                *self.texts,
            ]
        )
        return super()._repr_mimebundle_(**kwargs) | {"text/plain": words}


def check_experiment(draw, stored, live, values):
    """Raise a ValueError if something is missing from an experiment."""
    if not stored:
        raise ValueError(
            "stored is empty: name at least one parameter whose pictures the page keeps"
        )
    if both := stored.keys() & live.keys():
        raise ValueError(
            f"{', '.join(sorted(both))} cannot be both stored and live: choose one"
        )
    if not inspect.getdoc(draw):
        raise ValueError(
            f"{draw.__name__} has no docstring: its first line is the picture's"
            " alternative text"
        )
    parameters = inspect.signature(draw).parameters
    for name, options in values.items():
        if name not in parameters:
            raise ValueError(f"{draw.__name__} has no parameter {name!r}")
        if parameters[name].default not in options:
            raise ValueError(
                f"give {name} of {draw.__name__} a default that is one of {options}:"
                " its slider begins there"
            )


def make_slider(name, options, start):
    """Return a slider over the named `options`."""
    labelled = [
        (f"{value:g}" if isinstance(value, float) else str(value), value)
        for value in options
    ]
    style, layout = {"description_width": "9em"}, Layout(width="100%", max_width="34em")
    return SelectionSlider(
        options=labelled,
        value=start,
        description=name.replace("_", " "),
        style=style,
        layout=layout,
    )


def stack(sliders, frames):
    """Return the pages that the first of the sliders turns over.

    There is one for each of its values: the next of the `frames`, or a stack that the
    other sliders turn over.
    """
    first, *others = sliders
    next_page = partial(stack, others, frames) if others else lambda: HTML(next(frames))
    pages = [next_page() for _ in first.options]
    stacked = Stack(pages, selected_index=first.index)
    jslink((first, "index"), (stacked, "selected_index"))
    return page_only(stacked)


def page_only(widget):
    """Hide `widget` wherever the style sheet of the book does not show it again."""
    widget.layout.display = "none"
    return widget.add_class("amp-page")


def render(draw, size, parameters):
    """Return the picture of `parameters` and its caption as HTML, and the caption."""
    with plt.rc_context(STYLE):
        figure = Figure(size)
        text = draw(figure, **parameters)
        buffer = BytesIO()
        figure.savefig(buffer, format="png")
    alt = escape(inspect.getdoc(draw).splitlines()[0], quote=True)
    source = f"data:image/png;base64,{b64encode(reduce_colours(buffer)).decode()}"
    caption = f"<figcaption>{escape(text)}</figcaption>"
    return f'<figure><img src="{source}" alt="{alt}">{caption}</figure>', text


def reduce_colours(png):
    """Return a picture's bytes with a palette of few colours."""
    small = BytesIO()
    Image.open(png).convert("RGB").quantize(PALETTE).save(
        small, format="png", optimize=True
    )
    return small.getvalue()


def note(n_pictures, live):
    """Return a line for readers without a kernel: what a kernel would add."""
    names = " and ".join(name.replace("_", " ") for name in live)
    sliders = "sliders" if len(live) > 1 else "a slider"
    more = f"adds {sliders} for {names}, and " if live else ""
    where = '<a href="howto.html#howto-run">on Binder or on your own computer</a>'
    return page_only(
        HTML(
            f"<p>This page keeps {n_pictures} stored pictures. Running the chapter"
            f" {where} {more}lets you change the drawing.</p>"
        )
    )
