/* How the search ranks what it finds: as Sphinx does, but a title with the very words comes first, chapters and guides
   before what is looked up, as modules, the glossary and lists, and words of pages before names of code. */

var Scorer = (() => {
  /* Whether the title of a page has what is asked for, word for word; that of a brief must begin with it. */
  function names(page, title) {
    const asked = document.querySelector("#pst-search-dialog input")?.value || new URLSearchParams(location.search).get("q");
    const words = (text) => ` ${(text ?? "").toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join(" ")} `;
    const place = words(title).indexOf(words(asked));
    return place === 0 || (place > 0 && page.startsWith("book/") && !title.startsWith("amptutorial"));
  }

  return {
    objNameMatch: 7,
    objPartialMatch: 2,
    objPrio: { 0: 4, 1: 2, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
    score: ([page, title, , , score]) => score + 9 * Number(names(page, title))
      - 2 * Number(page.split("/").length > 2)
      - 3 * Number(/^book\/(glossary|ledger|errata|bibliography|lecturers|api)/.test(page)),
  };
})();
