/* What a cell gives, shown where a notebook shows it. What is stored stays until the first new output, or the end. */

const HINT = "Cells above have not run yet: “Run all above” runs them first.";
const STREAM = "output stream highlight-myst-ansi notranslate";
const CLASSES = {
  stdout: STREAM,
  stderr: `${STREAM} live-stderr`,
  plain: "output text_plain highlight-myst-ansi notranslate",
  error: "output highlight-myst-ansi notranslate live-error",
  html: "output text_html",
  svg: "output image_svg",
  png: "output image_png",
};

export class Output {
  /* `lacksAbove`: cells above have not run, and a name may be missing for that reason. */
  constructor(cell, lacksAbove) {
    this.cell = cell;
    this.lacksAbove = lacksAbove;
  }

  add(output) {
    if (!this.cell.element) return;
    this.clear();
    const [[kind, content]] = Object.entries(output);
    if (kind === "png") this.showPicture(content);
    else if (kind === "html" || kind === "svg") this.showMarkup(kind, content);
    else this.showText(kind, content);
    if (kind === "error") this.explain(content);
  }

  /* What a run gave is told from what is stored by a line below it. */
  finish(seconds) {
    if (!this.cell.element) return;
    this.clear();
    if (seconds === null || !this.box.children.length) return;
    const said = document.createElement("p");
    said.className = "live-fresh";
    said.textContent = `computed here, ${seconds} s`;
    this.box.after(said);
  }

  /* Empties the place of the outputs once, and keeps its pictures with their descriptions for new ones. */
  clear() {
    if (this.box) return;
    const { element, code } = this.cell;
    this.box = element.querySelector(".cell_output");
    if (!this.box) {
      this.box = document.createElement("div");
      this.box.className = "cell_output docutils container";
      const folded = element.classList.contains("tag_hide-input");
      (folded ? element : code.closest(".cell_input").parentElement).append(this.box);
    }
    this.box.parentElement.querySelector(".live-fresh")?.remove();
    this.frames = [...this.box.children].filter((child) => child.matches(":has(img):not(:has(.amp-explore))"));
    this.box.replaceChildren();
  }

  place(kind) {
    const place = document.createElement("div");
    place.className = CLASSES[kind];
    this.box.append(place);
    return place;
  }

  showText(kind, text) {
    const last = this.box.lastElementChild;
    if (last?.dataset.kind === kind) {
      last.querySelector("pre").append(text);
      return;
    }
    const place = this.place(kind);
    place.dataset.kind = kind;
    const frame = document.createElement("div");
    frame.className = "highlight";
    const pre = document.createElement("pre");
    pre.append(text);
    frame.append(pre);
    place.append(frame);
  }

  showMarkup(kind, markup) {
    const place = this.place(kind);
    place.innerHTML = markup;
    place.dispatchEvent(new CustomEvent("amp:output", { bubbles: true }));
  }

  /* A new picture stands in the frame of a stored one, with its description, its caption and its number. */
  showPicture(content) {
    const source = `data:image/png;base64,${content}`;
    const frame = this.frames.shift();
    const old = frame?.querySelector("img");
    if (old) {
      old.src = source;
      this.box.append(frame);
      return;
    }
    const image = new Image();
    image.src = source;
    image.alt = `Picture drawn by cell ${this.cell.number}`;
    this.place("png").append(image);
  }

  explain(text) {
    const fold = this.box.closest("details");
    if (fold) fold.open = true;
    if (!this.lacksAbove || !text.includes("NameError")) return;
    const hint = document.createElement("p");
    hint.className = "live-hint";
    hint.textContent = HINT;
    this.box.append(hint);
  }
}
