/* Stripes that come out of random dots: a table of counts, its truth, and AMP after each iteration.

   Counts are drawn from the model of chapter 2, with equal frequencies and two numbers for a row; AMP is that of chapter 7,
   with the posterior mean of normal rows.
   A page has <figure class="stripes"> with a still picture in it, for paper. Where the reader bets first, it waits. */

import { generator, normals } from "./hero.js";

const MEAN = 0.8, ITERATIONS = 16, PACE = 3; // counts of a cell; iterations; iterations a second
const BLUE = [0, 114, 178], VERMILION = [213, 94, 0], GREY = [128, 128, 128];

/* Points of the plane in the order of their angles, as two columns. */
function cloud(count, variance, random) {
  const [x, y] = [normals(count, random), normals(count, random)].map(column => column.map(z => z * Math.sqrt(variance)));
  const order = [...x.keys()].sort((i, j) => Math.atan2(x[i], y[i]) - Math.atan2(x[j], y[j]));
  return [x, y].map(column => Float64Array.from(order, k => column[k]));
}

function poisson(mean, random) {
  let count = 0;
  for (let left = random(); left > Math.exp(-mean); left *= random()) count += 1;
  return count;
}

/* The table (X Y^T) / sqrt(rows), row by row. */
export function product([x0, x1], [y0, y1]) {
  const m = x0.length, root = Math.sqrt(m);
  return Float64Array.from({ length: m * m }, (_, k) => {
    const i = Math.floor(k / m), j = k % m;
    return (x0[i] * y0[j] + x1[i] * y1[j]) / root;
  });
}

/* Everything is drawn freely: rows, columns, counts, and a start that knows nothing. */
export function draw({ rows, strength }, seed) {
  const random = generator(seed), U = cloud(rows, 1, random), V = cloud(rows, strength, random);
  const truth = product(U, V), counts = truth.map(s => poisson(MEAN * Math.exp(s / Math.sqrt(MEAN)), random));
  return { truth, counts, start: [0, 1].map(() => normals(rows, random)) };
}

/* The score of a table whose rows and columns are equally frequent: its mean is counted, not known. */
export function score(counts) {
  const mean = counts.reduce((sum, count) => sum + count) / counts.length;
  return counts.map(count => (count - mean) / Math.sqrt(mean));
}

/* Symmetric 2 x 2 matrices as [top left, beside it, bottom right]. */
const dot = (x, y) => x.reduce((sum, value, k) => sum + value * y[k], 0);
const gram = ([x, y]) => [dot(x, x), dot(x, y), dot(y, y)].map(sum => sum / x.length);
const invert = ([a, b, c], ridge) => [c + ridge, -b, a + ridge].map(x => x / ((a + ridge) * (c + ridge) - b * b));
const times = ([x, y], [a, b, c]) => [x.map((v, k) => a * v + b * y[k]), x.map((v, k) => b * v + c * y[k])];
const minus = (X, Y) => X.map((column, k) => column.map((value, i) => value - Y[k][i]));

/* Y X / sqrt(rows), or of the transposed Y. */
function multiply(Y, X, transposed) {
  const m = X[0].length, [along, across] = transposed ? [m, 1] : [1, m], root = Math.sqrt(m);
  return X.map(column => column.map((_, i) => {
    let sum = 0;
    for (let j = 0; j < m; j++) sum += Y[i * across + j * along] * column[j];
    return sum / root;
  }));
}

/* A and B after every iteration: multiply, subtract the echo, shrink; for rows and for columns. */
export function amp(Y, start, strength, iterations = ITERATIONS) {
  let A = start.map(column => column.map(() => 0)), B = start, H = [0, 0, 0];
  return Array.from({ length: iterations }, () => {
    const G = invert(gram(B), 1);
    A = times(minus(multiply(Y, B, false), times(A, H)), G);
    H = invert(gram(A), 1 / strength);
    B = times(minus(multiply(Y, A, true), times(B, G)), H);
    return { A, B };
  });
}

/* What a fit gets wrong of the truth, as a share: of estimating zero it is 1. */
export function wrong(fit, truth) {
  return fit.reduce((sum, x, k) => sum + (x - truth[k]) ** 2, 0) / dot(truth, truth);
}

function paint(canvas, values, colourOf) {
  const m = Math.sqrt(values.length);
  Object.assign(canvas, { width: m, height: m });
  const picture = new ImageData(m, m);
  values.forEach((value, k) => picture.data.set(colourOf(value), 4 * k));
  canvas.getContext("2d").putImageData(picture, 0, 0);
}

/* Seen on a light ground and on a dark one: the ground shows where a value is small. */
const dots = count => [...GREY, 255 * Math.min(count / 3, 1)];
const stripes = scale => value => [...(value > 0 ? VERMILION : BLUE), Math.min(255, 255 * Math.abs(value) / scale)];

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function slider(text, properties, follow) {
  const input = make("input", { type: "range", autocomplete: "off", ...properties });
  const shown = make("output", { value: input.value });
  input.addEventListener("input", () => { shown.value = input.value; follow(); });
  return { input, shown, label: make("label", {}, text, input, shown) };
}

function begin(figure) {
  const panels = ["counts", "truth", "AMP"].map(name => {
    const canvas = make("canvas", { role: "img", ariaLabel: name });
    canvas.setAttribute("role", "img");
    return { canvas, panel: make("div", {}, canvas, name) };
  });
  const said = make("figcaption", {});
  const button = make("button", { type: "button" }), other = make("button", { type: "button", textContent: "Other table" });
  const iteration = slider("iteration", { min: 0, max: ITERATIONS, step: 1, value: ITERATIONS }, () => stop(true));
  const strength = slider("strength of association", { min: 0.4, max: 8, step: 0.1, value: 8 }, anew);
  const rows = slider("documents and words", { min: 160, max: 200, step: 20, value: 200 }, anew);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let seed = 17, table, fits, position = ITERATIONS, playing = 0;

  function show() {
    const before = fits[Math.floor(position)], after = fits[Math.ceil(position)], part = position % 1;
    const fit = part ? before.map((x, k) => x + part * (after[k] - x)) : before;
    const scale = 2 * Math.sqrt(dot(table.truth, table.truth) / table.truth.length);
    paint(panels[2].canvas, fit, stripes(scale));
    iteration.shown.value = iteration.input.value = Math.floor(position);
    const m = rows.input.value, whole = Math.floor(position), error = wrong(fits[whole], table.truth).toFixed(2);
    said.setAttribute("aria-live", playing ? "off" : "polite"); // nobody wants each iteration read aloud
    said.textContent = `Dots: ${m} × ${m} counts drawn from a model. Stripes: the associations, in truth and as AMP finds them. AMP ` +
      `knows the model, but not the truth, and below the strength 1 it finds nothing. Rows and columns are sorted by the truth. ` +
      `After ${whole} iteration${whole === 1 ? "" : "s"} the ` +
      `error is ${error}. That of knowing nothing is 1, that of a random guess is higher.`;
    if (playing) return;
    paint(panels[0].canvas, table.counts, dots);
    paint(panels[1].canvas, table.truth, stripes(scale));
  }
  function compute() {
    const settings = { rows: rows.input.valueAsNumber, strength: strength.input.valueAsNumber };
    table = draw(settings, seed);
    const runs = amp(score(table.counts), table.start, settings.strength);
    fits = [table.truth.map(() => 0), ...runs.map(({ A, B }) => product(A, B))];
  }
  function stop(moved) {
    cancelAnimationFrame(playing);
    playing = 0;
    button.textContent = "Play";
    position = moved ? iteration.input.valueAsNumber : Math.round(position);
    show();
  }
  function play() {
    const first = performance.now();
    const from = position >= ITERATIONS ? 0 : position;
    button.textContent = "Pause";
    const step = now => {
      position = Math.min(ITERATIONS, from + Math.max(0, now - first) / 1000 * PACE);
      if (still) position = Math.floor(position);
      if (position === ITERATIONS) return stop(false);
      show();
      playing = requestAnimationFrame(step);
    };
    position = from;
    stop(false);
    button.textContent = "Pause";
    playing = requestAnimationFrame(step);
  }
  function anew() {
    compute();
    stop(false);
  }
  button.addEventListener("click", () => (playing ? stop(false) : play()));
  other.addEventListener("click", () => { seed += 1; compute(); stop(false); });
  const controls = make("div", { className: "stripes-controls" }, make("div", {}, button, other), ...[iteration, strength, rows]
    .map(({ label }) => label));
  figure.append(make("div", { className: "stripes-panels" }, ...panels.map(({ panel }) => panel)), controls, said);
  compute();
  if (figure.closest(".stripes-wait")) position = 0;
  stop(false);
  if (!still && position) play();
}

globalThis.document?.querySelectorAll("figure.stripes").forEach(begin);
