/* The ledger's table can be searched, and brought into another order. Without this script it is the plain table. */

const table = document.querySelector("#the-ledger table");
const rows = [...table.tBodies[0].rows];
for (const name of table.querySelectorAll("code .pre")) {
  // a long name breaks between its words
  name.replaceChildren(...name.textContent.split(/(?<=_|::)/).flatMap((word) => [document.createElement("wbr"), word]));
}
const columns = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
const text = (row, column) => row.cells[column].textContent.trim();
const statuses = ["as printed", "corrected", "stated"];

function labelled(name, control) {
  const label = document.createElement("label");
  label.append(`${name} `, control);
  control.setAttribute("aria-label", name); // without its choices
  return label;
}

function choice(names) {
  const select = document.createElement("select");
  select.append(...names.map((name, value) => new Option(name, value)));
  return select;
}

const wanted = document.createElement("input");
wanted.type = "search";
const status = choice(["any", ...statuses]);
const order = choice(["of the paper", ...columns.slice(1).map((name) => `by “${name}”`)]);
const count = document.createElement("output");

function update() {
  const words = wanted.value.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const whole = row.textContent.toLowerCase();
    const found = words.every((word) => whole.includes(word));
    row.hidden = !found || (status.value > 0 && !text(row, 1).startsWith(statuses[status.value - 1]));
  }
  const compare = (a, b) => text(a, order.value).localeCompare(text(b, order.value), "en", { numeric: true });
  table.tBodies[0].append(...(order.value > 0 ? rows.toSorted(compare) : rows));
  count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} statements`;
}

const controls = document.querySelector(".ledger-controls"); // the page keeps their room
controls.append(labelled("Find", wanted), labelled("Status", status), labelled("Order", order), count);
controls.addEventListener("input", update);
update();
