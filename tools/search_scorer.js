/* How the search ranks what it finds: as Sphinx does, but of equals a page of the book comes before one that stands
   below another page, as appendices, modules and briefs do. */

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, , , , score]) => score - Number(page.split("/").length > 2),
};
