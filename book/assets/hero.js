/* The picture of the first page: AMP run on counts drawn in the page, on the line that state evolution drew before.
   Both are the programs of the first chapter, where all documents and all words are equally frequent. */

const BETA = 2 / 3, ITERATIONS = 8, TABLES = 12;

/* The predicted error of A B^T after every iteration: no matrix, no dice. */
export function forecast({ counts, known }, beta = BETA, iterations = ITERATIONS) {
  let M = known * counts / beta, Q = M;
  return Array.from({ length: iterations }, () => {
    const g = 1 / (Q + 1), Ma = g * M, Qa = g ** 2 * (M ** 2 + Q);
    const h = 1 / (Qa + 1 / counts);
    M = h * counts * Ma / beta;
    Q = h ** 2 * (counts * Ma ** 2 + Qa) / beta;
    return 1 - (2 * Ma * M - Qa * Q) * beta / counts;
  });
}

/* Random numbers between 0 and 1, the same for the same seed (mulberry32). */
export function generator(seed) {
  return () => {
    seed = seed + 0x6D2B79F5 | 0;
    let t = Math.imul(seed ^ seed >>> 15, seed | 1);
    t ^= t + Math.imul(t ^ t >>> 7, t | 61);
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  };
}

/* x . y, with y from an offset on: a row of a matrix. */
function dot(x, y, offset = 0) {
  let sum = 0;
  for (let k = 0; k < x.length; k++) sum += x[k] * y[offset + k];
  return sum;
}

/* Normal numbers by the method of Box and Muller. */
export function normals(count, random) {
  return Float64Array.from({ length: count }, () =>
    Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}

/* Truth, start, and a place between 0 and 1 for every count are drawn freely, as those of a reader's own table;
   `ratios` is the association, by which a pair has more counts than the mean. */
export function draw(m, random) {
  const n = Math.round(m / BETA), places = Float64Array.from({ length: m * n }, random);
  const [A, b, start] = [m, n, n].map(count => normals(count, random)), ratios = new Float64Array(m * n);
  for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) ratios[i * n + j] = Math.exp(A[i] * b[j] / Math.sqrt(m));
  return { A, b, places, ratios, start };
}

/* The count of Poisson's law at a place: the shares of 0, 1, 2, ... lie side by side between 0 and 1. */
function poisson(mean, place) {
  let count = 0, share = Math.exp(-mean);
  for (let end = share; end < place; end += share) share *= mean / ++count;
  return count;
}

/* The score of a table of counts whose rows and columns are equally frequent: the mean is counted. */
function score({ places, ratios }, counts) {
  const table = places.map((place, k) => poisson(counts * ratios[k], place));
  const mean = table.reduce((sum, count) => sum + count) / table.length;
  return table.map(count => (count - mean) / Math.sqrt(mean));
}

/* The error of A B^T after every iteration of AMP on the score of one table of counts. */
export function run(table, { counts, known }, iterations = ITERATIONS) {
  const { A, b, start } = table, m = A.length, n = b.length, root = Math.sqrt(m);
  const B = b.map(x => x * Math.sqrt(counts)), Y = score(table, counts);
  const times = x => A.map((_, i) => dot(x, Y, i * n) / root);
  const transposed = x => {
    const product = new Float64Array(n);
    x.forEach((value, i) => { for (let j = 0; j < n; j++) product[j] += Y[i * n + j] * value; });
    return product.map(value => value / root);
  };
  const fresh = Math.sqrt(known * (1 - known) * counts);
  let X = new Float64Array(m), V = start.map((z, j) => known * B[j] + fresh * z), Gamma = 0;
  return Array.from({ length: iterations }, () => {
    const g = 1 / (dot(V, V) / m + 1), P = times(V);
    X = P.map((p, i) => g * (p - X[i] * Gamma));
    const h = 1 / (dot(X, X) / m + 1 / counts), S = transposed(X);
    V = S.map((s, j) => h * (s - V[j] * g));
    Gamma = h * n / m;
    return 1 - (2 * dot(A, X) * dot(B, V) - dot(X, X) * dot(V, V)) / (dot(A, A) * dot(B, B));
  });
}

/* Mean and two standard errors of the runs, iteration by iteration. */
export function summary(runs) {
  return runs[0].map((_, k) => {
    const mean = runs.reduce((sum, one) => sum + one[k], 0) / runs.length;
    const squares = runs.reduce((sum, one) => sum + (one[k] - mean) ** 2, 0);
    return { mean, bar: 2 * Math.sqrt(squares / (runs.length - 1) / runs.length) };
  });
}

function picture(predicted, measured) {
  const x = k => 62 + 77 * k, y = error => 280 - Math.min(Math.max(error, 0), 1.25) * 208;
  const tick = error => `<text x="46" y="${y(error) + 5}" text-anchor="end">${error}</text>`;
  const path = errors => errors.map(([error, k]) => `${x(k)} ${y(error)}`).join("L");
  const upper = measured.map(({ mean, bar }, k) => [mean + bar, k]);
  const lower = measured.map(({ mean, bar }, k) => [mean - bar, k]).reverse();
  const points = measured.map(({ mean }, k) => `<circle cx="${x(k)}" cy="${y(mean)}" r="6"/>`).join("");
  const steps = [1, 4, 8].map(k => `<text x="${x(k - 1)}" y="303" text-anchor="middle">${k}</text>`).join("");
  return `<path class="hero-axis" d="M52 20V280H612"/>${[0, 0.5, 1].map(tick).join("")}${steps}
    <text x="612" y="328" text-anchor="end">iteration</text><text x="62" y="32">error</text>
    <path class="hero-nothing" d="M52 ${y(1)}H612"/><text x="612" y="${y(1) - 9}" text-anchor="end">nothing found</text>
    <path class="hero-band" d="M${path([...upper, ...lower])}Z"/>
    <path class="hero-predicted" d="M${path(predicted.map((error, k) => [error, k]))}"/>
    <g class="hero-measured">${points}</g>`;
}

function start(hero) {
  const svg = hero.querySelector("svg"), said = hero.querySelector("figcaption");
  const sliders = [...hero.querySelectorAll("input")], again = hero.querySelector("button");
  let seed = 0, tables = [];
  const settings = () => Object.fromEntries(sliders.map(({ name, value }) => [name, Number(value)]));
  function drawTables() {
    const random = generator(seed);
    tables = Array.from({ length: TABLES }, () => draw(settings().documents, random));
  }
  function update() {
    const predicted = forecast(settings()), measured = summary(tables.map(table => run(table, settings())));
    const { mean, bar } = measured.at(-1), { A, b } = tables[0];
    svg.innerHTML = picture(predicted, measured);
    said.textContent = `Line: predicted before any table is drawn. Points: mean of ${TABLES} tables of counts, ${A.length} documents by ` +
      `${b.length} words, that your browser has just drawn; at the end ${mean.toFixed(2)} ± ${bar.toFixed(2)} (two standard ` +
      `errors, the band), predicted ${predicted.at(-1).toFixed(2)}. With a share of ${settings().known} known, the line begins at ` +
      `${predicted[0].toFixed(2)}.`;
  }
  for (const slider of sliders) {
    const shown = slider.parentElement.querySelector("output");
    const show = () => { shown.value = slider.value; };
    slider.addEventListener("input", () => {
      show();
      if (slider.name === "documents") drawTables();
      update();
    });
    show();
  }
  again.addEventListener("click", () => { seed += 1; drawTables(); update(); });
  drawTables();
  update();
}

const hero = globalThis.document?.getElementById("hero");
if (hero) start(hero);
