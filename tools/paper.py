"""Sphinx extension: the book as a PDF, where nothing moves, folds or answers.

What a page hides behind a click is printed if a reader wants it (proofs, hints) and left out if not (checks, code
that only draws). Solutions and the answers of quizzes go to the end of their chapter. Experiments become the picture
with which they begin, in the words of its caption. Slides and the pages of modules stay on the web.
"""

import subprocess
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

from appendices import CAPTION
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.transforms.post_transforms.images import ImageConverter

ROOT = Path(__file__).parents[1]
PDF = ROOT / "dist/book.pdf"
LETTERS = "abcdefghij"
WEB_ONLY = ("book/api/", "book/slides/")
LONG = 30  # rows: Sphinx lets longer tables run over pages, and no longer fits their columns by itself
SHARE_OF_A_FIGURE, SHARE_OF_A_DRAWING = "65%", "85%"  # of a line: their letters then have the size of the text's
WIDE = 5  # columns of a long table that is turned


class Frames(HTMLParser):
    """The pictures of an experiment: for each figure whether it is hidden, its source, its description, its caption."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.in_caption = False

    def handle_starttag(self, tag, attrs):
        """Begin a figure, or note its picture."""
        attributes = dict(attrs)
        if tag == "figure":
            self.found.append({"hidden": "hidden" in attributes, "src": "", "alt": "", "caption": ""})
        elif tag == "img" and self.found:
            self.found[-1] |= {name: attributes.get(name) or "" for name in ("src", "alt")}
        self.in_caption |= tag == "figcaption"

    def handle_endtag(self, tag):
        """End a caption."""
        self.in_caption &= tag != "figcaption"

    def handle_data(self, data):
        """Collect the words of a caption."""
        if self.in_caption and self.found:
            self.found[-1]["caption"] += data


def first_frame(html):
    """Return the picture that an experiment shows before anybody moves a slider, or None if `html` holds none.

    Examples
    --------
    >>> frames = '<figure hidden><img src="1.png"></figure><figure><img src="2.png" alt="A line."><figcaption>Up.'
    >>> frame = first_frame(f'<div class="amp-explore">{frames}</figcaption></figure></div>')
    >>> frame["src"], frame["alt"], frame["caption"]
    ('2.png', 'A line.', 'Up.')
    >>> first_frame("<table></table>")
    """
    if "amp-explore" not in html:
        return None
    frames = Frames()
    frames.feed(html)
    return min(frames.found, key=lambda frame: frame["hidden"], default=None)


class StillPictures(SphinxPostTransform):
    """Make of an experiment its first picture, with the caption below; before myst-nb chooses among the outputs."""

    builders = ("latex",)
    default_priority = 3

    def run(self, **kwargs):
        """Replace every output that has such a picture."""
        for bundle in list(self.document.findall(lambda node: is_part(node, "mime_bundle"))):
            for raw in list(bundle.findall(nodes.raw)):
                if raw.get("format") == "html" and (frame := first_frame(raw.astext())):
                    image = nodes.image(uri=frame["src"], candidates={"?": frame["src"]}, alt=frame["alt"])
                    caption = nodes.paragraph("", "", nodes.Text(frame["caption"]))
                    bundle.replace_self(nodes.container("", image, caption, classes=["amp-picture"]))
                    break


def is_part(node, name):
    """Say whether `node` is what myst-nb calls `name`."""
    return isinstance(node, nodes.container) and node.get("nb_element") == name


class Unfold(SphinxPostTransform):
    """Leave out what is hidden, open what is folded, and gather the answers."""

    builders = ("latex",)
    default_priority = 100

    def run(self, **kwargs):
        """Change the document in place."""
        for cell in list(self.document.findall(lambda node: is_part(node, "cell_code"))):
            hide(cell)
        for box in list(self.document.findall(nodes.container)):
            if box.get("design_component") == "dropdown":
                unfold(box)
        for raw in list(self.document.findall(nodes.raw)):
            if raw.astext() == "<br>":
                raw.replace_self(latex(r"\newline "))
        chapters = {}
        for node in list(self.document.findall(is_answered)):
            chapters.setdefault(chapter_of(node), []).append(node)
        for chapter, answered in chapters.items():
            chapter += answers(chapter, answered)


def hide(cell):
    """Remove a cell, or its code, as its tags ask."""
    mode = cell.get("hide_mode")
    if mode == "all":
        cell.parent.remove(cell)
    elif mode == "input":
        cell.remove(cell[0])


def unfold(box):
    """Make the title of a fold the first words of its text."""
    if box.get("has_title"):
        title = box.pop(0)
        head = nodes.strong("", "", *title.children, nodes.Text("."))
        if not (box.children and isinstance(box[0], nodes.paragraph)):
            box.insert(0, nodes.paragraph())
        box[0].insert(0, [head, nodes.Text(" ")])
    box.attributes.pop("design_component")


def is_solution(node):
    """Say whether `node` is a solution."""
    return type(node).__name__ == "solution_node"


def is_answered(node):
    """Say whether `node` is a solution or a quiz."""
    return is_solution(node) or (isinstance(node, nodes.container) and "quiz" in node["classes"])


def chapter_of(node):
    """Return the outermost section of the page to which `node` belongs."""
    while not isinstance(node.parent, addnodes.start_of_file | nodes.document):
        node = node.parent
    return node


def answers(chapter, answered):
    """Return the last section of a chapter: the solutions of its exercises, and the answers of its quizzes."""
    section = nodes.section("", nodes.title("", "Solutions and answers"), ids=[f"{chapter['ids'][0]}-answers"])
    quizzes = 0
    for node in answered:
        if "quiz" in node["classes"]:
            quizzes += 1
            section += answer(node, quizzes)
        else:
            node.parent.remove(node)
            section += node
    return section


def answer(quiz, number):
    """Return the reasons of a quiz, and leave in it the question and the lettered answers."""
    question, *choices = quiz.children
    right = next(letter for letter, (_, why) in zip(LETTERS, choices, strict=False) if "quiz-right" in why["classes"])
    for _, why in choices:
        verdict = "Right. " if "quiz-right" in why["classes"] else "Not so. "
        why[0].insert(0, nodes.emphasis("", verdict))
    reasons = lettered(why for _, why in choices)
    question[0].insert(0, nodes.strong("", f"Question {number}. "))
    quiz.children = []
    quiz += [question, lettered(text for text, _ in choices)]
    head = nodes.paragraph("", "", nodes.strong("", f"Question {number}: ({right})"))
    return nodes.container("", head, reasons, classes=["quiz-answers"])


def lettered(boxes):
    """Return the contents of `boxes` as a list (a), (b), (c)."""
    items = [nodes.list_item("", *box.children) for box in boxes]
    return nodes.enumerated_list("", *items, enumtype="loweralpha", prefix="(", suffix=")")


class Typeset(SphinxPostTransform):
    """What only LaTeX needs: parts, a first page without headings, numbers of exercises, widths."""

    builders = ("latex",)
    default_priority = 110

    def run(self, **kwargs):
        """Change the document in place."""
        root = self.env.get_doctree(self.config.root_doc)
        toctrees = root.findall(addnodes.toctree)
        parts = [node for node in self.document.findall(is_toctree) if chapter_of(node) is self.document[0]]
        for toctree, part in zip(toctrees, parts, strict=True):
            part.insert(0, latex(part_begins(toctree)))
        for section in list(self.document[0].findall(nodes.section, descend=True)):
            if section.parent is self.document[0]:
                section.replace_self([nodes.rubric("", section[0].astext()), *section[1:]])
        for reference in list(self.document.findall(addnodes.number_reference)):
            self.number(reference)
        for page in self.document.findall(addnodes.start_of_file):
            # By its name sphinx-proof finds the page of a theorem; a curly apostrophe is missing from the names.
            next(page.findall(nodes.section))["names"].append(self.env.titles[page["docname"]].astext().lower())
        for reference in self.document.findall(nodes.reference):
            self.aim(reference)
        for table in list(self.document.findall(nodes.table)):
            fit(table)
        for solution in list(self.document.findall(is_solution)):
            title, *text = solution.children
            solution.replace_self([nodes.rubric("", "", *title.children), *text])  # boxes of code do not break in a box
        for image in self.document.findall(nodes.image):
            image.setdefault("width", SHARE_OF_A_FIGURE if is_output(image) else SHARE_OF_A_DRAWING)

    def number(self, reference):
        """Give a reference to an exercise its number, which LaTeX does not count."""
        exercise = self.env.sphinx_exercise_registry.get(reference.get("refid") or reference["refuri"].split("#")[-1])
        if exercise and "title" in reference:  # else it has words of its own
            label, docname = exercise["node"]["label"], exercise["docname"]
            digits = ".".join(map(str, self.env.toc_fignumbers[docname]["exercise"][label]))
            reference.replace_self(latex(rf"\hyperref[exercise:{label}]{{Exercise {digits}}}"))

    def aim(self, reference):
        """Point a link to a formula or an exercise of another page at the label that it has in LaTeX."""
        docname, _, target = reference.get("refuri", "").removeprefix("%").partition("#")
        if docname.startswith(WEB_ONLY):
            reference["refuri"] = f"{self.config.html_baseurl}/{docname}.html{'#' * bool(target)}{target}"
        if target.startswith("equation-"):
            reference["refuri"] = f"%equation#{docname}:{target.removeprefix('equation-')}"
        elif target in self.env.sphinx_exercise_registry:
            reference["refuri"] = f"%exercise#{target}"


def part_begins(toctree):
    """Return how a part begins in LaTeX: its chapters are numbered, lettered or neither, as those of the site."""
    counted = r"\appendix" if toctree["caption"] == CAPTION else ""
    numbered = r"\numbered" if toctree.get("numbered") else r"\unnumbered"
    return rf"\bookpart{{{toctree['caption']}}}{numbered}{counted}"


def is_output(node):
    """Say whether a cell has drawn `node`."""
    while node is not None and not is_part(node, "cell_code"):
        node = node.parent
    return node is not None


def is_toctree(node):
    """Say whether `node` holds the chapters of a part."""
    return isinstance(node, nodes.compound) and "toctree-wrapper" in node["classes"]


def latex(text):
    """Return a node that is `text` in LaTeX and nothing elsewhere."""
    return nodes.raw("", text, format="latex")


def fit(table):
    """Give the columns of a long table widths in proportion to what they hold; lay a long and wide one on its side."""
    rows = [row.children for row in table.findall(nodes.row)]
    if len(rows) <= LONG:
        return
    for column, cells in zip(table.findall(nodes.colspec), zip(*rows, strict=True), strict=True):
        lengths = [len(cell.astext()) for cell in cells]
        words = [len(word) for cell in cells for word in cell.astext().split()]
        column["colwidth"] = min(40, max(sum(lengths) // len(lengths), max(words, default=1)))
    table["classes"].append("colwidths-given")
    if len(rows[0]) >= WIDE:
        table.replace_self([latex(r"\begin{landscape}\scriptsize"), table, latex(r"\end{landscape}")])


class Drawings(ImageConverter):
    """SVG as PDF, for LaTeX."""

    conversion_rules = [("image/svg+xml", "application/pdf")]

    def is_available(self):
        """The Makefile says what is missing."""
        return True

    def convert(self, source, target):
        """Write the PDF."""
        subprocess.run(["rsvg-convert", "--format", "pdf", "--output", target, source], check=True)
        return True


def leave_out(app, document):
    """Take from the contents of paper what is on the web only; after those who collect the contents."""
    if app.builder.name == "latex":
        for toctree in document.findall(addnodes.toctree):
            toctree["includefiles"] = [name for name in toctree["includefiles"] if not name.startswith(WEB_ONLY)]


def prepare(app):
    """Set what differs between a page and paper."""
    if app.builder.name == "latex":  # where myst-nb would print the words of a drawing: SVG it takes for unknown
        app.config.nb_mime_priority_overrides = [("latex", "image/svg+xml", 15)]
    elif app.builder.format == "html" and PDF.exists():
        app.tags.add("downloads")
        app.config.html_extra_path = [*app.config.html_extra_path, str(PDF)]


def set_version(app, config):
    """Take the version from the package, and the licences from the foot of the pages."""
    config.version = config.release = version("amptutorial")
    config.latex_elements["preamble"] = (
        rf"\newcommand\licences{{{config.html_theme_options['extra_footer']}}}\usepackage{{paper}}"
    )


def setup(app):
    """Register everything."""
    app.connect("config-inited", set_version)
    app.connect("builder-inited", prepare, priority=100)
    app.connect("doctree-read", leave_out, priority=999)
    for transform in (StillPictures, Unfold, Typeset, Drawings):
        app.add_post_transform(transform)
    return {"parallel_read_safe": True}
