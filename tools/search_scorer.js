/* How the search ranks what it finds: as Sphinx does, but chapters and guides come before what is looked up, as modules,
   the glossary and lists, and words of pages before names of code. */

var Scorer = {
  objNameMatch: 7,
  objPartialMatch: 2,
  objPrio: { 0: 4, 1: 2, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, , , , score]) => score - 2 * Number(page.split("/").length > 2)
    - 3 * Number(/^book\/(glossary|ledger|errata|bibliography|lecturers|api)/.test(page)),
};
