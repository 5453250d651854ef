/* Sets formulas as MathJax does in a page. Standard input, JSON: a list of pairs, the TeX and whether it is displayed.
   Standard output, JSON: the HTML of each, and the style sheet of all. */

const { readFileSync } = require("node:fs");

async function main() {
  const MathJax = await require("mathjax").init({
    loader: { load: ["input/tex", "output/chtml", "a11y/assistive-mml"] },
    tex: {
      packages: { "[-]": ["noerrors", "noundefined"] }, // which would show the source in red
      formatError: (_, error) => { throw error; },
    },
    chtml: { fontURL: "mathjax" },
  });
  const { adaptor } = MathJax.startup;
  const formulas = [];
  for (const [source, display] of JSON.parse(readFileSync(0, "utf-8"))) {
    const formula = await MathJax.tex2chtmlPromise(source, { display }).catch((error) => {
      throw new Error(`${error.message}: ${source}`);
    });
    formulas.push(adaptor.outerHTML(formula));
  }
  process.stdout.write(JSON.stringify({ formulas, style: adaptor.textContent(MathJax.chtmlStylesheet()) }));
}

main().catch(({ message }) => {
  process.stderr.write(`${message}\n`);
  process.exit(1);
});
