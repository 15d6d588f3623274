// Starts `galley emulator`, makes the calls that only an emulator has, and receives its webhooks, as the
// callback of an app does.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// How long to wait for a webhook, and for the emulator to start or to stop.
const webhookMs = 20_000;
const startMs = 60_000;
const stopMs = 20_000;

const verifyToken = "verify-token-of-the-suite";

/** Rejects after some time. */
function timeout(ms, what) {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(`${what} took too long`)), ms).unref());
}

/**
 * The callback of an app on a free port of 127.0.0.1. It answers the handshake and keeps the bodies and
 * signatures of the requests in the order of their arrival.
 */
export class Receiver {
  requests = [];
  handshakes = [];
  #waiting = new Set();

  async start() {
    const server = createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const [status, text] =
        request.method === "GET"
          ? this.#handshake(new URL(request.url, this.url).searchParams)
          : this.#receive(Buffer.concat(chunks), request.headers["x-hub-signature-256"]);
      response.writeHead(status).end(text);
    });
    server.listen(0, "127.0.0.1").unref();
    await once(server, "listening");
    this.url = `http://127.0.0.1:${server.address().port}/meta`;
  }

  #handshake(query) {
    this.handshakes.push(query);
    const isKnown = query.get("hub.mode") === "subscribe" && query.get("hub.verify_token") === verifyToken;
    return isKnown ? [200, query.get("hub.challenge")] : [403, ""];
  }

  #receive(body, signature) {
    this.requests.push({ body, signature });
    for (const check of this.#waiting) check();
    return [200, ""];
  }

  /** Waits until `find(requests)` returns something, and returns it; `undefined` if it never does. */
  async wait(find) {
    let done;
    const found = new Promise((resolve) => {
      done = () => {
        const result = find(this.requests);
        if (result) resolve(result);
      };
    });
    this.#waiting.add(done);
    done();
    try {
      return await Promise.race([found, timeout(webhookMs, "a webhook")]);
    } catch {
      return undefined;
    } finally {
      this.#waiting.delete(done);
    }
  }
}

/** A running `galley emulator`. */
export class Emulator {
  /** Starts it with this receiver as the callback. */
  async start(receiver) {
    this.directory = mkdtempSync(join(tmpdir(), "suite-"));
    // An empty directory, without a galley.toml or files of another run.
    const [empty, files] = ["empty", "files"].map((name) => join(this.directory, name));
    for (const directory of [empty, files]) mkdirSync(directory);
    const options = ["--json", "--listen", "127.0.0.1:0", "--callback", receiver.url, "--verify-token", verifyToken];
    const more = (process.env.SUITE_OPTIONS ?? "").split(" ").filter(Boolean);
    this.child = spawn(process.env.SUITE_GALLEY, ["emulator", ...options, ...more], {
      cwd: empty,
      env: { ...process.env, TMPDIR: files },
      stdio: ["ignore", "pipe", openSync(join(this.directory, "log"), "w")],
    });
    process.on("exit", () => this.child.kill("SIGKILL"));
    const lines = createInterface({ input: this.child.stdout });
    try {
      const [line] = await Promise.race([once(lines, "line"), timeout(startMs, "the start")]);
      this.account = JSON.parse(line);
    } catch (error) {
      throw new Error(`the emulator did not start: ${error}\n${this.#log()}`);
    }
    Object.assign(this, this.account);
    this.base = `${this.url}/api/v1.0/${this.phone_number_id}/${this.key}`;
  }

  #log() {
    return readFileSync(join(this.directory, "log"), "utf8");
  }

  /** Makes a call below `{base}/emulator` that must succeed; returns its document. */
  async call(method, path, body) {
    const response = await fetch(`${this.base}/emulator/${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  /** Moves the clock; returns `{now, applied}`. */
  advance(duration) {
    return this.call("POST", "clock", { advance: duration });
  }

  /** Returns a message as the emulator keeps it. */
  async message(id) {
    return (await this.call("GET", "messages")).data.find((it) => it.id === id);
  }

  /** Stops the emulator; returns what was not as it should be. */
  async stop() {
    const problems = [];
    const exited = once(this.child, "exit");
    if (this.child.exitCode !== null) problems.push("it terminated before");
    else {
      this.child.kill("SIGTERM");
      const [status] = await Promise.race([exited, timeout(stopMs, "the stop")]);
      if (status !== 0) problems.push(`exit status ${status}`);
    }
    const log = this.#log();
    for (const name of ["key", "token", "app_secret"]) {
      if (log.includes(this.account[name])) problems.push(`the log contains the ${name}`);
    }
    if (log.includes("panicked")) problems.push("the log contains a panic");
    problems.push(...readdirSync(join(this.directory, "files")).map((name) => `${name} was left behind`));
    rmSync(this.directory, { recursive: true });
    return problems;
  }
}
