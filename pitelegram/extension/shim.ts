// The half of pi-telegram that runs inside Pi. It knows nothing of Telegram: it connects to its worker, offers
// the agent the tools that the worker names, and puts the worker's guidance into the system prompt.
//
// Records are one JSON object a line. From the worker: `welcome` {tools, guidance}, `result` {id, ok, text,
// details}. To the worker: `hello`, `call` {id, tool, params}, `cancel` {id}. Unknown types are ignored.

import { connect, type Socket } from "node:net";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

interface ToolSpec {
  name: string;
  label: string;
  description: string;
  parameters: Record<string, unknown>;
}

interface Guidance {
  short: string;
  full: string;
}

interface Result {
  ok: boolean;
  text: string;
  details?: unknown;
}

type Done = (result: Result) => void;

const VARIABLE = "PI_TELEGRAM_WORKER_LINK";
const KEY = Symbol.for("pi-telegram.link");
const WELCOME_MS = 5000;
const MOST_BYTES = 4 * 1024 * 1024;
const GONE: Result = { ok: false, text: "\nThe Telegram worker is gone." };

// One per Pi process: it outlives /reload and every change of the session.
class Link {
  tools: ToolSpec[] = [];
  guidance: Guidance | null = null;
  private socket: Socket | null = null;
  private waiting = new Map<string, Done>();
  private opening: Promise<void> | null = null;
  private number = 0;
  private text = "";

  open(): Promise<void> {
    const path = process.env[VARIABLE];
    delete process.env[VARIABLE]; // the agent's own programs have no business there
    if (path && !this.opening) this.opening = this.connected(path);
    return this.opening ?? Promise.resolve();
  }

  close(): void {
    this.socket?.end();
    this.lost();
  }

  call(tool: string, params: unknown, signal?: AbortSignal): Promise<Result> {
    const socket = this.socket;
    if (!socket) return Promise.resolve(GONE);
    const id = String((this.number += 1));
    return new Promise((resolve) => {
      const stop = () => {
        this.waiting.delete(id);
        this.write({ type: "cancel", id });
        resolve({ ok: false, text: "\nAborted." });
      };
      if (signal?.aborted) return resolve({ ok: false, text: "\nAborted." });
      signal?.addEventListener("abort", stop, { once: true });
      this.waiting.set(id, (result) => {
        signal?.removeEventListener("abort", stop);
        resolve(result);
      });
      this.write({ type: "call", id, tool, params });
    });
  }

  private connected(path: string): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(path);
      const timer = setTimeout(() => socket.destroy(), WELCOME_MS);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      socket.setEncoding("utf8");
      socket.on("connect", () => {
        this.socket = socket;
        this.write({ type: "hello", version: 1 });
      });
      socket.on("data", (data: string) => this.received(data, done));
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        this.lost();
        done();
      });
      socket.unref(); // it keeps no Pi alive
    });
  }

  private received(data: string, welcomed: () => void): void {
    this.text += data;
    if (this.text.length > MOST_BYTES) return void this.socket?.destroy();
    for (let end = this.text.indexOf("\n"); end >= 0; end = this.text.indexOf("\n")) {
      const line = this.text.slice(0, end);
      this.text = this.text.slice(end + 1);
      this.take(line, welcomed);
    }
  }

  private take(line: string, welcomed: () => void): void {
    let record: { type?: string; id?: string } & Partial<Result> & { tools?: ToolSpec[]; guidance?: Guidance };
    try {
      record = JSON.parse(line);
    } catch {
      return;
    }
    if (record?.type === "welcome") {
      this.tools = record.tools ?? [];
      this.guidance = record.guidance ?? null;
      welcomed();
    } else if (record?.type === "result" && record.id !== undefined) {
      const done = this.waiting.get(record.id);
      this.waiting.delete(record.id);
      done?.({ ok: record.ok === true, text: String(record.text ?? ""), details: record.details });
    }
  }

  private write(record: unknown): void {
    this.socket?.write(`${JSON.stringify(record)}\n`);
  }

  private lost(): void {
    this.socket = null;
    this.guidance = null;
    this.tools = [];
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const done of waiting) done(GONE);
  }
}

function link(): Link {
  const shared = globalThis as unknown as Record<symbol, Link>;
  return (shared[KEY] ??= new Link());
}

export default function telegram(pi: ExtensionAPI): void {
  const worker = link();
  const offered = new Set<string>();

  pi.on("session_start", async () => {
    await worker.open();
    for (const tool of worker.tools) {
      if (offered.has(tool.name)) continue;
      offered.add(tool.name);
      pi.registerTool({
        name: tool.name,
        label: tool.label,
        description: tool.description,
        promptSnippet: tool.description.split("\n")[0],
        parameters: tool.parameters as never,
        async execute(_id, params, signal) {
          const result = await worker.call(tool.name, params, signal);
          if (!result.ok) throw new Error(result.text);
          return { content: [{ type: "text", text: result.text }], details: result.details };
        },
      });
    }
  });

  pi.on("before_agent_start", (event) => {
    const { guidance } = worker;
    if (!guidance) return undefined;
    const prompt = "prompt" in event ? event.prompt : "";
    const words = /^\[telegram[\]|]/.test(prompt) ? guidance.full : guidance.short;
    const before: unknown = event.systemPrompt;
    if (Array.isArray(before)) return { systemPrompt: [...before, { type: "text", text: words }] as never };
    return { systemPrompt: `${before}\n\n${words}` };
  });

  pi.on("session_shutdown", (event) => {
    if (event.reason === "quit") worker.close();
  });
}
