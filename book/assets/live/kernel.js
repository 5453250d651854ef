/* The page's side of the worker in which Python runs. */

export class Kernel {
  /* `progress` is told how many bytes have come. `ready` is kept once Python has loaded. */
  constructor(settings, progress) {
    this.waiting = new Map();
    this.asked = 0;
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = ({ message }) => this.end(message ?? "its script could not be loaded");
    const place = new URL(settings.runtime, import.meta.url);
    this.ready = this.ask("start", { ...settings, runtime: place.href }, progress).catch((error) => {
      throw error.stopped ? error : new Error(`Python could not be loaded from ${place.host} (${error.message})`);
    });
  }

  /* Has the worker do something, and returns what comes of it. `listen` hears what comes before the end. */
  ask(task, details, listen) {
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.asked, { resolve, reject, listen });
      this.worker.postMessage({ number: this.asked, task, details });
    });
  }

  hear({ number, part, value, failure }) {
    const asked = this.waiting.get(number);
    if (!asked) return;
    if (part !== undefined) {
      asked.listen(part);
      return;
    }
    this.waiting.delete(number);
    if (failure === undefined) asked.resolve(value);
    else asked.reject(new Error(failure));
  }

  end(reason) {
    this.worker.terminate();
    const error = Object.assign(new Error(reason ?? "Python was stopped"), { stopped: !reason });
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}
