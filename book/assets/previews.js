/* Where a link of the text leads is shown beside it, while the mouse or the keyboard rests on it: a theorem, an equation,
   the first words of a chapter, what a word means. The page is fetched when it is first asked for. Escape closes. */

const WAIT = 250; // ms that a mouse rests before anything is fetched, and that it has for its way into the box
const LEFT_OUT = ".headerlink, .copybtn, .viewcode-link, details, script, style, button, input, svg.map, .cell, .hero";
const pages = new Map();
const box = document.createElement("div");
let link, timer;

function fetchPage(address) {
  if (!pages.has(address)) {
    pages.set(address, fetch(address).then((answer) => {
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.text();
    }).then((text) => new DOMParser().parseFromString(text, "text/html")));
  }
  return pages.get(address);
}

/* What says most in a few lines: of a section its heading and first paragraph, of a term its meaning, else the thing. */
function gist(page, name) {
  const target = name ? page.getElementById(name) : page.querySelector("article section");
  const marked = target?.matches("span:empty") ? target.nextElementSibling : target; // a label stands before its thing
  const found = marked?.matches("h1, h2, h3, h4") ? marked.parentElement : marked;
  if (!found) return [];
  if (found.matches("section")) {
    return [found.querySelector("h1, h2, h3, h4"), found.querySelector(":scope > p")];
  }
  if (found.matches("dt")) {
    const meaning = found.parentElement.matches(".glossary") ? found.nextElementSibling : found.nextElementSibling.querySelector("p");
    return [found, meaning];
  }
  return [found];
}

/* Nothing in the box takes the focus, and no name stands twice on the page. */
function copy(element, address) {
  const copied = document.importNode(element, true);
  copied.querySelectorAll(LEFT_OUT).forEach((part) => part.remove());
  for (const part of [copied, ...copied.querySelectorAll("*")]) part.removeAttribute("id");
  for (const image of copied.querySelectorAll("img")) image.src = new URL(image.getAttribute("src"), address);
  for (const anchor of copied.querySelectorAll("a")) anchor.replaceWith(...anchor.childNodes);
  if (/^(H\d|DT)$/.test(copied.tagName)) {
    const title = document.createElement("p");
    title.className = "preview-title";
    title.append(...copied.childNodes);
    return title;
  }
  return copied;
}

function place(anchor) {
  const { left, top, bottom } = anchor.getClientRects()[0];
  const right = document.documentElement.clientWidth - box.offsetWidth - 8;
  const below = bottom + 4 + box.offsetHeight < innerHeight || top < box.offsetHeight + 4;
  box.style.left = `${scrollX + Math.max(8, Math.min(left, right))}px`;
  box.style.top = `${scrollY + (below ? bottom + 4 : top - box.offsetHeight - 4)}px`;
}

async function show(anchor) {
  link = anchor;
  const [address, name] = anchor.href.split("#");
  const here = address === location.href.split("#")[0];
  try {
    const page = here ? document : await fetchPage(address);
    const parts = gist(page, decodeURIComponent(name ?? "")).filter(Boolean);
    if (link !== anchor || !parts.length) return;
    box.replaceChildren(...parts.map((part) => copy(part, address)));
    box.hidden = false;
    place(anchor);
    if (!here) await window.MathJax?.typesetPromise?.([box]);
    if (link === anchor) place(anchor);
  } catch {
    hide(); // a page that cannot be fetched, as from a file, has no preview; the link still leads there
  }
}

function hide() {
  clearTimeout(timer);
  link = undefined;
  box.hidden = true;
}

function later(action) {
  clearTimeout(timer);
  timer = setTimeout(action, WAIT);
}

box.id = "preview";
box.hidden = true;
box.setAttribute("aria-hidden", "true"); // a screen reader follows the link
box.addEventListener("pointerenter", () => clearTimeout(timer));
box.addEventListener("pointerleave", () => later(hide));
document.body.append(box);

for (const anchor of document.querySelectorAll("article a.reference.internal[href]:not([href$='#'])")) {
  if (location.protocol === "file:" && anchor.href.split("#")[0] !== location.href.split("#")[0]) continue;
  anchor.removeAttribute("title");
  anchor.addEventListener("pointerenter", ({ pointerType }) => pointerType === "mouse" && later(() => show(anchor)));
  anchor.addEventListener("pointerleave", () => later(hide));
  anchor.addEventListener("focus", () => anchor.matches(":focus-visible") && show(anchor));
  anchor.addEventListener("blur", hide);
}
document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
window.addEventListener("resize", hide); // the link is elsewhere now
