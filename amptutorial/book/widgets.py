"""Experiments for the reader's own hands: sliders, and pictures that follow them.

One description of an experiment has three faces. A page without a kernel holds one
picture for each combination of the *stored* parameters, and native sliders that turn
these pictures. A notebook with a kernel shows widgets that draw anew, with sliders for
the *live* parameters too. Where Python runs in the page, the native sliders of all
parameters do so as well. The extra ``run`` brings what draws.
"""

import inspect
import json
import re
import sys
from base64 import b64encode
from functools import cache, cached_property
from html import escape
from io import BytesIO
from itertools import product
from math import isclose
from xml.sax.saxutils import quoteattr

import numpy as np

from .._extras import extra
from ..neighbours import nearest_words
from .figures import INCH, STYLE

with extra("run"):
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

NEAR, LEVELS = 6, 1023  # words that a field names; steps of a number that it keeps
PALETTE = 64  # colours of a stored picture: enough for smooth edges, in fewer bytes
HIDDEN = ' hidden="hidden"'  # with a value: JupyterLab drops the word alone
FAST_PNG = {"compress_level": 1}  # compression would take longer than drawing
IN_PAGE = sys.platform == "emscripten"  # there are no ipywidgets


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
        The values of the parameters that need a kernel. Those of a stored parameter
        refine it: its slider has them where Python runs. They contain the stored ones,
        up to round-off.
    size : (float, float)
        Width and height of the figure, in inches.

    Returns
    -------
    SliderExperiment

    Raises
    ------
    ValueError
        If a parameter is not one of `draw`'s, has no default, or a default that is not
        among its values; if `draw` has no docstring or nothing is stored; if `live`
        refines a stored parameter and leaves out a stored value.

    Examples
    --------
    >>> def draw(figure, power=1):
    ...     '''Draw a power of x.'''
    ...     figure.subplots().plot([0, 1, 2], [0, 1, 2**power])
    ...     return f"The curve ends at {2**power}."
    >>> experiment = explore(draw, stored={"power": [1, 2, 3]})
    >>> experiment.page().count("<figure"), experiment.widgets.children[0].index
    (3, 0)
    >>> "The curve ends at 4." in experiment.figure([1])
    True
    """
    stored = {name: tuple(options) for name, options in stored.items()}
    values = dict(stored)
    for name, options in (live or {}).items():
        values[name] = tuple(_settled(x, stored.get(name, ())) for x in options)
    _check_experiment(draw, stored, values)
    return _SliderExperiment(draw, stored, values, size)


def _settled(option, stored):
    """Return the stored value that an option is up to round-off, or the option."""
    same = (x for x in stored if isinstance(x, float) and isclose(x, option))
    return next(same, option)


class _SliderExperiment:
    """Sliders and pictures, in the form that the place where they are shown needs.

    All parameters have `values`, and the `stored` ones come first: tuples by name.
    """

    def __init__(self, draw, stored, values, size):
        self.draw, self.stored, self.values, self.size = draw, stored, values, size
        parameters = inspect.signature(draw).parameters
        self.defaults = {name: parameters[name].default for name in values}
        self.start = [values[name].index(self.defaults[name]) for name in values]
        self.drawn = cache(self._drawn)  # nothing is drawn twice

    def _drawn(self, *chosen):
        """Return the picture of the `chosen` indices, as PNG, and its sentence."""
        pairs = zip(self.values.items(), chosen, strict=True)
        with plt.rc_context(STYLE):
            figure = Figure(self.size, dpi=2 * INCH)
            parameters = {name: options[k] for (name, options), k in pairs}
            text = self.draw(figure, **parameters)
            buffer = BytesIO()
            # `savefig` would draw everything twice, the first time for the layout
            FigureCanvasAgg(figure).print_png(buffer, pil_kwargs=FAST_PNG)
        return buffer.getvalue(), text

    def figure(self, chosen):
        """Return the picture of the `chosen` indices and its sentence as HTML."""
        return self._figure(*self.drawn(*chosen))

    def _figure(self, png, text, attributes=""):
        alt = escape(inspect.cleandoc(self.draw.__doc__).splitlines()[0], quote=True)
        width, height = (round(INCH * side) for side in self.size)
        return (
            f"<figure{attributes}>"
            f'<img src="data:image/png;base64,{b64encode(png).decode()}" alt="{alt}"'
            f' width="{width}" height="{height}" style="max-width: 100%; height: auto">'
            f"<figcaption>{escape(text)}</figcaption></figure>"
        )

    def stored_choices(self):
        """Return the indices of all stored pictures."""
        places = [
            [self.values[name].index(option) for option in options]
            for name, options in self.stored.items()
        ]
        fixed = self.start[len(self.stored) :]
        return [[*chosen, *fixed] for chosen in product(*places)]

    def page(self):
        """Return the experiment for a page without a kernel, as HTML.

        The picture of the defaults is seen where no script runs; sliders are not.
        """
        figures = []
        for chosen in self.stored_choices():
            png, text = self.drawn(*chosen)
            hidden = "" if chosen == self.start else HIDDEN
            figures.append(self._figure(_reduce_colours(png), text, hidden))
        sliders = box(self.stored, self.defaults, figures)
        return sliders + note(len(figures), self.stored, self.values)

    def live_page(self):
        """Return the experiment for a page with Python in it, as HTML.

        The script of the page asks for pictures by a name that is put among those of
        the cells: one for each cell and function, which lives as long as they do.
        """
        place = f"_{self.draw.__code__.co_filename}_{self.draw.__name__}"
        name = re.sub(r"\W", "_", place)
        self.draw.__globals__[name] = self
        figure = self.figure(self.start)
        return box(self.values, self.defaults, [figure], f' data-name="{name}"')

    @cached_property
    def widgets(self):
        """Sliders of a notebook with a kernel, and the picture that they draw anew."""
        with extra("run"):
            from ipywidgets import HTML, Layout, SelectionSlider, VBox

        sliders = [
            SelectionSlider(
                options=[(label(x), k) for k, x in enumerate(options)],
                value=options.index(self.defaults[name]),
                description=_readable(name),
                style={"description_width": "9em"},
                layout=Layout(width="100%", max_width="34em"),
            )
            for name, options in self.values.items()
        ]
        picture = HTML(self.figure(self.start))

        def follow(change):
            try:
                picture.value = self.figure([slider.value for slider in sliders])
            # or the last picture would stay, and the error be in a log nobody opens
            except Exception as error:
                picture.value = f"<pre>{escape(repr(error))}</pre>"
                raise

        for slider in sliders:
            slider.observe(follow, "value")
        return VBox([*sliders, picture])

    def _repr_mimebundle_(self, **kwargs):
        if IN_PAGE:
            _, text = self.drawn(*self.start)
            return {"text/html": self.live_page(), "text/plain": text}
        stored = {"text/html": self.page(), "text/plain": self.words()}
        return self.widgets._repr_mimebundle_(**kwargs) | stored

    def words(self):
        """Return what the stored pictures say: tests compare a run with this text."""
        texts = [self.drawn(*chosen)[1] for chosen in self.stored_choices()]
        first = "Run this notebook to see pictures with sliders here. They show:"
        return "\n".join([first, *texts])


def _check_experiment(draw, stored, values):
    """Raise a ValueError if something is missing from an experiment."""
    if not stored:
        raise ValueError("stored is empty: name a parameter whose pictures are kept")
    for name, options in stored.items():
        if left_out := set(options) - set(values[name]):
            lost = ", ".join(map(label, sorted(left_out)))
            raise ValueError(f"live leaves out stored values of {name}: add {lost}")
    if not inspect.getdoc(draw):
        raise ValueError(f"{draw.__name__} has no docstring, the picture's words")
    parameters = inspect.signature(draw).parameters
    for name, options in values.items():
        if name not in parameters:
            raise ValueError(f"{draw.__name__} has no parameter {name!r}")
        if parameters[name].default not in options:
            wanted = f"a default that is one of {options}: its slider begins there"
            raise ValueError(f"give {name} of {draw.__name__} {wanted}")


def _readable(name):
    """Return the name of a parameter as it is read."""
    return name.replace("_", " ")


def label(value):
    """Return a value as it is read."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def box(values, defaults, figures, attributes=""):
    """Return native sliders over the `values` of parameters and `figures`, as HTML.

    The script of the page shows the sliders, which could do nothing without it.
    """
    sliders = [_slider(name, each, defaults[name]) for name, each in values.items()]
    return (
        f'<div class="amp-explore"{attributes}>'
        f'<div class="amp-sliders"{HIDDEN}>{"".join(sliders)}</div>'
        f'<div class="amp-pictures" aria-live="polite">{"".join(figures)}</div></div>'
    )


def _slider(name, options, default):
    """Return a native slider over the labels of the `options`, as HTML."""
    labels, start = [label(value) for value in options], options.index(default)
    shown = escape(labels[start])
    return (
        f'<div class="amp-slider"><label>{escape(_readable(name))} <input type="range"'
        f' max="{len(labels) - 1}" value="{start}" autocomplete="off"'
        f' data-labels="{escape(json.dumps(labels))}" aria-valuetext="{shown}"></label>'
        f'<output aria-live="off">{shown}</output></div>'
    )


def _reduce_colours(png):
    """Return a picture's bytes with a palette of few colours."""
    picture, small = Image.open(BytesIO(png)).convert("RGB"), BytesIO()
    picture.quantize(PALETTE).save(small, format="png", optimize=True)
    return small.getvalue()


def note(n_pictures, stored, values):
    """Return a line for readers without a kernel, as HTML: what a kernel would add.

    It adds sliders for parameters that are not `stored`, and steps to others.

    Examples
    --------
    >>> print(note(3, {"signal": (1, 2)}, {"signal": range(61), "seed": (0, 1)}))
    <p class="amp-note">3 stored pictures. Live, it has a slider for seed too, signal \
has 61 steps, and its code can be changed.</p>
    """
    new = [_readable(name) for name in values if name not in stored]
    finer = [name for name, options in stored.items() if options != values[name]]
    sliders = "sliders" if len(new) > 1 else "a slider"
    more = [f"it has {sliders} for {' and '.join(new)} too"] if new else []
    more += [f"{_readable(name)} has {len(values[name])} steps" for name in finer]
    before = f"{', '.join(more)}, and " if more else ""
    return (
        f'<p class="amp-note">{n_pictures} stored pictures. Live, {escape(before)}its'
        " code can be changed.</p>"
    )


class ScriptedExperiment:
    """An experiment that a script draws on the page, in place of its stored pictures.

    Parameters
    ----------
    experiment : SliderExperiment
        What a notebook with a kernel shows. A page without scripts, and paper, have its
        picture of the defaults.
    script : str
        The name of the script.
    model : dict
        The numbers from which it draws.

    Examples
    --------
    >>> def draw(figure, power=1):
    ...     '''Draw a power of x.'''
    ...     return "It is drawn."
    >>> experiment = explore(draw, stored={"power": [1, 2, 3]})
    >>> page = ScriptedExperiment(experiment, "powers", {"most": 3}).page()
    >>> "amp-powers" in page, "most" in page, page.count("<figure")
    (True, True, 1)
    """

    def __init__(self, experiment, script, model):
        self.experiment, self.script, self.model = experiment, script, model

    def page(self):
        """Return the experiment as HTML: numbers for the script, and one picture."""
        still = self.experiment.figure(self.experiment.start)
        model = quoteattr(json.dumps(self.model))
        return f'<div class="amp-{self.script}" data-model={model}>{still}</div>'

    def _repr_mimebundle_(self, **kwargs):
        bundle = self.experiment._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": self.page()}


class WordField:
    """Fields for any word, and for sentences, beside words: a page needs no Python.

    Parameters
    ----------
    words : array of str, shape (n,)
        The vocabulary.
    rows : array (n, d)
        Their embeddings.
    deviations : array (d,)
        Standard deviations of the embeddings of documents, such that the inner product
        of one with a row is an association.
    shares : array (n,)
        The frequencies of the words, which add up to 1.
    word : str
        With which the field for words begins.
    texts : str
        With which that for sentences begins, one a line.

    Examples
    --------
    >>> rows = np.array([[2.0, 0.1], [1.0, 0.0], [0.0, 3.0]])
    >>> shares = np.array([0.2, 0.3, 0.5])
    >>> names = ["fft", "dft", "tree"]
    >>> field = WordField(names, rows, np.ones(2), shares, "dft", "A dft of a dft")
    >>> print(field.words())
    dft: fft tree
    """

    def __init__(self, words, rows, deviations, shares, word, texts):
        self.vocabulary, self.rows = np.asarray(words), np.asarray(rows, float)
        self.deviations, self.shares = deviations, shares
        self.word, self.texts = word, texts

    def words(self):
        """Return the neighbours of the first word, as text."""
        near = nearest_words(self.rows, self.vocabulary, self.word, NEAR)
        return f"{self.word}: {' '.join(near)}"

    def page(self):
        """Return the fields as HTML; the script of the page makes them."""
        unit = np.abs(self.rows).max() / LEVELS
        whole = np.round(self.rows / unit).astype("<i2")
        halves = whole.view(np.uint8).reshape(-1, 2).T  # low bytes first: fewer zipped
        model = {
            "words": self.vocabulary.tolist(),
            "rows": b64encode(halves.tobytes()).decode(),
            "unit": float(unit),
            "deviations": np.asarray(self.deviations, float).tolist(),
            "shares": np.round(1e6 * self.shares).astype(int).tolist(),
        }
        data = {"model": json.dumps(model), "word": self.word, "texts": self.texts}
        attributes = (f" data-{name}={quoteattr(text)}" for name, text in data.items())
        return (
            f'<div class="amp-words"{"".join(attributes)}>'
            f"<p>{escape(self.words())}</p><p></p></div>"
        )

    def _repr_mimebundle_(self, **kwargs):
        return {"text/html": self.page(), "text/plain": self.words()}
