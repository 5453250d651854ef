"""What readers of ePub refuse and Sphinx writes, mended in the finished archive: epubcheck finds no error in its pages.

Sphinx lists no formula in the manifest, packs every file of the pages, and takes drawings as Matplotlib wrote them.
"""

import re
from xml.etree import ElementTree
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

CONTENTS = "content.opf"
MATHML = "http://www.w3.org/1998/Math/MathML"
STYLES = ("epub.css", "pygments.css", "book.css")
ITEM = re.compile(r'\s*<item id="(?P<id>[^"]*)" href="(?P<href>[^"]*)"[^>]*?(?P<end> ?/>)')
AGAIN = re.compile(r' id="(?:proof|exercise|solution)-content"')  # of every theorem, every exercise
DOCTYPE = re.compile(r"<!DOCTYPE[^>]*>\s*")
SPACE = re.compile(r"<path(?![^>]*\sd=)")  # a glyph that draws nothing


def mend_page(page):
    """Return a page whose identifiers are its own.

    >>> mend_page('<section id="proof-content"><p id="lemma">')
    '<section><p id="lemma">'
    """
    return AGAIN.sub("", page)


def mend_formula(formula):
    """Return MathML whose fractions say their size where it is allowed.

    >>> mend_formula('<math><mfrac displaystyle="false" scriptlevel="0"><mn>1</mn><mn>2</mn></mfrac></math>')
    '<math><mstyle displaystyle="false" scriptlevel="0"><mfrac><mn>1</mn><mn>2</mn></mfrac></mstyle></math>'
    """
    ElementTree.register_namespace("", MATHML)
    tree = ElementTree.fromstring(formula)
    for parent in list(tree.iter()):
        for place, child in enumerate(list(parent)):
            if child.tag.endswith("mfrac") and child.attrib:
                style = ElementTree.Element(child.tag.replace("mfrac", "mstyle"), child.attrib)
                style.tail, child.tail, child.attrib = child.tail, None, {}
                style.append(child)
                parent[place] = style
    return ElementTree.tostring(tree, encoding="unicode")


def mend_drawing(drawing):
    """Return a drawing that asks no other host for its grammar.

    >>> mend_drawing('<!DOCTYPE svg PUBLIC "-//W3C" "svg11.dtd"><svg><path id="space"/><path d="M0 0"/></svg>')
    '<svg><path d="M0 0" id="space"/><path d="M0 0"/></svg>'
    """
    return SPACE.sub('<path d="M0 0"', DOCTYPE.sub("", drawing))


def mend_contents(contents, files):
    """Return the manifest of the `files` that are packed, by name, with what is special about a page.

    >>> print(mend_contents('<item id="a" href="a.xhtml" /><item id="b" href="b.js" />', {"a.xhtml": "<math>"}))
    <item id="a" href="a.xhtml" properties="mathml" />
    """

    def item(found):
        name = found["href"]
        if name not in files:
            return ""
        kinds = [kind for kind, tag in (("mathml", "<math"), ("svg", "<svg")) if tag in files[name]]
        if not kinds or not name.endswith(".xhtml") or "properties=" in found[0]:
            return found[0]
        return found[0].removesuffix(found["end"]) + f' properties="{" ".join(kinds)}"{found["end"]}'

    return ITEM.sub(item, contents)


def mend(path):
    """Write an ePub anew, with what its pages use of the static files."""
    with ZipFile(path) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    pages = {name: mend_page(file.decode()) for name, file in packed.items() if name.endswith(".xhtml")}
    drawings = {name: mend_drawing(file.decode()) for name, file in packed.items() if name.endswith(".svg")}
    packed |= {name: text.encode() for name, text in (pages | drawings).items()}
    styles = [packed[f"_static/{name}"].decode() for name in STYLES if f"_static/{name}" in packed]
    used = "".join((*pages.values(), *styles))
    for name in list(packed):
        own = name.removeprefix("_static/")
        if own != name and own not in STYLES and own not in used:
            del packed[name]
    listed = dict.fromkeys(packed, "") | pages
    packed[CONTENTS] = mend_contents(packed[CONTENTS].decode(), listed).encode()
    with ZipFile(path, "w") as archive:
        for name, file in packed.items():
            archive.writestr(name, file, ZIP_STORED if name == "mimetype" else ZIP_DEFLATED)
