/* Python, beside the page: while it computes, the page stays as quick as before. */

let python;
let kernel;
const plainFetch = self.fetch.bind(self);
const HOME = "/home/pyodide";

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

/* Reads a file by its pieces: `arrayBuffer()` would keep a second copy for as long as the page lives. */
async function bytesOf(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url.split("/").at(-1)}: ${answer.status}`);
  const reader = answer.body.getReader();
  const pieces = [];
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
  const bytes = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let place = 0;
  for (const piece of pieces) {
    bytes.set(piece, place);
    place += piece.length;
  }
  return bytes;
}

/* The packages that `names` need, with what these need, each once. */
const come = new Set();
function wheelsOf(names) {
  const { packages } = python.lockfile;
  const needed = new Set(names);
  for (const name of needed) packages[name].depends.forEach((other) => needed.add(other));
  return [...needed].filter((name) => !come.has(name)).map((name) => ({ name, ...packages[name] }));
}

/* Pyodide would also link each of the two hundred parts of these packages; Python links what it imports. */
function unpack({ file_name, name, sha256 }, bytes) {
  python.FS.writeFile(`/tmp/${file_name}`, bytes, { canOwn: true });
  kernel.unpack(`/tmp/${file_name}`, sha256, `${HOME}/lib`);
  come.add(name);
}

async function install(runtime, names, later) {
  const wheels = wheelsOf(names).filter(({ name }) => !later.includes(name));
  await Promise.all(wheels.map(async (wheel) => unpack(wheel, await bytesOf(runtime + wheel.file_name))));
}

/* Unpacks a package while a cell waits in the middle of an import. */
function installNow(runtime, wanted) {
  for (const wheel of wheelsOf([wanted])) {
    const request = new XMLHttpRequest();
    request.open("GET", runtime + wheel.file_name, false);
    request.responseType = "arraybuffer";
    request.send();
    if (request.status !== 200) throw new Error(`${wheel.file_name}: ${request.status}`);
    unpack(wheel, new Uint8Array(request.response));
  }
}

const tasks = {
  async start({ runtime, packages, onDemand, folder }, tell) {
    countBytes(tell);
    const own = Promise.all(["amptutorial.zip", "docstrings.counts"].map((name) => bytesOf(new URL(name, import.meta.url).href)));
    own.catch(() => {}); // it is awaited below
    const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
    python = await loadPyodide({
      indexURL: runtime,
      env: {
        HOME,
        MPLBACKEND: "module://page_figures",
        TQDM_DISABLE: "1",
        AMPTUTORIAL_DOCSTRINGS: `${HOME}/docstrings.counts`,
      },
    });
    const [archive, counts] = await own;
    python.unpackArchive(archive, "zip", { extractDir: HOME });
    python.FS.writeFile(`${HOME}/docstrings.counts`, counts);
    python.FS.mkdirTree(`${HOME}/${folder}`);
    python.FS.chdir(`${HOME}/${folder}`);
    python.pyimport("sys").path.insert(0, `${HOME}/lib`);
    kernel = python.pyimport("page_kernel");
    await install(runtime, packages, Object.values(onDemand));
    kernel.arrange_imports(Object.keys(onDemand), (module) => installNow(runtime, onDemand[module]));
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
