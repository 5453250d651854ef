"""What readers expect of an online book, besides its text: a reference by module, previews of links, a way back."""

import json
import pkgutil
import re
import tomllib
from datetime import date
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree

import pytest
import yaml
from PIL import Image
from playwright.sync_api import expect
from render_pages import DOOR, STEPS, data_flow, module_page
from test_browser import CHAPTER, REDIRECTS, address, browser, opened, parse, site

import amptutorial

ROOT = Path(__file__).parents[1]
MODULES = data_flow()
BRIEFS = sorted((ROOT / "course/assignments").glob("*/brief.ipynb"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_reference_has_a_page_for_every_public_module():
    flat = {name for _, name, _ in pkgutil.iter_modules(amptutorial.__path__) if not name.startswith("_")}
    folders = {"book", "cluster", "paper"}
    inside = pkgutil.iter_modules([ROOT / "amptutorial" / name for name in folders])
    within = {f"{Path(found.module_finder.path).name}.{found.name}" for found in inside}
    assert set(MODULES) == flat - folders | within


TABLE = re.compile(r'<table class="autosummary.*?</table>', re.DOTALL)


def test_on_the_page_of_a_module_what_readers_call_comes_before_the_steps_of_other_modules():
    readers, others = module_page("amp").split(STEPS)
    assert readers.index(" biased_low_rank_amp") < readers.index(" AMPRun") < readers.index(" half_step")
    assert "check_start" not in readers
    assert others.index("function:: biased_low_rank_amp") < others.index("function:: check_start")


@pytest.mark.parametrize("module", MODULES)
def test_a_page_of_the_reference_sums_up_what_it_describes_in_its_order_and_links_its_source(site, module):
    text = (site / f"book/api/{module}.html").read_text()
    described = re.findall(rf'<dt class="[^"]*\bpy" id="(amptutorial\.{module}\.\w+)">', text)
    summed_up = [name for table in TABLE.findall(text) for name in re.findall(r'href="#([\w.]+)"', table)]
    assert described and "viewcode-link" in text
    assert (summed_up or described[:1]) == described


def test_the_reference_links_every_name_at_the_door(site):
    tables = TABLE.findall((site / "book/api.html").read_text())
    links = [link for table in tables for link in re.findall(r'href="([^"]*)#(amptutorial[\w.]*)"', table)]
    names = [name.rpartition(".")[2] for _, name in links]
    assert names == [name for names in DOOR.values() for name in names] and set(names) == set(amptutorial.__all__)
    assert all(not page or name in parse(site / "book" / page).names for page, name in links)


def pages(site):
    """Return the pages, without the addresses that only lead on to one."""
    found = sorted((site / "book").rglob("*.html")) + sorted((site / "course").rglob("*.html"))
    return [path for path in found if str(path.relative_to(site).with_suffix("")) not in REDIRECTS]


def test_old_addresses_lead_to_pages(site):
    for old, new in REDIRECTS.items():
        assert new in (site / f"{old}.html").read_text()
        assert (site / old).parent.joinpath(new).is_file(), new


def meta(path):
    return dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)"', path.read_text()))


def test_every_page_describes_itself_and_names_the_version(site):
    said = {path: meta(path) for path in pages(site)}
    assert all(f"Version {amptutorial.__version__}." in path.read_text() for path in said)
    wordless = [path.stem for path, tags in said.items() if not 20 < len(tags.get("description", "")) <= 200]
    assert set(wordless) <= {"bibliography", *MODULES}  # a list has no text, a module may have a table alone
    for path, tags in said.items():
        assert tags["og:title"] and tags["og:url"].endswith(path.relative_to(site).as_posix())
        root = tags["og:url"].removesuffix(path.relative_to(site).as_posix())
        assert (site / tags["og:image"].removeprefix(root)).is_file()
    chapters = [tags["description"] for path, tags in said.items() if re.match(r"\d\d_", path.stem)]
    assert len(set(chapters)) == len(chapters)
    tag, chapter = f"v{amptutorial.__version__}", "book/09_state_evolution"
    text = (site / f"{chapter}.html").read_text()  # chapters start at the release
    assert f"https://mybinder.org/v2/gh/amptutorial/amptutorial/{tag}?urlpath=lab/tree/{chapter}.ipynb" in text
    assert f"https://colab.research.google.com/github/amptutorial/amptutorial/blob/{tag}/{chapter}.ipynb" in text


def test_the_card_and_the_icon_are_small(site):
    card = (1200, 630), 100_000
    for name, (size, weight) in (("social", card), ("stripes", card), ("icon", ((180, 180), 10_000))):
        path = site / f"_static/{name}.png"
        with Image.open(path) as image:
            assert image.size == size and path.stat().st_size < weight


def test_the_sitemap_lists_the_pages(site):
    root = f"{PROJECT['urls']['Homepage']}/"
    listed = re.findall(r"<loc>(.*?)</loc>", (site / "sitemap.xml").read_text())
    assert listed == sorted(urljoin(root, path.relative_to(site).as_posix()) for path in pages(site))
    assert f"Sitemap: {root}sitemap.xml" in (site / "robots.txt").read_text()
    days = re.findall(r"<lastmod>(.*?)</lastmod>", (site / "sitemap.xml").read_text())
    assert len(days) == len(listed) * (ROOT / ".git").exists()
    assert all(date.fromisoformat(day) <= date.today() for day in days)


def test_a_feed_has_the_versions_of_the_changelog(site):
    feed = ElementTree.parse(site / "feed.xml").getroot()
    atom = {"": "http://www.w3.org/2005/Atom"}
    versions = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert [entry.findtext("title", namespaces=atom) for entry in feed.findall("entry", atom)] == versions
    for part in (feed, *feed.findall("entry", atom)):  # what the format demands of both
        named, title, updated = (part.findtext(name, namespaces=atom) for name in ("id", "title", "updated"))
        assert named.startswith("https://") and title and re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", updated)
    assert feed.findtext("author/name", namespaces=atom) and "<li>" in feed.findtext("entry/content", namespaces=atom)
    for page in (site / "book/changelog.html", site / f"{CHAPTER}.html"):
        link = re.search(r'<link rel="alternate" type="application/atom\+xml"[^>]* href="([^"]+)"', page.read_text())
        assert (page.parent / link[1]).samefile(site / "feed.xml")
    assert '<a href="../feed.xml">' in (site / "book/changelog.html").read_text()


def test_the_first_address_and_a_missing_page_lead_to_pages(site):
    text = (site / "index.html").read_text()
    assert "<title>How well can embeddings be learned?</title>" in text
    assert len(meta(site / "index.html")["description"]) > 50
    assert (site / re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', text)[1]).is_file()
    prefix = f"{PROJECT['urls']['Homepage'].partition('.io')[2]}/"
    links = re.findall(r'(?:href|action)="([^"]+)"', (site / "404.html").read_text())
    assert len(links) > 3
    assert all(link.startswith(prefix) and (site / link.removeprefix(prefix)).is_file() for link in links)


@pytest.mark.parametrize("path", BRIEFS, ids=lambda path: path.parent.name)
def test_a_brief_has_only_what_plain_jupyter_shows(path):
    cells = json.loads(path.read_text())["cells"]
    prose = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert not re.findall(r"\{[\w:]+\}`|^:{3,}.*|^`{3,}\{.*|^\([\w-]+\)=", prose, re.MULTILINE)
    links = re.findall(r"\]\(([^)#]+)", prose)
    assert len(links) > 2 and all((path.parent / link).is_file() for link in links)


def test_the_ledger_finds_and_orders(opened):
    page = opened("book/ledger.html")
    find = page.get_by_role("searchbox", name="Find", exact=True)
    status, order = (page.get_by_role("combobox", name=name, exact=True) for name in ("Status", "Order"))
    rows, count = page.locator("#the-ledger tbody tr:visible"), page.locator(".ledger-controls output")
    expect(count).to_have_text("89 of 89 statements")
    first = rows.first.inner_text()
    status.select_option("stated")
    expect(count).to_have_text("1 of 89 statements")
    expect(rows).to_have_count(1)
    status.select_option("any")
    find.fill("regularis row")
    expect(rows.first).to_contain_text(re.compile("regularis", re.IGNORECASE))
    assert 0 < rows.count() < 20
    find.fill("")
    order.select_option("by “taught in”")
    taught = page.locator("#the-ledger tbody td:nth-child(3)").all_inner_texts()
    assert len(taught) == 89 and taught == sorted(taught, key=str.lower)
    order.select_option("of the paper")
    expect(rows.first).to_have_text(first, use_inner_text=True)


def test_the_index_of_the_errata_names_every_entry_before_any_script(site):
    text = (site / "book/errata.html").read_text()
    entries = re.findall(r'<span id="erratum-(\d+)"></span><h3>(.*?)<a class="headerlink"', text, re.DOTALL)
    index = text[text.index("<output>") : text.index('id="errata-wrong"')]
    named = re.findall(r'href="#erratum-(\d+)"><span class="std std-ref">(.*?)</span></a>', index, re.DOTALL)
    titles = [(number, re.sub("<.*?>", "", title)) for number, title in entries]
    assert named == sorted(titles, key=lambda one: int(one[0]))
    assert f"<output>{len(entries)} of {len(entries)} entries</output>" in index
    kinds = set(re.findall(r"<td><p>(.*?)</p></td>\s*</tr>", index))
    assert kinds == set(re.findall(r"<option>(.*?)</option>", text)) and '<input type="search"' in text


def test_letters_lead_to_the_first_entry_of_each_in_the_glossary(site):
    text = (site / "book/glossary.html").read_text()
    entries = re.findall(r'<dt id="(term-[^"]+)">(\w)', text)
    first = {letter.upper(): name for name, letter in reversed(entries)}
    letters = [(letter, name) for name, letter in re.findall(r'<a href="#([^"]+)">(\w)</a>', text)]
    assert letters == sorted(first.items())


def test_an_appendix_has_a_letter_wherever_it_is_named(site):
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    chapters = next(part["chapters"] for part in parts if part["caption"] == "Appendices")
    names = {letter: chapter["file"] for letter, chapter in zip("ABCD", chapters, strict=True)}
    texts = {name: (site / f"{name}.html").read_text() for name in (*names.values(), CHAPTER, "book/ledger")}
    found = (site / "searchindex.js").read_text()
    for letter, name in names.items():
        number, title = re.search(r'<h1><span class="section-number">(.*?)</span>(.*?)<a', texts[name]).groups()
        assert number == f"{letter}. "
        plain = number + title
        assert plain in found
        for text in texts.values():  # the contents at the left
            assert plain in re.sub("<.*?>", "", text[text.index("bd-sidebar-primary") : text.index("bd-main")])
        counted = re.findall(r'(?:section|caption)-number">(?:[A-Z][a-z]+ )?(\w+)\.\d+|eqno">\((\w+)\.', texts[name])
        assert len(counted) > 3 and {first or second for first, second in counted} == {letter}
    before = [re.search(r'left-prev.*?section-number">(\w+)', texts[name], re.DOTALL)[1] for name in names.values()]
    assert before == ["18", "A", "B", "C"]
    assert re.search(r'more/evolution\.html#thm-se-amp">Theorem B\.\d', "".join(texts.values()))


def test_the_ledger_links_each_test_to_its_line(site):
    link = r'href="[^"]*/blob/main/tests/(\w+\.py)#L(\d+)"><code[^>]*>(.*?)</code>'
    links = re.findall(link, (site / "book/ledger.html").read_text())
    assert len(links) > 89
    for file, line, name in links:
        text = re.sub("<.*?>", "", name)
        stem, function = text.split("::")
        assert file == f"test_{stem}.py"
        assert f"def test_{function}(" in (ROOT / "tests" / file).read_text().splitlines()[int(line) - 1]


def test_a_link_shows_where_it_leads(opened):
    """The mouse rests on the first such link, and goes away again."""
    page = opened(f"{CHAPTER}.html")
    box = page.locator("#preview")
    for link, shown in (
        ("='07_biased_low_rank_amp.html#ch-amp'", r"7\. Biased low-rank AMP\s*\w+ \w+ \w+"),
        ("^='05_denoisers.html#prop-'", r"Proposition 5\.\d+"),
        ("^='#equation-'", r"\(9\.\d+\)"),
        ("^='#fig-'", r"Fig\. 9\.\d+"),
        ("^='bibliography.html#'", r"(19|20)\d\d"),
    ):
        expect(box).to_be_hidden()
        page.locator(f"article a[href{link}]:visible").first.hover()
        expect(box).to_contain_text(re.compile(shown))
        expect(box).to_be_visible()
        page.mouse.move(1, 1)
    expect(box).to_be_hidden()


def test_a_preview_shows_each_of_its_pictures(opened):
    """A second picture is put into a figure first: none of the book has two."""
    chapter = opened(f"{CHAPTER}.html")
    link = chapter.locator("article a[href^='#fig-']:visible").first
    figure = chapter.locator(link.get_attribute("href")).locator("visible=true").first
    second = "document.querySelector('.amp-explore img').cloneNode()"
    figure.evaluate(f"figure => figure.querySelector('img').after({second})")
    sources = "pictures => pictures.map(picture => picture.src)"
    expected = figure.locator("img").evaluate_all(sources)
    link.hover()
    expect(chapter.locator("#preview")).to_be_visible()
    assert chapter.locator("#preview img").evaluate_all(sources) == expected and len(set(expected)) == 2


def test_a_preview_answers_the_keyboard_and_sets_mathematics_and_a_finger_needs_none(opened):
    page = opened(f"{CHAPTER}.html", has_touch=True)
    box = page.locator("#preview")
    far = page.locator("article a[href*='.html#prop-'], article a[href*='.html#thm-']").first
    far.scroll_into_view_if_needed()
    far.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(far).to_be_focused()
    expect(box).to_be_visible()
    expect(box.locator("mjx-container").first).to_be_visible()
    assert not box.locator("mjx-merror, a, [id]").count()
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(far).to_be_focused()
    page.locator("article a[href='07_biased_low_rank_amp.html#ch-amp']:visible").first.tap()
    page.wait_for_url("**/07_biased_low_rank_amp.html#ch-amp")
    expect(page.locator("#preview")).to_be_hidden()
