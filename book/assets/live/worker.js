/* Python, beside the page: while it computes, the page stays as quick as before. */

let python;
let kernel;
const plainFetch = self.fetch.bind(self);
const HOME = "/home/pyodide";
const LIBRARIES = { extractDir: `${HOME}/lib` };

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

/* The packages that `names` need, with what these need, each once. */
const come = new Set();
function wheelsOf(names) {
  const { packages } = python.lockfile;
  const needed = new Set(names);
  for (const name of needed) packages[name].depends.forEach((other) => needed.add(other));
  return [...needed].filter((name) => !come.has(name)).map((name) => ({ name, ...packages[name] }));
}

/* Unpacks packages, all at once. Pyodide would also link each of their two hundred parts; Python links what it imports. */
async function install(runtime, names, later) {
  const wheels = wheelsOf(names).filter(({ name }) => !later.includes(name));
  await Promise.all(wheels.map(async ({ name, file_name, sha256 }) => {
    const bytes = sha256.match(/../g).map((pair) => String.fromCharCode(parseInt(pair, 16)));
    const answer = await fetch(runtime + file_name, { integrity: `sha256-${btoa(bytes.join(""))}` });
    if (!answer.ok) throw new Error(`${file_name}: ${answer.status}`);
    python.unpackArchive(await answer.arrayBuffer(), "wheel", LIBRARIES);
    come.add(name);
  }));
}

/* Unpacks a package while a cell waits in the middle of an import. */
function installNow(runtime, wanted) {
  const hashlib = python.pyimport("hashlib");
  for (const { name, file_name, sha256 } of wheelsOf([wanted])) {
    const request = new XMLHttpRequest();
    request.open("GET", runtime + file_name, false);
    request.responseType = "arraybuffer";
    request.send();
    if (request.status !== 200) throw new Error(`${file_name}: ${request.status}`);
    const bytes = new Uint8Array(request.response);
    if (hashlib.sha256(python.toPy(bytes)).hexdigest() !== sha256) throw new Error(`${file_name} has another hash`);
    python.unpackArchive(bytes, "wheel", LIBRARIES);
    come.add(name);
  }
}

const tasks = {
  async start({ runtime, packages, onDemand, folder }, tell) {
    countBytes(tell);
    const own = bytesOf("amptutorial.zip");
    own.catch(() => {}); // it is awaited below
    const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
    python = await loadPyodide({
      indexURL: runtime,
      env: { HOME, MPLBACKEND: "module://page_figures", TQDM_DISABLE: "1" },
    });
    await install(runtime, packages, Object.values(onDemand));
    python.unpackArchive(await own, "zip", { extractDir: HOME });
    python.FS.mkdirTree(`${HOME}/${folder}`);
    python.FS.chdir(`${HOME}/${folder}`);
    python.pyimport("sys").path.insert(0, `${HOME}/lib`);
    kernel = python.pyimport("page_kernel");
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
