/* A deck of slides: its page is read like any other; the button shows one section at a time, and keys turn them. */

const article = document.querySelector("article > section");
const slides = [...article.querySelectorAll(":scope > section")];
const forward = new Set(["ArrowRight", "ArrowDown", "PageDown", " "]);
const backward = new Set(["ArrowLeft", "ArrowUp", "PageUp"]);
let shown = 0;

function show(number) {
  shown = Math.min(Math.max(number, 0), slides.length - 1);
  slides.forEach((slide, k) => slide.classList.toggle("shown", k === shown));
}

function present() {
  document.documentElement.classList.add("presenting");
  show(0);
  document.documentElement.requestFullscreen?.().catch(() => {}); // a window does as well
}

function leave() {
  document.documentElement.classList.remove("presenting");
  if (document.fullscreenElement) document.exitFullscreen();
  slides[shown].scrollIntoView();
}

document.addEventListener("keydown", (event) => {
  if (!document.documentElement.classList.contains("presenting")) return;
  const turns = { Home: 0, End: slides.length - 1 };
  if (event.key === "Escape") leave();
  else if (forward.has(event.key)) show(shown + 1);
  else if (backward.has(event.key)) show(shown - 1);
  else if (event.key in turns) show(turns[event.key]);
  else return;
  event.preventDefault();
});

/* The browser takes the key Escape for itself while it fills the screen. */
document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement && document.documentElement.classList.contains("presenting")) leave();
});

slides.forEach((slide, k) => {
  slide.classList.add("slide");
  slide.dataset.number = `${k + 1} / ${slides.length}`;
});

document.querySelector("button.present").addEventListener("click", present);
