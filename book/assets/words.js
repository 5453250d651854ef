/* A field for any word of the first chapter, and one for the reader's own sentences: no Python, and nothing leaves the page.

   A text is embedded as a document of that chapter, given the numbers of the words: at its most likely numbers, if each
   known word is counted once. Its gain is how much likelier the others make each word than frequency alone does. */

const SWEEPS = 4; // of Newton steps, one coordinate after the other
const NEAR = 6, BESIDE = 4, FEWEST = 6; // words named for a word, for a line; words that an error takes
const ENDINGS = ["", "s", "es", "d", "ed", "ing"];

/* The numbers of the words, as many in a row as there are deviations. */
export function decode({ words, rows, unit, deviations, shares }) {
  const bytes = Uint8Array.from(atob(rows), (letter) => letter.charCodeAt(0)), d = deviations.length;
  const high = new Int8Array(bytes.buffer, bytes.length / 2); // the low bytes of all numbers come first
  const numbers = Array.from(high, (part, place) => (256 * part + bytes[place]) * unit);
  const vectors = words.map((_, j) => numbers.slice(j * d, (j + 1) * d));
  const places = new Map(words.map((word, j) => [word, j]));
  const scaled = vectors.map((vector) => vector.map((x, k) => x * deviations[k]));
  const total = shares.reduce((sum, share) => sum + share);
  return { words, places, vectors, scaled, deviations, shares: shares.map((share) => share / total) };
}

const dot = (x, y) => x.reduce((sum, value, k) => sum + value * y[k], 0);

/* The words at the smallest angles to a vector, but for those that are left out. */
export function nearest({ words, vectors }, vector, without) {
  const cosines = vectors.map((other) => dot(vector, other) / Math.sqrt(dot(other, other)));
  const order = [...words.keys()].filter((j) => !without.includes(j)).sort((i, j) => cosines[j] - cosines[i]);
  return order.slice(0, NEAR).map((j) => words[j]);
}

/* The most likely numbers of a document, in units of their deviations, and the shares that it gives to all words. */
export function embed({ scaled, shares }, document, sweeps = SWEEPS) {
  const z = scaled[0].map(() => 0), rates = Float64Array.from(shares);
  for (let step = 0; step < sweeps * z.length; step++) {
    const k = step % z.length;
    let total = 0, first = 0, second = 0;
    rates.forEach((rate, j) => {
      const x = scaled[j][k];
      total += rate;
      first += rate * x;
      second += rate * x * x;
    });
    const mean = first / total, variance = second / total - mean ** 2;
    const slope = document.reduce((sum, j) => sum + scaled[j][k] - mean, -z[k]);
    const change = slope / (document.length * variance + 1);
    z[k] += change;
    rates.forEach((rate, j) => { rates[j] = rate * Math.exp(change * scaled[j][k]); });
  }
  const total = rates.reduce((sum, rate) => sum + rate);
  return { z, shares: rates.map((rate) => rate / total) };
}

/* For each word of each document: the log of its share given the others of its document, over that by frequency. */
export function gains(model, documents) {
  return documents.filter((document) => document.length > 1).flatMap((document) => document.map((word) => {
    const { shares } = embed(model, document.filter((other) => other !== word));
    return Math.log(shares[word] / model.shares[word]);
  }));
}

/* The places of the known words of a text, each once. A word may have an ending that the chapter's words have lost. */
export function known({ places }, text) {
  const found = (text.toLowerCase().match(/[a-z]+/g) ?? []).map((word) => ENDINGS
    .filter((ending) => word.endsWith(ending)).map((ending) => places.get(word.slice(0, word.length - ending.length)))
    .find((place) => place !== undefined));
  return [...new Set(found)].filter((place) => place !== undefined);
}

/* What there is to learn from texts: a verdict, and the numbers behind it. */
export function judge(model, documents) {
  const all = gains(model, documents), mean = all.reduce((sum, gain) => sum + gain, 0) / all.length;
  if (all.length < FEWEST) return ["Too few known words for an error.", `${FEWEST} are needed, in lines of two or more.`];
  const error = Math.sqrt(all.reduce((sum, gain) => sum + (gain - mean) ** 2, 0) / all.length / (all.length - 1));
  return [
    mean > 2 * error ? "There is something to learn." : "Nothing is learned: this may be chance.",
    `Each of ${all.length} words is predicted from the others of its line: it becomes ${Math.exp(mean).toFixed(2)} times as likely ` +
    `(a gain of ${mean.toFixed(2)} ± ${error.toFixed(2)} nats, the logarithm).`,
  ];
}

function say(paragraph, lines) {
  paragraph.replaceChildren(...lines.flatMap((line) => [line, document.createElement("br")]).slice(0, -1));
}

function label(text, input) {
  const element = document.createElement("label");
  element.append(text, input);
  return element;
}

function start(field) {
  const model = decode(JSON.parse(field.dataset.model)), [near, judged] = field.querySelectorAll("p");
  const { words, places, vectors, deviations } = model;
  const word = Object.assign(document.createElement("input"), { type: "search", value: field.dataset.word });
  const texts = Object.assign(document.createElement("textarea"), { rows: 3, value: field.dataset.texts });
  for (const input of [word, texts]) Object.assign(input, { spellcheck: false, autocapitalize: "off" });
  for (const line of [near, judged]) line.setAttribute("aria-live", "polite");
  word.addEventListener("input", () => {
    const typed = word.value.trim().toLowerCase(), place = places.get(typed);
    const begun = words.filter((other) => other.startsWith(typed)).slice(0, 8);
    near.textContent = place !== undefined ? `${typed}: ${nearest(model, vectors[place], [place]).join(" ")}`
      : typed && begun.length ? `${typed}…: ${begun.join(" ")}` : "No such word in these manuals of programs. Try tree, fourier or signal.";
  });
  function read() {
    const documents = texts.value.split("\n").filter((line) => line.trim()).map((line) => known(model, line));
    const lines = documents.map((document) => {
      if (!document.length) return "No known word in this line: the words are of manuals of programs.";
      const { z } = embed(model, document);
      const others = nearest(model, z.map((x, k) => x * deviations[k]), document);
      return `Known: ${document.map((j) => words[j]).join(" ")}. Near them: ${others.slice(0, BESIDE).join(" ")}.`;
    });
    const [verdict, numbers] = judge(model, documents);
    say(judged, [...lines, Object.assign(document.createElement("strong"), { textContent: verdict }), numbers]);
  }
  let waiting;
  texts.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(read, 300);
  });
  near.before(label(`Any of the ${words.length.toLocaleString("en")} words `, word));
  judged.before(label("Your own sentences on programs or mathematics, one a line (they stay in this page)", texts));
  read();
}

/* A field starts once: what a cell prints anew is another. */
export function startAll(part) {
  for (const field of part.querySelectorAll(".amp-words")) if (!field.querySelector("input")) start(field);
}
