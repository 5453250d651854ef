/* The rows of a table are found and ordered by what stands above it. Without this script it is the plain table. */

const controls = document.querySelector(".ledger-controls");
const body = document.querySelector(".ledger-controls ~ * tbody");
const rows = [...body.rows];
const [wanted, kind, order] = controls.querySelectorAll("input, select");
const count = controls.querySelector("output");
const text = (row, column) => row.cells[column].textContent.trim();
// a row that leads to a section of its own page has the words of that section
const section = (row) => document.getElementById(row.querySelector("a[href^='#']")?.hash.slice(1))?.closest("section");
const words = rows.map((row) => `${row.textContent} ${section(row)?.textContent ?? ""}`.toLowerCase());

function update() {
  const asked = wanted.value.toLowerCase().split(/\s+/);
  for (const [place, row] of rows.entries()) {
    row.hidden = !asked.every((word) => words[place].includes(word)) || !text(row, 1).startsWith(kind.value);
  }
  const compare = (a, b) => text(a, order.value).localeCompare(text(b, order.value), "en", { numeric: true });
  body.append(...(order?.value ? rows.toSorted(compare) : rows));
  count.textContent = count.textContent.replace(/\d+/, rows.filter((row) => !row.hidden).length);
}

controls.addEventListener("input", update);
update(); // a browser that comes back has kept what was asked
