/* Runs cells one after the other with one Python for the page, and puts what comes out in place of what is stored. */

/* The two come again with this module, if a browser could not fetch all three. */
const again = new URL(import.meta.url).search;
const [{ Kernel }, { Output }] = await Promise.all(["kernel", "output"].map((name) => import(`./${name}.js${again}`)));

let settings; // of the page, with the cells as its notebook has them
let entries; // a cell of the page for each of these; a cell that the page hides has neither buttons nor outputs
let kernel = null;
let queue = Promise.resolve();
let era = 0; // counts how often Python was stopped: what was asked for before does not run after
let clock = 0; // counts runs: a cell is as it should be if it ran after all above it

/* Runs a cell, after those above it that are not up to date if `withAbove`, or if nothing has run yet: it would lack their
   names. Each press is served in its turn. */
export function run(site, cell, withAbove) {
  const asked = era;
  mark(cell, "waits", true);
  const turn = queue.then(async () => {
    try {
      if (asked === era) await serve(site, cell, withAbove);
    } catch (error) {
      if (error.stopped) return;
      end();
      throw error;
    } finally {
      if (cell.state.textContent === "waits") mark(cell, "", false);
      site.bar.busy(false);
    }
  });
  queue = turn.catch(() => {});
  return turn;
}

/* Ends Python, and with it what it has computed. */
export function stop({ cells, bar }) {
  end();
  for (const cell of cells) mark(cell, "", false);
  bar.say("Stopped. All variables are lost: “Run all above” computes them again.");
}

function end() {
  era += 1;
  kernel?.end();
  kernel = null;
  window.ampLive.running = false;
  for (const entry of entries ?? []) entry.ran = null;
}

async function serve(site, cell, withAbove) {
  site.bar.busy(true);
  withAbove ||= clock === 0;
  await start(site);
  const above = entries.slice(0, entries.indexOf(cell));
  const late = outdated(site, above);
  for (const entry of withAbove ? [...late, cell] : [cell]) {
    const fine = await runEntry(site, entry, !withAbove && late.length > 0);
    if (!fine) {
      const rest = entry === cell ? "" : ": the cells below it did not run";
      site.bar.say(`Cell ${entry.number} failed${rest}.`);
      return;
    }
  }
  site.bar.say(withAbove && cell.number > 1 ? `Cells 1 to ${cell.number} have run.` : `Cell ${cell.number} has run.`);
}

async function start({ cells, page, bar }) {
  if (kernel) return;
  settings ??= await load(page);
  entries ??= arrange(cells);
  if (!settings.runtime) throw new Error("This copy of the book has no Python beside its pages");
  const { megabytes, seconds } = settings;
  const whole = seconds ? ` All cells of this page then take about ${seconds} s.` : " Some cells then take minutes.";
  bar.say(`Python is loading: ${megabytes} MB, once.${whole}`);
  const started = new Kernel(settings, (bytes) => bar.load(Math.min(bytes / 1e6, megabytes), megabytes));
  kernel = started;
  await started.ready.finally(bar.loaded);
  window.ampLive.running = true;
  window.ampLive.call = (expression) => started.ask("call", { expression });
}

async function load(page) {
  const answer = await fetch(new URL(`cells/${page}.json`, import.meta.url)).catch(() => ({ ok: false }));
  if (!answer.ok) throw new Error("The list of this page’s cells could not be loaded");
  return answer.json();
}

function arrange(cells) {
  const shown = settings.cells.filter((stored) => stored.shown);
  if (shown.length !== cells.length) throw new Error("The page and the list of its cells differ: load it again");
  shown.forEach((stored, place) => { cells[place].source = stored.source; });
  return settings.cells.map((stored) => (stored.shown ? cells[shown.indexOf(stored)] : { ...stored, ran: null }));
}

function textOf({ editedText }, entry) {
  return (entry.code && editedText(entry)) ?? entry.source;
}

/* The cells from the first on that did not run as it stands, or ran before one above it. */
function outdated(site, above) {
  let latest = 0;
  const first = above.findIndex((entry) => {
    const fine = entry.ran === textOf(site, entry) && entry.order > latest;
    latest = entry.order;
    return !fine;
  });
  return first < 0 ? [] : above.slice(first);
}

async function runEntry(site, entry, lacksAbove) {
  const source = textOf(site, entry);
  const output = new Output(entry, lacksAbove);
  if (entry.state) {
    mark(entry, "runs", true);
    site.bar.say(`Cell ${entry.number} runs.`);
  }
  const began = performance.now();
  const details = { source, name: `cell ${entry.number ?? "that the page hides"}` };
  const fine = await kernel.ask("run", details, (part) => output.add(part)).catch((error) => {
    throw error.stopped ? error : new Error(`Python ended in cell ${entry.number}, and its variables with it (${error.message})`);
  });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  output.finish(fine ? seconds : null);
  Object.assign(entry, { ran: fine ? source : null, order: ++clock });
  if (entry.state) mark(entry, fine ? `ran in ${seconds} s` : "failed", false);
  return fine;
}

function mark(cell, state, busy) {
  if (!busy && document.activeElement === cell.stop) cell.run.focus();
  cell.state.textContent = state;
  cell.stop.hidden = !busy;
}
