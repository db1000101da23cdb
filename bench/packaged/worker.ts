import { DurableObject } from "cloudflare:workers";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { type JSONSchema7, jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { asc } from "drizzle-orm";
import { drizzle } from "drizzle-orm/durable-sqlite";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { Hono } from "hono";
import * as z from "zod";

/**
 * The least that the packages of this project cost from a POST to a model. Hono routes it, Zod parses the body, and
 * Drizzle writes a row in each of two objects and reads the conversation. The AI SDK sends as many messages, bytes and
 * tools as the product. Nothing of ours: no key is checked, nobody is woken again, nothing is counted or kept.
 */
type Env = { ROOM: DurableObjectNamespace<Room>; MIND: DurableObjectNamespace<Mind> };

const Asking = z.strictObject({ url: z.string(), messages: z.int(), bytes: z.int() });
type Asking = z.infer<typeof Asking>;
const Post = z.strictObject({ text: z.string(), asking: Asking });
const Tools = z.array(
  z.looseObject({
    function: z.looseObject({ name: z.string(), description: z.string().optional(), parameters: z.json() }),
  }),
);
type Tools = z.infer<typeof Tools>;

const turns = sqliteTable("turns", { id: integer().primaryKey(), text: text().notNull() });
const create = "CREATE TABLE IF NOT EXISTS turns (id INTEGER PRIMARY KEY, text TEXT NOT NULL)";

export class Room extends DurableObject<Env> {
  readonly #db = drizzle(this.ctx.storage);

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(create);
  }

  async post(words: string, asking: Asking): Promise<number> {
    const { id } = this.#db.insert(turns).values({ text: words }).returning().get();
    this.ctx.waitUntil(this.env.MIND.getByName("mind").wake(words, asking));
    return id;
  }
}

export class Mind extends DurableObject<Env> {
  readonly #db = drizzle(this.ctx.storage);
  #tools: ToolSet = {};

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(create);
  }

  equip(tools: Tools): void {
    this.#tools = Object.fromEntries(
      tools.map(({ function: { name, description = "", parameters } }) => [
        name,
        tool({ description, inputSchema: jsonSchema(parameters as JSONSchema7) }),
      ]),
    );
  }

  async wake(words: string, { url, messages, bytes }: Asking): Promise<void> {
    this.#db.insert(turns).values({ text: words }).run();
    const told = this.#db.select().from(turns).orderBy(asc(turns.id)).all();
    const each = "x".repeat(Math.ceil(bytes / messages));
    const asked = Array.from({ length: messages }, (_, at): ModelMessage => {
      const role = at % 2 === 0 ? "user" : "assistant";
      return { role, content: `${told[at % told.length]?.text}${each}` };
    });
    const server = createOpenAICompatible({ name: "openai-compatible", baseURL: url });
    const answer = streamText({ model: server("packaged"), messages: asked, tools: this.#tools, maxRetries: 0 });
    await answer.consumeStream();
  }
}

const app = new Hono<{ Bindings: Env }>()
  .get("/healthz", (c) => c.text("ok"))
  .post("/tools", async (c) => {
    await c.env.MIND.getByName("mind").equip(Tools.parse(await c.req.json()));
    return c.json({});
  })
  .post("/post", async (c) => {
    const { text, asking } = Post.parse(await c.req.json());
    return c.json(await c.env.ROOM.getByName("room").post(text, asking));
  });

export default app;
