/* The buttons of the cells, and the code between them as a field for editing. What runs the code is fetched at the
   first press of a button. */

const page = document.querySelector("script[data-page]").dataset.page;
const cells = [...document.querySelectorAll("div.cell:has(.cell_input pre)")].map(equip);
const bar = makeBar();
let runner; // the module that runs cells, once somebody asked for it
let failures = 0; // to fetch it

document.querySelector(".live-run-page").addEventListener("click", () => run(cells.at(-1), true));

/* Experiments ask whether Python runs, and have it draw what the page does not store. */
window.ampLive = { running: false, call: () => Promise.reject(new Error("Python does not run in this page yet")) };

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function makeButton(text, title, press) {
  const button = make("button", { type: "button", textContent: text, title });
  button.addEventListener("click", press);
  return button;
}

function equip(element, place) {
  const code = element.querySelector(".cell_input pre");
  const stored = { html: code.innerHTML, text: textIn(code) };
  const number = place + 1;
  const cell = { element, code, number, stored, ran: null };
  code.contentEditable = "plaintext-only";
  code.spellcheck = false;
  // The keys reach the field. The theme, at each change of the page, takes away what only scrolled code would need.
  Object.defineProperty(code, "tabIndex", { get: () => 0, set: () => {} });
  const described = { tabindex: 0, role: "textbox", "aria-multiline": "true", "aria-label": `Code of cell ${number}` };
  Object.entries(described).forEach(([name, value]) => code.setAttribute(name, value));
  cell.run = makeButton("Run", "Run this cell (Shift+Enter)", () => run(cell, false));
  cell.above = makeButton("Run all above", "Run what has not run above, then this cell", () => run(cell, true));
  cell.reset = makeButton("Reset", "Bring back the text of this cell", () => reset(cell));
  cell.stop = makeButton("Stop and forget", "End Python in this page: all variables are lost", () => stop(cell));
  cell.stop.classList.add("live-stop");
  cell.state = make("span", { className: "live-state" });
  cell.above.hidden = place === 0;
  cell.reset.hidden = cell.stop.hidden = true;
  const tools = make("div", { className: "live-tools" }, cell.run, cell.above, cell.reset, cell.stop, cell.state);
  tools.setAttribute("role", "toolbar");
  tools.setAttribute("aria-label", `Cell ${number}`);
  tools.addEventListener("keydown", (event) => move(tools, event));
  settle(tools);
  code.closest(".cell_input").append(tools);
  code.addEventListener("input", () => {
    // a browser would keep the colours of what was replaced, in either theme
    code.querySelectorAll("[style]").forEach((part) => part.removeAttribute("style"));
    code.querySelectorAll("font").forEach((part) => part.removeAttribute("color"));
    keep(cell);
  });
  code.addEventListener("keydown", (event) => press(cell, event));
  const note = element.querySelector(".amp-note");
  note?.prepend(makeButton("Make it live", "Run this experiment and what it needs, in the page", () => run(cell, true)), " ");
  recall(cell);
  return cell;
}

/* An edited text outlives a reload of the page, unless the book's own text has changed since. */
function keep(cell) {
  const text = editedText(cell);
  cell.reset.hidden = text === null;
  window.ampMemory.keep(`cell ${cell.number}`, text === null ? null : { text, of: cell.stored.text });
}

function recall(cell) {
  const kept = window.ampMemory.recall(`cell ${cell.number}`);
  if (kept?.of === cell.stored.text) {
    cell.code.textContent = kept.text;
    cell.reset.hidden = false;
    cell.state.textContent = "edited: what is below is from the book’s text";
  }
}

/* One button of a cell is a stop for the tabulator; the arrows lead to the others. */
function settle(tools, current = tools.querySelector("button")) {
  for (const button of tools.querySelectorAll("button")) button.tabIndex = button === current ? 0 : -1;
}

function move(tools, { key }) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  const buttons = [...tools.querySelectorAll("button:not([hidden])")];
  const next = step && buttons[buttons.indexOf(document.activeElement) + step];
  if (next) {
    settle(tools, next);
    next.focus();
  }
}

/* Undo knows of what is inserted in this way. */
function insert(text) {
  document.execCommand("insertText", false, text);
}

function press(cell, event) {
  if (event.key === "Enter" && event.shiftKey) {
    event.preventDefault();
    run(cell, false);
    cells.slice(cell.number).find(({ code }) => code.checkVisibility())?.code.focus();
  } else if (event.key === "Enter") {
    event.preventDefault();
    insert(`\n${indentation(cell.code)}`);
  } else if (event.key === "Escape") {
    cell.run.focus();
  }
}

/* The spaces with which the line of the caret begins, and four more after a colon. */
function indentation(code) {
  const before = window.getSelection().getRangeAt(0).cloneRange();
  before.setStart(code, 0);
  const line = textIn(before.cloneContents()).split("\n").pop();
  return line.match(/^ */)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
}

/* New lines may be elements. */
function textIn(code) {
  const copy = code.cloneNode(true);
  copy.querySelectorAll("br").forEach((line) => line.replaceWith("\n"));
  return copy.textContent;
}

/* The text of an edited cell, or null. */
function editedText({ code, stored }) {
  const text = textIn(code);
  return text === stored.text ? null : text;
}

function reset(cell) {
  cell.code.innerHTML = cell.stored.html;
  cell.state.textContent = "";
  keep(cell);
  cell.run.focus();
  bar.say(`Cell ${cell.number} has its own text again.`);
}

/* A browser remembers a module that it could not fetch: the next try is for another address. */
async function fetchRunner() {
  try {
    return await import(failures ? `./runner.js?again=${failures}` : "./runner.js");
  } catch {
    failures += 1;
    throw new Error("No connection: Python could not be fetched. Press again");
  }
}

async function run(cell, withAbove) {
  if (!cell.stop.hidden) return;
  try {
    runner ??= await fetchRunner();
    await runner.run({ cells, page, bar, editedText }, cell, withAbove);
  } catch (error) {
    bar.say(`${error.message}. The stored outputs stay as they are.`);
  }
}

function stop(cell) {
  runner.stop({ cells, bar });
  cell?.run.focus();
}

/* What Python does, at the lower edge of the window: a sentence that is read out, bytes, and the way to end it. */
function makeBar() {
  const said = make("span", { className: "live-said" });
  said.setAttribute("role", "status");
  const progress = make("progress", { hidden: true });
  progress.setAttribute("aria-label", "Loading Python");
  const bytes = make("span", { className: "live-bytes" });
  const button = makeButton("Stop and forget", "End Python in this page: all variables are lost", () => stop());
  const close = makeButton("×", "Close this bar", () => { element.hidden = true; });
  close.setAttribute("aria-label", "Close this bar");
  const parts = [said, progress, bytes, button, close];
  const element = make("section", { className: "live-bar", hidden: true, tabIndex: -1 }, ...parts);
  element.setAttribute("aria-label", "Python in this page");
  button.hidden = true;
  document.querySelector("article").append(element);
  return {
    say(text) {
      element.hidden = false;
      said.textContent = text;
    },
    load(loaded, total) {
      Object.assign(progress, { hidden: false, max: total, value: loaded });
      bytes.textContent = `${Math.round(loaded)} of ${total} MB`;
    },
    loaded() {
      progress.hidden = true;
      bytes.textContent = "";
    },
    busy(yes) {
      if (!yes && document.activeElement === button) element.focus();
      button.hidden = !yes;
    },
  };
}
