/* The picture of the first page: AMP run on a matrix drawn in the page, on the line that state evolution drew before.
   Both are the scalar programs of the chapters on AMP and on state evolution. */

const M_ROWS = 400, N_COLUMNS = 600, BETA = M_ROWS / N_COLUMNS, ITERATIONS = 12;
const SLIDERS = [
  { name: "level", label: "counts expected", min: 0.3, max: 6, step: 0.1, value: 3 },
  { name: "strength", label: "strength of the ridge", min: 0.05, max: 2, step: 0.05, value: 0.3 },
  { name: "hint", label: "known at the start", min: 0.02, max: 1, step: 0.02, value: 0.5 },
];

/* The predicted error of A B^T after every iteration: no matrix, no dice. */
export function forecast({ level, strength, hint }, beta = BETA, iterations = ITERATIONS) {
  let M = hint * level / beta, Q = (hint ** 2 + 1) * level / beta, Gamma = 0;
  return Array.from({ length: iterations }, () => {
    const g = 1 / (Q - Gamma + strength), Ma = g * M, Qa = g ** 2 * (M ** 2 + Q);
    const h = 1 / (Qa - g + strength / level);
    M = level * h * Ma / beta;
    Q = h ** 2 * (level * Ma ** 2 + Qa) / beta;
    Gamma = h / beta;
    return 1 - (2 * Ma * M - Qa * Q) * beta / level;
  });
}

/* x . y, with y from an offset on: a row of a matrix. */
function dot(x, y, offset = 0) {
  let sum = 0;
  for (let k = 0; k < x.length; k++) sum += x[k] * y[offset + k];
  return sum;
}

/* Normal numbers by the method of Box and Muller. */
function normals(count) {
  return Float64Array.from({ length: count }, () =>
    Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random()));
}

/* A vector as long as `count` standard normal numbers are on average, at right angles to another one. */
function direction(count, other) {
  let x = normals(count);
  if (other) {
    const along = dot(x, other) / count;
    x = x.map((value, k) => value - along * other[k]);
  }
  const scale = Math.sqrt(count / dot(x, x));
  return x.map(value => scale * value);
}

/* The noise W is drawn freely. What was assumed of truth and start holds exactly, and not on average only. */
export function draw(m = M_ROWS, n = N_COLUMNS) {
  const b = direction(n);
  return { A: direction(m), b, W: normals(m * n), start: direction(n, b) };
}

/* The error of A B^T after every iteration of AMP on the scores of one matrix of counts, in their Gaussian limit. */
export function run({ A, b, W, start }, { level, strength, hint }, iterations = ITERATIONS) {
  const m = A.length, n = b.length, root = Math.sqrt(m), B = b.map(x => x * Math.sqrt(level));
  const times = x => {
    const along = dot(B, x) / root;
    return A.map((a, i) => (a * along + dot(x, W, i * n)) / root);
  };
  const transposed = x => {
    const along = dot(A, x) / root, product = B.map(value => value * along);
    x.forEach((value, i) => { for (let j = 0; j < n; j++) product[j] += W[i * n + j] * value; });
    return product.map(value => value / root);
  };
  let X = new Float64Array(m), Y = start.map((z, j) => hint * B[j] + Math.sqrt(level) * z), Gamma = 0;
  return Array.from({ length: iterations }, () => {
    const g = 1 / (dot(Y, Y) / m - Gamma + strength), P = times(Y);
    X = P.map((p, i) => g * (p - X[i] * Gamma));
    const h = 1 / (dot(X, X) / m - g + strength / level), S = transposed(X);
    Y = S.map((s, j) => h * (s - Y[j] * g));
    Gamma = h * n / m;
    return 1 - (2 * dot(A, X) * dot(B, Y) - dot(X, X) * dot(Y, Y)) / (dot(A, A) * dot(B, B));
  });
}

function picture(predicted, measured) {
  const x = k => 56 + 49 * k, y = error => 280 - Math.min(Math.max(error, 0), 1.6) * 160;
  const tick = error => `<text x="46" y="${y(error) + 5}" text-anchor="end">${error}</text>`;
  const line = predicted.map((error, k) => `${x(k)} ${y(error)}`).join("L");
  const points = measured.map((error, k) => `<circle cx="${x(k)}" cy="${y(error)}" r="6"/>`).join("");
  const steps = [1, 4, 8, 12].map(k => `<text x="${x(k - 1)}" y="303" text-anchor="middle">${k}</text>`).join("");
  return `<path class="hero-axis" d="M52 20V280H612"/>${[0, 0.5, 1, 1.5].map(tick).join("")}${steps}
    <text x="612" y="328" text-anchor="end">iteration</text><text x="62" y="22">error</text>
    <path class="hero-nothing" d="M52 ${y(1)}H612"/><path class="hero-predicted" d="M${line}"/>
    <g class="hero-measured">${points}</g>`;
}

function start(hero) {
  const settings = Object.fromEntries(SLIDERS.map(({ name, value }) => [name, value]));
  let instance = draw();
  const svg = hero.querySelector("svg"), said = hero.querySelector("figcaption"), controls = hero.querySelector("div");
  function update() {
    const predicted = forecast(settings), measured = run(instance, settings);
    svg.innerHTML = picture(predicted, measured);
    const best = predicted.indexOf(Math.min(...predicted)), last = ITERATIONS - 1;
    said.textContent = `Line: predicted before any data. Points: measured on one random table of ${M_ROWS} x ` +
      `${N_COLUMNS} pairs. Best after iteration ${best + 1}: predicted ${predicted[best].toFixed(2)}, measured ` +
      `${measured[best].toFixed(2)}. After twelve: ${predicted[last].toFixed(2)} and ${measured[last].toFixed(2)}. ` +
      "Estimating zero has the error 1 (dashed).";
  }
  for (const { name, label, ...range } of SLIDERS) {
    const box = document.createElement("label"), slider = document.createElement("input");
    const shown = document.createElement("output");
    Object.assign(slider, { type: "range", name, ...range });
    slider.addEventListener("input", () => {
      settings[name] = Number(slider.value);
      shown.value = settings[name].toFixed(2);
      update();
    });
    shown.value = range.value.toFixed(2);
    box.append(label, slider, shown);
    controls.append(box);
  }
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = "Draw another table";
  again.addEventListener("click", () => { instance = draw(); update(); });
  controls.append(again);
  hero.hidden = false;
  update();
}

const hero = globalThis.document?.getElementById("hero");
if (hero) start(hero);
