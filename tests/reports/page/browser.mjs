// A headless Chromium, driven through DevTools messages over a pair of pipes: no port, no package.
import {spawn} from "node:child_process";
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";

const kPatience = 60000;   // milliseconds until something that does not come is an error
const kPageStarts = 15000; // milliseconds in which a new, empty page answers
const kPagesTried = 3;

export class Browser {
  constructor(program) {
    this.folder = mkdtempSync(join(tmpdir(), "assay_page_test_"));
    this.process = spawn(program, [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe", `--user-data-dir=${this.folder}`,
      "about:blank",
    ], {stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]});
    this.waiting = new Map();
    this.listeners = [];
    this.next = 1;
    let text = "";
    this.process.stdio[4].setEncoding("utf8");
    this.process.stdio[4].on("data", (part) => {
      const messages = (text + part).split("\0");
      text = messages.pop();
      messages.forEach((message) => this.receive(JSON.parse(message)));
    });
    this.process.stdio[3].on("error", () => {});  // it ended; whoever waits is told below
    this.process.on("error", (error) => this.fail(error));
    this.process.on("exit", (code) => this.fail(new Error(`${program} ended (status ${code})`)));
  }

  fail(error) {
    for (const {reject} of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  receive({id, method, params, result, error}) {
    if (method) this.listeners.forEach((listener) => listener(method, params));
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    this.waiting.delete(id);
    if (error) waiting.reject(new Error(`${waiting.method}: ${error.message}`));
    else waiting.resolve(result);
  }

  send(method, params = {}, patience = kPatience) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${method}: no answer`)), patience);
      const ended = (settle) => (value) => { clearTimeout(late); settle(value); };
      this.waiting.set(id, {method, resolve: ended(resolve), reject: ended(reject)});
      this.process.stdio[3].write(JSON.stringify({id, method, params, sessionId: this.session}) + "\0");
    });
  }

  /// An empty page of its own. Now and then a renderer of a busy machine never answers, before it has seen anything of ours:
  /// then another is asked for.
  async emptyPage() {
    for (let tried = 1; ; ++tried) {
      this.session = undefined;
      const {targetId} = await this.send("Target.createTarget", {url: "about:blank"});
      const {sessionId} = await this.send("Target.attachToTarget", {targetId, flatten: true});
      this.session = sessionId;
      try {
        return await this.send("Page.enable", {}, kPageStarts);
      } catch (error) {
        if (tried === kPagesTried) throw error;
      }
    }
  }

  /// Opens a page of its own; `complaints` collects console errors, exceptions and requests beyond the file.
  async open(url) {
    await this.emptyPage();
    this.complaints = [];
    const loaded = new Promise((resolve) => {
      this.listeners = [(method, params) => {
        if (method === "Page.loadEventFired") resolve();
        if (method === "Runtime.exceptionThrown") this.complaints.push(`exception: ${params.exceptionDetails.exception?.description}`);
        if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) {
          this.complaints.push(`console.${params.type}: ${params.args.map((arg) => arg.value ?? arg.description).join(" ")}`);
        }
        if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) this.complaints.push(`log: ${params.entry.text}`);
        if (method === "Network.requestWillBeSent" && params.request.url !== url) this.complaints.push(`request: ${params.request.url}`);
      }];
    });
    for (const domain of ["Runtime", "Log", "Network"]) await this.send(`${domain}.enable`);
    await this.send("Emulation.setDeviceMetricsOverride", {width: 1160, height: 900, deviceScaleFactor: 1, mobile: false});
    await this.send("Page.navigate", {url});
    await loaded;
  }

  /// The value of an expression in the page; it may be a promise. `values` are its parameters.
  async evaluate(fn, ...values) {
    const expression = `(${fn})(...${JSON.stringify(values)})`;
    const {result, exceptionDetails} = await this.send("Runtime.evaluate", {expression, awaitPromise: true, returnByValue: true, userGesture: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  mouse(type, {x, y}, more = {}) {
    return this.send("Input.dispatchMouseEvent", {type, x, y, button: "none", ...more});
  }
  async click(at, times = 1) {
    for (let count = 1; count <= times; ++count) {
      for (const type of ["mousePressed", "mouseReleased"]) await this.mouse(type, at, {button: "left", clickCount: count});
    }
  }
  async press(key) {
    for (const type of ["keyDown", "keyUp"]) await this.send("Input.dispatchKeyEvent", {type, key, text: type === "keyDown" ? key : undefined});
  }

  async close() {
    this.session = undefined;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    await this.send("Browser.close").catch(() => this.process.kill());
    await ended;
    rmSync(this.folder, {recursive: true, force: true, maxRetries: 5});
  }
}
