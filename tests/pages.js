// What the tests of pages ask in the page itself: `questions.js` in Python names one of these functions.

// Wait for fonts and pictures; then stop what moves and open what is folded, and show what quizzes have to say of every
// answer: all of it is to be read, and may be too wide for a phone.
async function settle() {
    await document.fonts.ready;
    for (const image of document.images) image.loading = "eager";
    await Promise.allSettled([...document.images].map(image => image.decode()));
    const still = document.createElement("style");
    still.textContent = "* { animation: none !important; transition: none !important }";
    document.head.append(still);
    for (const folded of document.querySelectorAll("details")) folded.open = true;
    for (const folded of document.querySelectorAll(".toggle-hidden")) folded.classList.remove("toggle-hidden");
    for (const reason of document.querySelectorAll(".quiz-right, .quiz-wrong")) reason.hidden = false;
}

function unset() {
    return [...document.querySelectorAll(".math")]
        .filter(formula => !formula.querySelector("mjx-container"))
        .map(formula => formula.textContent.trim());
}

// The number of lines that the folds of a text take, the fold at its foot and folds in others aside.
function linesOfFolds() {
    const outer = fold => fold.checkVisibility() && !fold.parentElement.closest("details, .chapter-foot");
    const folds = [...document.querySelectorAll("article details")].filter(outer);
    return folds.filter(fold => !fold.matches(".solution, .tag_hide-input > details.hide")).length;
}

function badPictures() {
    return [...document.images]
        .filter(image => !image.naturalWidth || (!image.alt.trim() && image.closest("article")))
        .map(image => image.currentSrc.slice(0, 100));
}

// The pictures that the experiment of a slider shows, what the slider says, and whether it is at its end.
async function shown(slider) {
    const figures = [...slider.closest(".amp-explore").querySelectorAll("figure")];
    const shown = figures.filter(figure => figure.querySelector("figcaption")?.checkVisibility());
    const pictures = shown.flatMap(figure => [...figure.querySelectorAll("img")]).filter(one => one.checkVisibility());
    await Promise.all(pictures.map(picture => picture.decode()));
    const sources = pictures.map(picture => picture.getAttribute("src"));
    return [sources, slider.getAttribute("aria-valuetext"), slider.value === slider.max];
}

function answered(quiz) {
    const [buttons, verdict] = [[...quiz.querySelectorAll("button")], quiz.querySelector("[aria-live=polite]")];
    const reasons = [...quiz.querySelectorAll(".quiz-right, .quiz-wrong")];
    return {
        focused: buttons.indexOf(document.activeElement),
        said: verdict.checkVisibility({ visibilityProperty: true }) ? verdict.innerText : "",
        reasons: reasons.filter(reason => reason.checkVisibility()).length,
        marks: buttons.map(button => button.dataset.right),
    };
}

// What formulas are made of is most of a page, and takes most of the time: once their size was asked about, a letter
// stands for each. Quizzes are as at first again.
function spell() {
    document.querySelectorAll("mjx-assistive-mml").forEach(part => part.remove());
    document.querySelectorAll("mjx-math").forEach(formula => { formula.textContent = "x"; });
    document.querySelectorAll(".quiz-right, .quiz-wrong").forEach(reason => { reason.hidden = true; });
}

// Formulas are MathJax's; contrast, and the names of answers, which hold the source of formulas, are asked elsewhere.
// The colours of code are in parts that axe need not see.
function thin() {
    document.querySelectorAll("mjx-container").forEach(formula => formula.remove());
    document.querySelectorAll("pre").forEach(code => { code.textContent = code.textContent; });
}

async function violations(options) {
    const part = { exclude: [[".quiz button"]] };
    const { violations } = await axe.run(part, { resultTypes: ["violations"], ...options });
    return violations.filter(({ impact }) => impact !== "minor").map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
}

async function hero(settings) {
    const hero = await import(new URL("../_static/hero.js", document.baseURI));
    const random = hero.generator(1);
    const runs = Array.from({ length: 40 }, () => hero.run(hero.draw(200, random), settings));
    return [hero.forecast(settings), ...["mean", "bar"].map(name => hero.summary(runs).map(step => step[name]))];
}

// Python in the page, which is told when to answer; and a cell whose output has come.
function live(html) {
    window.asked = [];
    const answered = command => (answer, refuse) => window.asked.push({ command, answer, refuse });
    window.ampLive = { call: command => new Promise(answered(command)) };
    const output = document.createElement("div");
    output.innerHTML = html;
    document.querySelector("article").prepend(output);
    output.dispatchEvent(new CustomEvent("amp:output", { bubbles: true }));
}

// What would be missing on paper: the folds of which a part is still folded, or only begins to appear.
function fading() {
    dispatchEvent(new Event("beforeprint"));
    const missing = part =>
        !part.checkVisibility() || getComputedStyle(part).opacity < 1 || part.getAnimations().length;
    const folds = [...document.querySelectorAll("article details:not(.hide, .chapter-foot *)")];
    const faded = folds.filter(fold => [...fold.children].slice(1).some(missing));
    return [folds.length, faded.map(fold => fold.outerHTML.slice(0, 100))];
}

function brokenSigns(all) {
    return all.filter(one => {
        const [formula, sign] = [one.querySelector(".math"), document.createRange()];
        sign.selectNodeContents(one.lastChild);
        return one.lastChild !== formula && sign.getClientRects()[0].left < formula.getClientRects()[0].left;
    }).map(one => one.textContent);
}

async function formulaSizes() {
    const seen = [...document.querySelectorAll("article p mjx-container")].filter(one => one.checkVisibility());
    const ratios = seen.map(formula => {
        const probe = document.createElement("span");
        probe.style = "display: inline-block; width: 10ex";
        formula.parentElement.append(probe);
        const ex = probe.getBoundingClientRect().width / 10;
        probe.remove();
        return parseFloat(getComputedStyle(formula).fontSize) * 0.43 / ex;
    });
    await document.fonts.ready;
    return [[...document.fonts].filter(one => one.status === "loaded").map(one => one.family), ratios];
}

// What is seen of a colour painted on an element: it lies over the grounds of all that the element lies in.
function faintTexts(least) {
    const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const known = new Map();
    function parse(css) {
        if (!known.has(css)) {
            context.clearRect(0, 0, 1, 1);
            context.fillStyle = css;
            context.fillRect(0, 0, 1, 1);
            const [r, g, b, alpha] = context.getImageData(0, 0, 1, 1).data;
            known.set(css, { rgb: [r, g, b], alpha: alpha / 255 });
        }
        return known.get(css);
    }
    function over(top, ground) {
        const alpha = top.alpha + ground.alpha * (1 - top.alpha);
        const mix = (a, b) => alpha && (a * top.alpha + b * ground.alpha * (1 - top.alpha)) / alpha;
        return { rgb: top.rgb.map((value, k) => mix(value, ground.rgb[k])), alpha };
    }
    const painters = new Map();
    function painter(element) {
        if (element && !painters.has(element)) {
            const { backgroundColor, opacity } = getComputedStyle(element);
            const own = { element, ground: parse(backgroundColor), opacity };
            const paints = own.ground.alpha > 0 || opacity !== "1";
            painters.set(element, paints ? own : painter(element.parentElement));
        }
        return element ? painters.get(element) : null;
    }
    function seen(element, colour) {
        for (let layer = painter(element); layer; layer = painter(layer.element.parentElement)) {
            colour = over(colour, layer.ground);
            colour = { rgb: colour.rgb, alpha: colour.alpha * layer.opacity };
        }
        return over(colour, parse("white")).rgb;
    }
    function luminance(rgb) {
        const linear = x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = rgb.map(value => linear(value / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    }
    function contrast(element) {
        const colours = [parse(getComputedStyle(element).color), parse("transparent")];
        const [dark, light] = colours.map(colour => luminance(seen(element, colour))).sort((a, b) => a - b);
        return (light + 0.05) / (dark + 0.05);
    }
    function visible(element) {
        const { width, height } = element.getBoundingClientRect();
        const shown = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
        return shown && width > 1 && height > 1;
    }
    function tags(element, levels) {
        return element && levels ? tags(element.parentElement, levels - 1) + element.cloneNode().outerHTML : "";
    }
    const elements = new Set(document.querySelectorAll("mjx-math"));
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.data.trim()) elements.add(walker.currentNode.parentElement);
    const texts = [...elements].filter(element => !element.closest("mjx-assistive-mml") && visible(element));
    const faint = texts.map(element => [contrast(element), element]).filter(([value]) => value < least);
    return [texts.length, faint.map(([value, element]) => `${value.toFixed(2)}: ${tags(element, 3)}`)];
}

// The addresses that the search finds for each question, the best first.
function found(questions) {
    return questions.map(question => {
        history.replaceState(null, "", `?q=${encodeURIComponent(question)}`);
        return Search._performSearch(...Search._parseQuery(question)).reverse().map(([page, , anchor]) => page + anchor);
    });
}

// The name of what has the focus and how its ring is drawn, if it stands in the head of the page.
function ring() {
    const one = document.activeElement;
    if (!one.closest(".bd-header-article")) return null;
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(one);
    return [one.outerHTML.slice(0, 120), outlineStyle, parseFloat(outlineWidth), outlineColor];
}
