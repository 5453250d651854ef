"""Sphinx extension: in a docstring, |x| is a norm. reStructuredText would take it for the name of a substitution."""

import re

CODE_OR_BAR = re.compile(r"(`+).*?\1|\|")


def escape_bars(line):
    r"""Return `line` with the bars outside code escaped.

    Examples
    --------
    >>> print(escape_bars("The mean of |u|^2, see `a | b`."))
    The mean of \|u\|^2, see `a | b`.
    """
    if line.lstrip().startswith((">>>", "...")):
        return line
    return CODE_OR_BAR.sub(lambda match: r"\|" if match[0] == "|" else match[0], line)


def escape_docstring(app, what, name, obj, options, lines):
    """Escape the bars of one docstring in place, as autodoc asks."""
    lines[:] = map(escape_bars, lines)


def setup(app):
    """Run before numpydoc, which comes at the default priority of 500."""
    app.connect("autodoc-process-docstring", escape_docstring, priority=400)
    return {"parallel_read_safe": True}
