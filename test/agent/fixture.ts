import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, onTestFinished, vi } from "vitest";
import type { Agent } from "../../src/agent/agent.ts";
import type { CallOptions } from "../../src/models/language-model.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import type { ExportPlace } from "../../src/protocol/agent-rpc.ts";
import type { ServerFrame } from "../../src/protocol/events.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { EntityPrincipal } from "../../src/protocol/principal.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import type { Run } from "../../src/protocol/run.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { disarmFaults } from "../../src/shared/fault.ts";
import { createIds } from "../../src/shared/ids.ts";
import { Space } from "../../src/space/space.ts";
import type { Gate } from "../support/gate.ts";
import { installModel, type Script, type ScriptedModel, scriptedModel } from "../support/scripted-model.ts";

/** A workspace with one person, real agents and a real space, met by RPC as the routes and the actors meet them. */
export const ids = createIds(env.SIGNING_SECRET);

export type AgentSettings = Partial<Omit<AgentConfig, "limits" | "context">> & {
  name: string;
  limits?: Partial<AgentConfig["limits"]>;
  context?: Partial<AgentConfig["context"]>;
};

export const openHouse = async () => {
  const workspaceId = ids.mint("wsp");
  unwrap(
    await env.WORKSPACE.getByName(workspaceId).create({
      id: workspaceId,
      name: "Test",
      keyId: ids.mint("key"),
      keyHash: workspaceId,
    }),
  );
  return {
    workspaceId,
    key: { kind: "key", workspaceId, keyId: "key" } as const,
    person: async (name: string): Promise<EntityRef> => {
      const id = ids.mint("ent");
      const workspace = env.WORKSPACE.getByName(workspaceId);
      unwrap(await workspace.createEntity(id, { type: "human", name, role: "member" }));
      return { id, name, type: "human" };
    },
    agent: async (settings: AgentSettings): Promise<EntityRef> => {
      const id = ids.mint("ent");
      unwrap(await env.WORKSPACE.getByName(workspaceId).createAgentEntity(id, settings.name));
      const config = AgentConfig.parse(settings);
      unwrap(await env.AGENT.getByName(id).create({ id, workspaceId, config }));
      // Its remaining work (an event that is tried again later) would take the next test's model.
      onTestFinished(async () => void (await env.AGENT.getByName(id).remove(workspaceId)));
      return { id, name: settings.name, type: "agent" };
    },
    space: async (name: string, members: EntityRef[], confidential = false) => {
      const id = ids.mint("spc");
      const settings = { name, wakePolicy: "every_message", shareOrigin: "reference", confidential } as const;
      unwrap(await env.SPACE.getByName(id).create({ id, workspaceId, settings, members }));
      return openSpace(workspaceId, id);
    },
  };
};

/** The usual scene: a person and an agent in one space. */
export const openScene = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const analyst = await house.agent({ name: "Analyst", ...settings });
  const space = await house.space("Alpha", [husam, analyst]);
  /** Posts as the person, and waits until the agent has ended so many runs in all. Answers them, oldest first. */
  const ask = async (words: string, runs = 1): Promise<Run[]> => {
    await space.post(husam, words);
    return ended(house.workspaceId, analyst, runs);
  };
  return { house, husam, analyst, space, ask, agent: env.AGENT.getByName(analyst.id) };
};

/** Puts a scripted model in the place of every agent's until the test ends. */
export const scripted = (script?: Script): ScriptedModel => {
  const model = scriptedModel(script);
  onTestFinished(installModel(model));
  return model;
};

/** Puts back the clock, the faults and what a test adds to the list. */
export const undoLater = (): (() => void)[] => {
  const added: (() => void)[] = [];
  afterEach(() => {
    disarmFaults();
    vi.useRealTimers();
    for (const undo of added.splice(0).reverse()) undo();
  });
  return added;
};

/** Throws while a space is telling its agents: it wakes for more than its stored timers. */
const toldAll = async (_: unknown, { storage }: DurableObjectState): Promise<void> => {
  const { due } = storage.sql.exec("SELECT min(due_at) AS due FROM timers").one();
  const { retries } = storage.sql.exec("SELECT count(*) AS retries FROM subscribers WHERE retry_at > 0").one();
  // Where a test's clock is behind, the platform takes each alarm for due: it is null while that is found to be too early.
  const alarm = await storage.getAlarm();
  if (retries === 0 && alarm !== null) expect(alarm).toBe(due);
};

/** Resolves once the space has told its agents. One that cannot, as it crashed or has to try again, is not waited for. */
export const told = (spaceId: string): Promise<void> =>
  vi
    .waitFor(() => runInDurableObject(env.SPACE.getByName(spaceId) as unknown as DurableObjectStub, toldAll), 1000)
    .catch(() => undefined);

const openSpace = (workspaceId: string, id: string) => {
  const stub = () => env.SPACE.getByName(id);
  const as = ({ id: entityId }: EntityRef): EntityPrincipal => ({
    kind: "entity",
    workspaceId,
    entityId,
    admin: false,
    expiresAt: Date.now() + 600_000,
  });
  const messages = async (): Promise<Message[]> =>
    unwrap(await stub().list({ kind: "key", workspaceId, keyId: "key" }, { limit: 200 })).items;
  return {
    id,
    stub,
    as,
    messages,
    post: async (who: EntityRef, text: string) => {
      const { message } = unwrap(await stub().post(as(who), { text }));
      await told(id);
      return message;
    },
    texts: async () => (await messages()).map((message) => `${message.sender.name}: ${message.text}`),
    /** Every frame that a member's socket gets from now on. */
    watch: async (who: EntityRef): Promise<ServerFrame[]> => {
      const response = await stub().fetch(
        new Request(`https://space.test/v1/spaces/${id}/stream`, {
          headers: { Upgrade: "websocket", "x-colloquy-principal": JSON.stringify(as(who)) },
        }),
      );
      const socket = response.webSocket;
      if (!socket) throw new Error(`no socket: ${response.status}`);
      const frames: ServerFrame[] = [];
      socket.addEventListener("message", ({ data }) => frames.push(JSON.parse(String(data))));
      socket.accept();
      await vi.waitUntil(() => frames.length > 0);
      return frames;
    },
  };
};

export const agentStub = (agent: { id: string }): DurableObjectStub<Agent> => {
  const namespace: unknown = env.AGENT;
  return (namespace as DurableObjectNamespace<Agent>).getByName(agent.id);
};

export const runsOf = async (workspaceId: string, agent: EntityRef): Promise<Run[]> =>
  unwrap(await env.AGENT.getByName(agent.id).runs(workspaceId, { limit: 100 })).items;

/** Waits until a run of the agent waits for answers. */
export const waits = (workspaceId: string, agent: EntityRef): Promise<void> =>
  vi.waitFor(async () => {
    const statuses = (await runsOf(workspaceId, agent)).map(({ status }) => status);
    expect(statuses).toContain("waiting_reply");
  });

export const inboxOf = async (workspaceId: string, agent: EntityRef) =>
  unwrap(await env.AGENT.getByName(agent.id).inbox(workspaceId, { limit: 100 })).items;

/** Executes a statement in an agent's SQLite. Answers its rows. */
export const rowsIn = (agent: { id: string }, query: string, ...values: SqlStorageValue[]) =>
  runInDurableObject(agentStub(agent), (_, { storage }) => storage.sql.exec(query, ...values).toArray());

/** An agent's ledger as it is stored: the day under "", then each person and space within it. */
export const accountsOf = async (agent: { id: string }): Promise<[of: string, spent: number, reserved: string][]> => {
  const rows = await rowsIn(agent, "SELECT day, spent, reserved, within FROM ledger ORDER BY day");
  type Within = Record<string, { spent: number; reserved: unknown }>;
  return rows.flatMap(({ day, spent, reserved, within }) => [
    [String(day).slice(11), Number(spent), String(reserved)],
    ...Object.entries(JSON.parse(String(within)) as Within).map(([of, account]): [string, number, string] => [
      of,
      account.spent,
      JSON.stringify(account.reserved),
    ]),
  ]);
};

/** Puts so many events of a service into an agent's inbox, which wake nobody there. */
export const fillInbox = (agent: { id: string }, count: number) =>
  rowsIn(
    agent,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO inbox (event_id, type, data, root_id, wakes, status, received_at)
     SELECT 'x' || i, 'service', '{"type":"service","serviceName":"s","payload":1,"root":{"id":"r","kind":"service"}}',
       'r', 0, 'pending', 0 FROM n`,
  );

/** All pages of an agent's export. */
export const exported = async (workspaceId: string, { id }: EntityRef): Promise<string> => {
  let all = "";
  for (let from: ExportPlace | null = null; ; ) {
    const page: { text: string; next: ExportPlace | null } = unwrap(
      await env.AGENT.getByName(id).exportPage(workspaceId, from),
    );
    all += page.text;
    from = page.next;
    if (from === null) return all;
  }
};

/** Waits until the agent has ended `count` runs, and nothing is under way. Answers them, oldest first. */
export const ended = async (workspaceId: string, agent: EntityRef, count: number): Promise<Run[]> =>
  vi.waitFor(
    async () => {
      const runs = await runsOf(workspaceId, agent);
      if (runs.length < count || runs.some((run) => run.status === "running")) {
        throw new Error(`${runs.length} runs: ${runs.map((run) => run.status).join()}`);
      }
      return runs.reverse();
    },
    { timeout: 10_000, interval: 20 },
  );

/** The space answers what agents say, or these words alone, only once the gate is open. */
export const holdSpeech = (gate: Gate, when: "before" | "after", words = ""): void => {
  const { append } = Space.prototype;
  const spy = vi.spyOn(Space.prototype, "append").mockImplementation(async function (this: Space, message) {
    if (!message.text.includes(words)) return append.call(this, message);
    const said = when === "after" ? await append.call(this, message) : undefined;
    gate.reach();
    await gate.opened;
    return said ?? append.call(this, message);
  });
  onTestFinished(() => spy.mockRestore());
};

/** The statements that an object's SQLite executes from now on, and the rows that each reads. */
export const statementsOf = (object: DurableObjectStub): Promise<{ query: string; cursor: { rowsRead: number } }[]> =>
  runInDurableObject(object, (_, { storage: { sql } }) => {
    const statements: { query: string; cursor: { rowsRead: number } }[] = [];
    const execute = sql.exec.bind(sql);
    const recorded = (query: string, ...bindings: SqlStorageValue[]) => {
      const cursor = execute(query, ...bindings);
      statements.push({ query, cursor });
      return cursor;
    };
    Object.defineProperty(sql, "exec", { configurable: true, value: recorded });
    onTestFinished(() => void Reflect.deleteProperty(sql, "exec"));
    return statements;
  });

/** Lets what is due in `milliseconds` come due now: the clock goes on until the test ends, and the alarm goes off. */
export const passTime = async (agent: EntityRef, milliseconds: number): Promise<void> => {
  vi.setSystemTime(Date.now() + milliseconds);
  onTestFinished(() => void vi.useRealTimers());
  await runDurableObjectAlarm(agentStub(agent));
};

/** The user's messages of what a model was given. */
export const userTexts = (call: CallOptions | undefined): string[] =>
  (call?.prompt ?? []).flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
  );
