import { DurableObject } from "cloudflare:workers";
import { type Generation, generate } from "../edge/generate.ts";

/**
 * The baseline of the benches: bare Durable Objects that do the least that could be called the same job.
 * `Bare.listen` sends every delta to every socket as it comes; `Bare.post` does one insert and one broadcast, to all sockets or to a group;
 * `Bare.newest` is one read. `Bare.edit` keeps a text by storing all of it again for each version, and answers
 * it as the product does. `Bare.tell` posts a text to a server again and again.
 */
type Env = { BARE: DurableObjectNamespace<Bare>; SPEAKER: DurableObjectNamespace<Speaker> };

/** Replaces `length` characters at `at`. */
type Edit = { at: number; length: number; text: string };

type Telling = { url: string; text: string; headers: Record<string, string>; times: number };

const createMessages = (sql: SqlStorage): void => {
  sql.exec("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
};
const insert = (sql: SqlStorage, text: string): number =>
  sql.exec<{ id: number }>("INSERT INTO messages (text) VALUES (?) RETURNING id", text).one().id;

export class Bare extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    createMessages(ctx.storage.sql);
  }

  override async fetch(request: Request): Promise<Response> {
    const { 0: client, 1: server } = new WebSocketPair();
    const group = new URL(request.url).searchParams.get("group");
    this.ctx.acceptWebSocket(server, group === null ? [] : [group]);
    return new Response(null, { status: 101, webSocket: client });
  }

  async listen(frames: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of frames) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#broadcast(line);
    }
  }

  /** With a group, only its sockets are told. */
  async post(text: string, group?: string): Promise<number> {
    const id = insert(this.ctx.storage.sql, text);
    this.#broadcast(JSON.stringify({ type: "message", id, text }), group);
    return id;
  }

  async newest(): Promise<number> {
    const sql = "SELECT coalesce(max(id), 0) AS id FROM messages";
    return this.ctx.storage.sql.exec<{ id: number }>(sql).one().id;
  }

  edit({ at, length, text }: Edit): { version: number; rendered: string; value: string } {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY, text TEXT NOT NULL)");
    const newest = sql.exec<{ text: string }>("SELECT text FROM versions ORDER BY version DESC LIMIT 1").toArray()[0];
    const before = newest?.text ?? "";
    const after = before.slice(0, at) + text + before.slice(at + length);
    const insert = "INSERT INTO versions (text) VALUES (?) RETURNING version";
    return { ...sql.exec<{ version: number }>(insert, after).one(), rendered: after, value: after };
  }

  async tell({ url, text, headers, times }: Telling): Promise<void> {
    for (let told = 0; told < times; told += 1) {
      const answer = await fetch(url, { method: "POST", headers, body: text });
      await answer.text();
    }
  }

  size(): number {
    return this.ctx.storage.sql.databaseSize;
  }

  #broadcast(frame: string, group?: string): void {
    for (const socket of this.ctx.getWebSockets(group)) socket.send(frame);
  }
}

/** Generates in an object of its own, as an agent does, and streams to the one with the sockets. */
export class Speaker extends DurableObject<Env> {
  async speak(name: string, generation: Generation): Promise<number[]> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(undefined, { highWaterMark: 1024 });
    const heard = this.env.BARE.getByName(name).listen(readable);
    const writer = writable.getWriter();
    const encoder = new TextEncoder();
    const times = await generate(generation, (textDelta) => {
      const frame = { type: "tool-input-delta", streamId: name, textDelta };
      void writer.write(encoder.encode(`${JSON.stringify(frame)}\n`));
    });
    await writer.close();
    await heard;
    return times;
  }
}

const postTo = async (bare: DurableObjectStub<Bare>, request: Request): Promise<number> => {
  const { text, group } = await request.json<{ text: string; group?: string }>();
  return bare.post(text, group);
};

export default {
  async fetch(request, env): Promise<Response> {
    const url = new URL(request.url);
    const name = url.searchParams.get("name") ?? "";
    switch (url.pathname) {
      case "/healthz":
        return new Response("ok");
      case "/stream":
        return env.BARE.getByName(name).fetch(request);
      case "/speak":
        return Response.json(await env.SPEAKER.getByName(name).speak(name, await request.json<Generation>()));
      case "/post":
        return Response.json(await postTo(env.BARE.getByName(name), request));
      case "/text":
        return Response.json(await env.BARE.getByName(name).edit(await request.json<Edit>()));
      case "/tell":
        await env.BARE.getByName(name).tell(await request.json<Telling>());
        return Response.json({});
      case "/size":
        return Response.json({ bytes: await env.BARE.getByName(name).size() });
      case "/newest":
        return Response.json(await env.BARE.getByName(name).newest());
      default:
        return new Response("no such address", { status: 404 });
    }
  },
} satisfies ExportedHandler<Env>;
