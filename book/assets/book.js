/* What the pages of the book do without a kernel: quizzes, menus, print, and experiments. */

/* A quiz is written as nested boxes. Its answers become buttons; what a button has to say appears in one live region,
   so that a screen reader reads it out. Formulas in a button would take the focus from it and be left out of its name:
   they are inert, and the name is the source. An answer that was tried keeps its mark, and the first answers count.
   What was answered outlives a reload, as long as the question is the same. */
const score = { tried: 0, right: 0 };

/* What a browser keeps of this page under a name; some keep nothing. The cells of a page use it too. */
window.ampMemory = {
  recall(name) {
    try {
      return JSON.parse(localStorage.getItem(`${location.pathname} ${name}`));
    } catch {
      return null;
    }
  },
  keep(name, value) {
    try {
      localStorage.setItem(`${location.pathname} ${name}`, JSON.stringify(value));
    } catch { /* nothing is kept */ }
  },
};

function startQuiz(quiz, number) {
  const question = quiz.querySelector(".quiz-question");
  question.id = `quiz-${number}`;
  quiz.setAttribute("role", "group");
  quiz.setAttribute("aria-labelledby", question.id);
  const verdict = document.createElement("div");
  verdict.className = "quiz-verdict";
  verdict.setAttribute("aria-live", "polite");
  const name = question.textContent.trim();
  const buttons = [];
  const pressed = [];
  for (const choice of quiz.querySelectorAll(".quiz-choice")) {
    const [answer, reason] = choice.children;
    const right = reason.classList.contains("quiz-right");
    const text = document.createElement("span");
    text.inert = true;
    text.append(...answer.firstElementChild.childNodes);
    const spoken = text.cloneNode(true);
    spoken.querySelectorAll("[data-tex]").forEach((formula) => formula.replaceChildren(formula.dataset.tex));
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-label", spoken.textContent.replace(/\\[()]/g, ""));
    button.append(text);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      for (const other of quiz.querySelectorAll("button")) {
        other.setAttribute("aria-pressed", String(other === button));
      }
      const word = document.createElement("strong");
      word.textContent = right ? "Right. " : "Not so. ";
      if (!verdict.dataset.right) {
        score.tried += 1;
        score.right += Number(right);
      }
      verdict.dataset.right = button.dataset.right = right;
      document.querySelector(".quiz-score").textContent = `Right at the first try: ${score.right} of ${score.tried}.`;
      verdict.replaceChildren(word, ...reason.cloneNode(true).childNodes);
      pressed.push(buttons.indexOf(button));
      window.ampMemory.keep(name, pressed);
    });
    reason.hidden = true;
    answer.replaceWith(button);
    buttons.push(button);
  }
  quiz.append(verdict);
  return () => window.ampMemory.recall(name)?.forEach((place) => buttons[place]?.click());
}

function startQuizzes(quizzes) {
  const answers = quizzes.map(startQuiz);
  const total = document.createElement("p");
  total.className = "quiz-score";
  quizzes.at(-1)?.after(total);
  answers.forEach((answer) => answer());
}

/* On paper nothing can be unfolded. Code that is closed stays so: what it draws is there. */
window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not(.hide)").forEach((folded) => { folded.open = true; });
});

/* An experiment. On a page without Python all its pictures are there, the last slider turning fastest, and the sliders
   choose which one is shown. Where Python runs in the page, it draws what they choose. */
function startExperiment(experiment) {
  const [controls, pictures] = experiment.children;
  if (!controls.hidden) {
    return;
  }
  const sliders = [...controls.querySelectorAll("input")];
  const show = "name" in experiment.dataset ? drawAnew(experiment.dataset.name, sliders, pictures)
    : () => turnPictures(sliders, pictures);
  for (const slider of sliders) {
    const labels = JSON.parse(slider.dataset.labels);
    slider.addEventListener("input", () => {
      const label = labels[slider.value];
      slider.setAttribute("aria-valuetext", label);
      slider.closest(".amp-slider").querySelector("output").textContent = label;
      show();
    });
  }
  controls.hidden = false;
  /* who reaches for a slider will want the other pictures */
  for (const sign of ["focusin", "pointerover"]) {
    controls.addEventListener(sign, () => {
      pictures.querySelectorAll("img").forEach((picture) => { picture.loading = "eager"; });
    }, { once: true });
  }
}

function turnPictures(sliders, pictures) {
  const place = sliders.reduce((sum, slider) => sum * (Number(slider.max) + 1) + slider.valueAsNumber, 0);
  [...pictures.children].forEach((picture, k) => { picture.hidden = k !== place; });
}

/* Return a function that asks for a picture. While one is being drawn, nothing is asked for but the last wish. */
function drawAnew(name, sliders, pictures) {
  let busy = false;
  let again = false;
  return async () => {
    again = true;
    if (busy) {
      return;
    }
    busy = true;
    while (again) {
      again = false;
      const chosen = sliders.map((slider) => slider.value).join(", ");
      try {
        pictures.innerHTML = await window.ampLive.call(`${name}.figure([${chosen}])`);
      } catch (error) {
        const text = document.createElement("pre");
        text.textContent = String(error);
        pictures.replaceChildren(text);
      }
    }
    busy = false;
  };
}

function startExperiments(part) {
  part.querySelectorAll(".amp-explore").forEach(startExperiment);
  for (const [kind, module] of Object.entries({ words: "./words.js", spectrum: "./spectrum.js" })) {
    if (part.querySelector(`.amp-${kind}`)) import(module).then(({ startAll }) => startAll(part));
  }
}

/* Whoever runs a cell in the page says that its output has come. */
document.addEventListener("amp:output", (event) => startExperiments(event.target));

/* What the themes tell screen readers, mended: what is written on a button begins its name, a list of references has no
   items that are its own, an arrow has a name, and the side bar is a region. */
function mendRoles() {
  document.querySelectorAll("summary[aria-label], .search-button-field[aria-label]").forEach((button) => {
    button.removeAttribute("aria-label");
  });
  for (const toggle of document.querySelectorAll(".has-children > details > summary")) {
    toggle.setAttribute("aria-label", `Pages under ${toggle.closest("li").querySelector("a").textContent.trim()}`);
  }
  document.querySelectorAll(".citation-list").forEach((list) => list.removeAttribute("role"));
  const bar = document.getElementById("pst-primary-sidebar");
  bar?.setAttribute("role", "region");
  bar?.setAttribute("aria-label", "The book");
}

/* The index of the search is larger than all other scripts, and few ask for it. */
function readIndex() {
  const script = document.createElement("script");
  script.src = `${document.documentElement.dataset.content_root}searchindex.js`;
  document.head.append(script);
}

/* The page is read, for the script is deferred. */
mendRoles();
startQuizzes([...document.querySelectorAll(".quiz")]);
startExperiments(document);
document.getElementById("pst-search-dialog")?.addEventListener("focusin", readIndex, { once: true });
