/* How the search of the book ranks pages, and what it shows of each. Stands in Sphinx's own script, before it begins.

   The index has the pages of a word in the order of how much they say of it: tools/search_pages.py. */
(() => {
  const MOST = 20; // results: each page is fetched for its excerpt
  const NO_TEXT = ".headerlink, script, style, .bd-header-article, #jb-print-docs-body, .highlight, summary, .amp-words, "
    + ".letters, .ledger-controls, .chapter-foot, mjx-assistive-mml";

  const asked = () => (document.querySelector("#pst-search-dialog input")?.value
    || new URLSearchParams(location.search).get("q") || "").trim();

  /* Where a title has what is asked for, word for word; it begins with the number of its chapter. */
  const placeIn = (title) => {
    const words = (text) => ` ${text.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join(" ")} `;
    return words(title).indexOf(words(asked().replace(/^chapter (?=\d)/i, "")));
  };

  /* Whether what is asked for is the name of an object, and cannot be meant as a word: it has a sign, or its capitals. */
  const isCalled = (name) => {
    const last = name.split(".").pop();
    const plain = !/_|[a-z][A-Z]|[A-Z]{2}/.test(last);
    return [last, name].some((one) => plain && one === last ? /^[A-Z]/.test(one) && one === asked()
      : one.toLowerCase() === asked().toLowerCase());
  };

  /* Names of code come first if they are asked for, and else last; titles with the very words before other pages. */
  Object.assign(Scorer, {
    objNameMatch: 7,
    objPartialMatch: 2,
    objPrio: { 0: 0, 1: 0, 2: -5 },
    score: ([page, title, , description, score]) => {
      if (description) return isCalled(title) ? 100 : score;
      if (title.startsWith("amptutorial")) return score;
      const place = placeIn(title);
      return score + 20 * Number(place === 0) + 9 * Number(place > 0 && page.startsWith("book/"));
    },
  });

  /* A page has a share of each word, the more the earlier it stands in the list of the word. Rare words count more, and a
     page that lacks most of what another has is left out. A word that is not known is the beginning of others. */
  Search.performTermsSearch = (words) => {
    const { terms, docnames, titles, filenames } = Search._index;
    const [covered, score] = [new Map(), new Map()];
    const add = (map, page, value) => map.set(page, (map.get(page) ?? 0) + value);
    let whole = 0;
    for (const word of words) {
      const known = Object.hasOwn(terms, word) ? [word]
        : Object.keys(terms).filter((term) => word.length > 2 && term.startsWith(word));
      const shares = new Map();
      for (const list of known.map((term) => [terms[term]].flat())) {
        list.forEach((page, place) => shares.set(page, Math.max(shares.get(page) ?? 0, 1 / (1 + 0.3 * place))));
      }
      const rarity = Math.log(1 + docnames.length / Math.max(shares.size, 1));
      whole += rarity;
      for (const [page, share] of shares) {
        add(covered, page, rarity);
        add(score, page, rarity * share);
      }
    }
    const enough = 0.6 * Math.max(...covered.values());
    const pages = [...covered.keys()].filter((page) => covered.get(page) >= enough);
    return pages.map((page) => [docnames[page], titles[page], "", null, 20 * score.get(page) / whole, filenames[page]]);
  };

  /* All at once: what is asked next would get the rest. */
  Search.query = (query) => {
    const parsed = Search._parseQuery(query);
    const results = Search._performSearch(...parsed).reverse().slice(0, MOST);
    results.forEach((result) => _displayItem(result, parsed[1], parsed[3]));
    _finishSearch(results.length);
  };

  /* The paragraph with most of the words; where none has any, the first of the section, or what the page says of itself. */
  Search.makeSearchSummary = (html, words, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll(NO_TEXT).forEach((part) => part.remove());
    page.querySelectorAll("mjx-container").forEach((formula) => formula.replaceWith("…"));
    const part = page.getElementById(anchor.slice(1)) ?? page.querySelector("[role=main]");
    const texts = [...part.querySelectorAll("p, dd")].map((each) => each.textContent.replace(/\s+/g, " ").trim())
      .filter((text) => !text.startsWith("You need:"));
    const count = (text) => [...words].filter((word) => text.toLowerCase().includes(word)).length;
    const most = Math.max(0, ...texts.map(count));
    const own = page.querySelector("meta[name=description]")?.content;
    const text = most || anchor ? texts.find((each) => each && count(each) === most) : own;
    return Object.assign(document.createElement("p"), { className: "context", textContent: cut(text ?? own ?? "", words) });
  };

  /* At most some three lines of a text, around the first of the words. */
  const cut = (text, words) => {
    if (text.length <= 260) return text;
    const places = [...words].map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
    const first = Math.max(0, Math.min(...places, text.length) - 100);
    const begin = first && places.length ? text.indexOf(" ", first) + 1 : 0;
    const end = begin + 240 < text.length ? text.lastIndexOf(" ", begin + 240) : text.length;
    return `${begin ? "… " : ""}${text.slice(begin, end)}${end < text.length ? " …" : ""}`;
  };
})();

