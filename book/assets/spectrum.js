/* The largest singular value of noise plus one direction: a picture that follows a slider, and keeps a trail.

   The singular values of the noise, and the components of the direction along its singular vectors, stand in the page, as
   the cell has computed them. What the signal adds is of rank one, so that a secular equation counts the singular values of
   the sum above any number: no matrix is needed. */

const BIN = 0.04, MOST = 1.25, STEP = 0.01, STEPS = 40; // of bisection

/* How many singular values of noise + signal x y^T lie above a number. */
export function above({ values, left, right }, signal, number) {
  let count = 0, A = 0, B = (1 - right.reduce((sum, b) => sum + b * b, 0)) / number ** 2, C = 0;
  values.forEach((value, i) => {
    const gap = number ** 2 - value ** 2;
    if (gap < 0) count += 1;
    A += left[i] ** 2 / gap;
    B += right[i] ** 2 / gap;
    C += left[i] * right[i] * value / gap;
  });
  return count + ((number ** 2) * A * B > (1 / signal - C) ** 2 ? Math.sign(A) : 0);
}

export function largest(model, signal) {
  let low = 0, high = model.values[0] + signal + STEP;
  for (let step = 0; step < STEPS; step++) {
    const middle = (low + high) / 2;
    if (above(model, signal, middle) > 0) low = middle;
    else high = middle;
  }
  return high;
}

const x = (value) => 56 + 360 * value, y = (signal) => 330 - 236 * signal;
const SCALE = 5; // pixels of the picture for each singular value in a bar

function bars(values) {
  const counts = Array.from({ length: Math.ceil(1.1 / BIN) }, (_, k) => values.filter((value) => Math.floor(value / BIN) === k).length);
  return counts.map((count, k) => `<rect x="${x(k * BIN)}" y="${y(0) - SCALE * count}" width="${360 * BIN}" height="${SCALE * count}"/>`).join("");
}

function start(box) {
  const model = JSON.parse(box.dataset.model), figure = document.createElement("figure");
  const tops = Array.from({ length: MOST / STEP + 1 }, (_, k) => largest(model, k * STEP));
  figure.innerHTML = `<svg viewBox="0 0 640 384" role="img" aria-label="${box.querySelector("img").alt}">
    <g class="spectrum-bars">${bars(model.values)}</g><path class="hero-axis" d="M48 20V330H632"/>
    ${[0, 0.5, 1].map((tick) => `<text x="40" y="${y(tick) + 5}" text-anchor="end">${tick}</text>
      <text x="${x(tick)}" y="352" text-anchor="middle">${tick}</text>`).join("")}
    <text x="632" y="352" text-anchor="end">singular value</text><text x="56" y="32">signal</text>
    <path class="spectrum-trail spectrum-signal"/><path class="spectrum-trail spectrum-sum"/><path class="spectrum-level"/>
    <path class="spectrum-signal" d="M0-9L9 0L0 9L-9 0Z"/><circle class="spectrum-sum" r="8"/>
    <text class="spectrum-signal" text-anchor="end">signal alone</text><text class="spectrum-sum">sum</text></svg>
    <label>signal <input type="range" min="0" max="${MOST}" step="${STEP}" value="0.3" autocomplete="off"><output></output></label>
    <figcaption aria-live="polite"></figcaption>`;
  const svg = figure.querySelector("svg"), input = figure.querySelector("input"), said = figure.querySelector("figcaption");
  const [signalTrail, sumTrail, level, diamond] = figure.querySelectorAll("svg > path:not(.hero-axis)");
  const dot = figure.querySelector("circle"), names = figure.querySelectorAll("text[class]");
  let first = Math.round(input.value / STEP), last = first;
  const path = (place) => `M${Array.from({ length: last - first + 1 }, (_, k) => `${x(place(first + k))} ${y((first + k) * STEP)}`).join("L")}`;
  function show() {
    const signal = input.valueAsNumber, k = Math.round(signal / STEP), at = y(signal);
    [first, last] = [Math.min(first, k), Math.max(last, k)];
    signalTrail.setAttribute("d", path((step) => step * STEP));
    sumTrail.setAttribute("d", path((step) => tops[step]));
    level.setAttribute("d", `M${x(signal)} ${at}H${x(tops[k])}`);
    diamond.setAttribute("transform", `translate(${x(signal)} ${at})`);
    dot.setAttribute("transform", `translate(${x(tops[k])} ${at})`);
    names[0].setAttribute("transform", `translate(${Math.max(x(signal) - 14, 210)} ${at - 10})`);
    names[1].setAttribute("transform", `translate(${x(tops[k]) + 14} ${at + 5})`);
    figure.querySelector("output").value = signal.toFixed(2);
    const edge = model.values[0], place = tops[k] < edge + BIN ? "among the bars" : "outside the bars";
    said.textContent = `The noise ends at ${edge.toFixed(2)}, the signal has ${signal.toFixed(2)}, ` +
      `and the largest singular value of the sum is ${tops[k].toFixed(2)}, ${place}.`;
  }
  input.addEventListener("input", show);
  /* The diamond goes where a finger or a mouse is. */
  const drag = (event) => {
    if (!event.buttons) return;
    const { left, width } = svg.getBoundingClientRect();
    input.value = ((event.clientX - left) / width * 640 - 56) / 360;
    show();
  };
  for (const sign of ["pointerdown", "pointermove"]) svg.addEventListener(sign, drag);
  box.append(figure);
  show();
}

/* What a cell prints anew is another picture. */
export function startAll(part) {
  for (const box of part.querySelectorAll(".amp-spectrum")) if (!box.querySelector("svg")) start(box);
}
