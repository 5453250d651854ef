/* Python, beside the page: while it computes, the page stays as quick as before. */

let python;
let kernel;
const plainFetch = self.fetch.bind(self);

/* Pyodide does not say how far it has come: its bytes are counted as they arrive. */
function countBytes(tell) {
  let bytes = 0;
  let told = 0;
  self.fetch = async (...request) => {
    const answer = await plainFetch(...request);
    if (!answer.ok || !answer.body) return answer;
    const count = (chunk, controller) => {
      bytes += chunk.length;
      if (bytes - told > 2e5) tell((told = bytes));
      controller.enqueue(chunk);
    };
    return new Response(answer.body.pipeThrough(new TransformStream({ transform: count })), answer);
  };
}

async function bytesOf(name) {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer.arrayBuffer();
}

const tasks = {
  async start({ runtime, packages, folder }, tell) {
    countBytes(tell);
    const own = Promise.all(["amptutorial.zip", "docstrings.counts"].map(bytesOf));
    own.catch(() => {}); // it is awaited below
    const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
    const home = "/home/pyodide";
    python = await loadPyodide({
      indexURL: runtime,
      packages,
      env: {
        HOME: home,
        MPLBACKEND: "module://page_figures",
        TQDM_DISABLE: "1",
        AMPTUTORIAL_DOCSTRINGS: `${home}/docstrings.counts`,
      },
    });
    const missing = packages.filter((name) => !(name in python.loadedPackages));
    if (missing.length) throw new Error(`${missing.join(", ")} did not come`);
    const [archive, counts] = await own;
    python.unpackArchive(archive, "zip", { extractDir: home });
    python.FS.writeFile(`${home}/docstrings.counts`, new Uint8Array(counts));
    python.FS.mkdirTree(`${home}/${folder}`);
    python.FS.chdir(`${home}/${folder}`);
    python.pyimport("sys").path.insert(0, `${home}/lib`);
    kernel = python.pyimport("page_kernel");
    self.fetch = plainFetch;
  },
  run({ source, name }, tell) {
    const emit = (output) => tell(output.toJs({ dict_converter: Object.fromEntries }));
    return kernel.run_cell(source, name, emit);
  },
  call({ expression }) {
    return kernel.evaluate(expression);
  },
};

self.onmessage = async ({ data: { number, task, details } }) => {
  try {
    const value = await tasks[task](details, (part) => self.postMessage({ number, part }));
    self.postMessage({ number, value });
  } catch (error) {
    self.postMessage({ number, failure: error.message });
  }
};
