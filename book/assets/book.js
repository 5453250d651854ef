/* What the pages of the book do without a kernel: quizzes, menus, print, names for the sliders of the experiments, and
   mathematics in them. */

/* A quiz is written as nested boxes. Its answers become buttons; what a button has to say appears in one live region,
   so that a screen reader reads it out. Formulas in a button would take the focus from it and be left out of its name:
   they are inert, and the name is the source. */
function startQuiz(quiz, number) {
  const question = quiz.querySelector(".quiz-question");
  question.id = `quiz-${number}`;
  quiz.setAttribute("role", "group");
  quiz.setAttribute("aria-labelledby", question.id);
  const verdict = document.createElement("div");
  verdict.className = "quiz-verdict";
  verdict.setAttribute("aria-live", "polite");
  for (const choice of quiz.querySelectorAll(".quiz-choice")) {
    const [answer, reason] = choice.children;
    const right = reason.classList.contains("quiz-right");
    const text = document.createElement("span");
    text.inert = true;
    text.append(...answer.firstElementChild.childNodes);
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-label", text.textContent.replace(/\\[()]/g, ""));
    button.append(text);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      for (const other of quiz.querySelectorAll("button")) {
        other.setAttribute("aria-pressed", String(other === button));
      }
      const word = document.createElement("strong");
      word.textContent = right ? "Right. " : "Not so. ";
      verdict.dataset.right = right;
      verdict.replaceChildren(word, ...reason.cloneNode(true).childNodes);
    });
    reason.hidden = true;
    answer.replaceWith(button);
  }
  quiz.append(verdict);
}

/* The theme binds its menus to the first button of their kind on the page, which is one of a header that is hidden. */
function dropHiddenMenus() {
  document.querySelectorAll("#pst-header .sidebar-toggle").forEach((button) => button.remove());
}

/* On paper nothing can be unfolded. */
window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((folded) => { folded.open = true; });
});

/* The widgets draw their sliders without a name. */
function nameSliders() {
  for (const slider of document.querySelectorAll(".amp-explore .widget-inline-hbox")) {
    const handle = slider.querySelector("[role=slider]");
    const name = slider.querySelector(".widget-label")?.textContent;
    const value = slider.querySelector(".widget-readout")?.textContent;
    if (handle && handle.getAttribute("aria-label") !== name) {
      handle.setAttribute("aria-label", name);
    }
    if (handle && handle.getAttribute("aria-valuetext") !== value) {
      handle.setAttribute("aria-valuetext", value);
    }
  }
}

/* The widgets call MathJax by the name of its second version; the page loads the third, if it can. */
window.addEventListener("load", () => {
  if (window.MathJax) {
    window.MathJax.Hub = { Queue: ([, , element]) => window.MathJax.typesetPromise?.([element]) };
  }
});

/* The page is read, and MathJax does not run yet: answers still hold the source of their formulas. */
document.addEventListener("readystatechange", () => {
  dropHiddenMenus();
  document.querySelectorAll(".quiz").forEach(startQuiz);
  new MutationObserver(nameSliders).observe(document.body, { childList: true, characterData: true, subtree: true });
}, { once: true });
