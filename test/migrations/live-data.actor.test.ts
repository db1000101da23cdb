import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { histories } from "../../migrations/histories.ts";
import { EditBlock } from "../../src/protocol/block.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { scripted } from "../agent/fixture.ts";
import { openEndpoint } from "../endpoint/fixture.ts";
import { call, expectOk, ids, openHouse } from "../support/house.ts";
import { openLine } from "../support/line-listener.ts";
import { installModel, scriptedModel, step, text, call as toolCall } from "../support/scripted-model.ts";
import { countsOf, dump } from "./database.ts";

/**
 * A deploy meets live data. Each fixture is the database of an actor that has lived, made by the history of migrations
 * up to its name. Today's code opens it, reads all of it and goes on. A new migration gets its fixtures by running this
 * file: they are written where they are missing, and are then never changed.
 */
const namespaces = {
  agent: env.AGENT,
  endpoint: env.ENDPOINT,
  person: env.PERSON,
  space: env.SPACE,
  workspace: env.WORKSPACE,
};
type Actor = keyof typeof namespaces;
const actors: Actor[] = ["agent", "endpoint", "person", "space", "workspace"];

const fixtures = import.meta.glob<string>("./fixtures/*.sql", { query: "?raw", import: "default", eager: true });

/** The migrations of each actor, by the names of their fixtures. A history that is written anew has other ones. */
const fixturesOf = (actor: Actor): string[] =>
  histories[actor].journal.entries.map(({ tag, when }) => `./fixtures/${actor}-${tag}-${when}.sql`);

const inside = <T>(actor: Actor, id: string, act: (storage: DurableObjectStorage) => T): Promise<T> => {
  const stub: unknown = namespaces[actor].getByName(id);
  return runInDurableObject(stub as DurableObjectStub, (_, { storage }) => act(storage));
};

const runsOf = async (workspaceId: string, agentId: string) =>
  unwrap(await env.AGENT.getByName(agentId).runs(workspaceId, { limit: 100 })).items;

const ended = (workspaceId: string, agentId: string, count: number) =>
  vi.waitFor(
    async () => {
      const runs = await runsOf(workspaceId, agentId);
      // A fixture grows old: what its plans have missed since may run as well.
      const over = runs.filter(({ status }) => status === "completed" || status === "skipped");
      expect(over.length).toBeGreaterThanOrEqual(count);
      return runs;
    },
    { timeout: 10_000 },
  );

/** Something of everything that a small house keeps. */
const live = async (): Promise<Record<Actor, string>> => {
  const house = await openHouse("Lived in");
  const bearer = house.secretKey;
  const mia = await house.person("Mia");
  const { id: agent } = await house.agent({ name: "Analyst" });
  const space = await house.space("Alpha", [mia, { id: agent }]);
  const send = (path: string, body: unknown, method = "POST") =>
    expectOk(z.unknown(), call(path, { bearer, body, method }));
  await call("/v1/workspace/secrets/API_KEY", { bearer, method: "PUT", body: { value: "hidden" } });
  await send(`/v1/agents/${agent}/hooks`, { name: "sender", scheme: "github" });
  await send(`/v1/agents/${agent}/plans/daily`, { name: "Daily", instruction: "Report", cron: "0 9 * * *" }, "PUT");
  await send(`/v1/agents/${agent}/archival`, { content: "The launch is on Friday" }, "POST");
  await expectOk(z.unknown(), call(`/v1/agents/${agent}/search?q=launch`, { bearer }));
  await send(`/v1/agents/${agent}/blocks`, { label: "notes", type: "core", content: "Calm" });
  await send(`/v1/agents/${agent}/blocks/notes/operations`, { operations: [{ op: "append_text", text: " and kind" }] });
  await send(`/v1/agents/${agent}/goals/launch`, { description: "Launch it" }, "PUT");
  onTestFinished(
    installModel(
      scriptedModel([
        step(toolCall("enter_space", { spaceId: space.id })),
        step(toolCall("set_memories", { memories: [{ key: "asked", value: "yes" }] })),
        step(toolCall("send_message", { text: "It's “noted” — for good;\nreally." })),
        step(text("Done.")),
      ]),
    ),
  );
  const line = await openLine(mia.token);
  const endpoint = await openEndpoint({ types: ["space.message", "space.updated"] }, house);
  await house.say(space.id, mia, "@Analyst note it");
  await ended(house.workspaceId, agent, 1);
  await line.until("notification");
  await vi.waitFor(async () => expect(await endpoint.texts()).toHaveLength(2));
  return { agent, endpoint: endpoint.endpoint.id, person: mia.id, space: space.id, workspace: house.workspaceId };
};

test("every migration of each actor has its fixture, and no fixture is of an old history", async () => {
  const known = actors.flatMap(fixturesOf);
  expect(
    Object.keys(fixtures).filter((name) => !known.includes(name)),
    "the history was written anew, before any release: remove these and run this file again",
  ).toEqual([]);
  expect(
    actors.flatMap((actor) => fixturesOf(actor).slice(0, -1)).filter((name) => !(name in fixtures)),
    "only the newest can still be made: take them from the history of this repository",
  ).toEqual([]);
  const missing = actors.filter((actor) => !(`${fixturesOf(actor).at(-1)}` in fixtures));
  if (missing.length === 0) return;
  const lived = await live();
  for (const actor of missing) {
    const sql = await inside(actor, lived[actor], dump);
    await expect(sql).toMatchFileSnapshot(`${fixturesOf(actor).at(-1)}`);
  }
});

const fixtureOf = (prefix: string): string =>
  fixtures[Object.keys(fixtures).find((name) => name.includes(prefix)) ?? ""] ?? "";

const first = (sql: string, pattern: RegExp): string => {
  const [, found] = pattern.exec(sql) ?? [];
  if (found === undefined) throw new Error(`no ${pattern} in the fixture`);
  return found;
};
const ownId: Record<Exclude<Actor, "person">, RegExp> = {
  agent: /INSERT INTO "agent" .*?'(ent_\w+)'/,
  endpoint: /INSERT INTO "endpoint" .*?'(ep_\w+)'/,
  space: /INSERT INTO "space" .*?'(spc_\w+)'/,
  workspace: /INSERT INTO "workspaces?" .*?'(wsp_\w+)'/,
};

/** Puts the database where the actor of this id will find it, and has the actor come up anew on it. */
const openAs = async (actor: Actor, id: string, sql: string) => {
  await inside(actor, id, async (storage) => {
    await storage.deleteAll();
    storage.sql.exec(sql);
  });
  const before = await inside(actor, id, countsOf);
  await abortAllDurableObjects();
  return before;
};

const open = async (actor: keyof typeof ownId, sql: string) => {
  const id = first(sql, ownId[actor]);
  return { id, before: await openAs(actor, id, sql), workspaceId: first(sql, /\b(wsp_\w+)/) };
};

describe.each(Object.keys(fixtures).filter((name) => name.includes("/agent-")))("%s", (name) => {
  test("[R1] an agent of then is read whole, and goes on", async () => {
    const { id, workspaceId, before } = await open("agent", fixtures[name] ?? "");
    const agent = env.AGENT.getByName(id);
    expect(unwrap(await agent.describe(workspaceId)).id).toBe(id);
    const runs = await runsOf(workspaceId, id);
    expect(runs.length).toBeGreaterThan(0);
    for (const run of runs) expect(unwrap(await agent.run(workspaceId, run.id)).steps?.length).toBeGreaterThan(0);
    expect(unwrap(await agent.memories(workspaceId))).toHaveLength(before.memories ?? -1);
    expect(unwrap(await agent.goals(workspaceId))).toHaveLength(before.goals ?? -1);
    expect(unwrap(await agent.plans(workspaceId))).toHaveLength(before.plans ?? -1);
    expect(unwrap(await agent.hooks(workspaceId))).toHaveLength(before.hooks ?? -1);
    for (const mode of ["fts", "vector"]) {
      const archived = SearchQuery.parse({ query: "launch Friday", types: ["archival"], mode });
      expect(unwrap(await agent.search(workspaceId, archived)).items).toHaveLength(before.archival ?? 0);
    }
    const blocks = unwrap(await agent.blocks(workspaceId));
    expect(blocks).toHaveLength(before.blocks ?? 0);
    for (const { label, version } of blocks) {
      const undo = EditBlock.parse({ operations: [{ op: "undo" }] });
      expect(unwrap(await agent.editBlock(workspaceId, label, undo, "system"))).toMatchObject({
        value: "Calm",
        version: version + 1,
      });
    }
    unwrap(await agent.context(workspaceId));
    const model = scripted(() => step(text("Still here.")));
    unwrap(await agent.trigger(workspaceId, { serviceName: "test", payload: "Are you there?" }));
    await ended(workspaceId, id, runs.length + 1);
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain("for good");
  });
});

/** As a deploy leaves a run that was cut in its second step: its event is taken, its timer set. Nothing else is due. */
const cutRun = `
  UPDATE runs SET status = 'running', kept = 0, outcome = NULL, receipts = NULL, journal_to = NULL, completed_at = NULL;
  DELETE FROM journal WHERE step > 1;
  DELETE FROM journal WHERE step = 1 AND kind <> 'assistant';
  DELETE FROM memories;
  INSERT INTO inbox (seq, event_id, type, data, root_id, wakes, attempts, status, received_at)
    SELECT json_extract(events, '$[0]'), json_extract("trigger", '$.eventId'), 'service',
      json_object('type', 'service', 'serviceName', 'test', 'payload', 'x',
        'root', json_object('id', json_extract("trigger", '$.eventId'), 'kind', 'service')),
      json_extract("trigger", '$.eventId'), 1, 0, 'taken', started_at FROM runs;
  DELETE FROM plans;
  DELETE FROM timers;
  INSERT INTO timers (name, due_at) VALUES ('loop', 1);
`;

describe.each(Object.keys(fixtures).filter((name) => name.includes("/agent-")))("%s", (name) => {
  test("[R1] [R2] [R3] a run that a deploy cut goes on where it was, and does the rest once", async () => {
    const model = scripted(() => step(text("Done.")));
    const { id, workspaceId } = await open("agent", (fixtures[name] ?? "") + cutRun);
    const stub: unknown = env.AGENT.getByName(id);
    await inside("agent", id, (storage) => storage.setAlarm(Date.now()));
    await runDurableObjectAlarm(stub as DurableObjectStub);
    const [run] = await ended(workspaceId, id, 1);
    expect(run).toMatchObject({ status: "completed" });
    const agent = env.AGENT.getByName(id);
    expect(unwrap(await agent.memories(workspaceId))).toMatchObject([{ key: "asked", value: "yes" }]);
    expect(unwrap(await agent.run(workspaceId, run?.id ?? "")).steps).toHaveLength(3);
    expect(model.calls).toHaveLength(1);
    expect(unwrap(await agent.inbox(workspaceId, { limit: 10 })).items).toEqual([]);
  });
});

describe.each(Object.keys(fixtures).filter((name) => name.includes("/space-")))("%s", (name) => {
  test("[D1] a space of then shows all that was said, and takes more", async () => {
    const sql = fixtures[name] ?? "";
    const { id, workspaceId } = await open("space", sql);
    const space = env.SPACE.getByName(id);
    const key = { kind: "key", workspaceId, keyId: ids.mint("key") } as const;
    const texts = async () => unwrap(await space.list(key, { limit: 200 })).items.map((message) => message.text);
    expect(await texts()).toEqual(["@Analyst note it", "It's “noted” — for good;\nreally."]);
    const { members } = unwrap(await space.describe(key));
    const person = members?.find(({ type }) => type === "human");
    unwrap(await space.post({ ...key, entityId: person?.id ?? "" }, { text: "And on." }));
    expect((await texts()).at(-1)).toBe("And on.");
  });
});

describe.each(Object.keys(fixtures).filter((name) => name.includes("/workspace-")))("%s", (name) => {
  test("a workspace of then knows its entities, keys, secrets and spaces, and takes more", async () => {
    const { id, before } = await open("workspace", fixtures[name] ?? "");
    const workspace = env.WORKSPACE.getByName(id);
    expect(unwrap(await workspace.describe()).name).toBe("Lived in");
    expect(unwrap(await workspace.entities({ limit: 100 })).items).toHaveLength(before.entities ?? -1);
    expect(unwrap(await workspace.spaces({ limit: 100 })).items).toMatchObject([{ name: "Alpha" }]);
    expect(unwrap(await workspace.secretNames())).toEqual(["API_KEY"]);
    unwrap(await workspace.createEntity(ids.mint("ent"), { type: "human", name: "Leo", role: "member" }));
  });
});

describe.each(Object.keys(fixtures).filter((name) => name.includes("/endpoint-")))("%s", (name) => {
  test("[E4] an endpoint of then shows what was sent, and forgets its server's answers", async () => {
    // What was sent is shown for seven days.
    const ofToday = `UPDATE deliveries SET at = ${Date.now()}; DELETE FROM timers;`;
    const { id, workspaceId, before } = await open("endpoint", (fixtures[name] ?? "") + ofToday);
    const endpoint = env.ENDPOINT.getByName(id);
    const { items } = unwrap(await endpoint.deliveries(workspaceId, { limit: 100 }));
    expect(items).toHaveLength(before.deliveries ?? -1);
    expect(items.map(({ type, status }) => [type, status])).toContainEqual(["space.message", 200]);
    expect(unwrap(await endpoint.forgetAnswers(workspaceId))).toBe(items.length);
  });
});

describe.each(Object.keys(fixtures).filter((name) => name.includes("/person-")))("%s", (name) => {
  test("[I1] [I5] a person of then takes a line, shows their spaces, and counts on", async () => {
    const house = await openHouse();
    const [mia, ben] = [await house.person("Mia"), await house.person("Ben")];
    const before = await openAs("person", mia.id, fixtures[name] ?? "");
    expect([before.spaces, before.notifications]).toEqual([1, 1]);
    const beta = await house.space("Beta", [mia, ben]);
    const line = await openLine(mia.token, "?cursor=0");
    expect(line.welcome).toMatchObject({ spaces: [{ spaceId: beta.id, unread: 0 }], cursor: 1 });
    await house.say(beta.id, ben, "And on.");
    expect(await line.until("notification")).toMatchObject([{ cursor: 2, kind: "direct", body: "And on." }]);
  });
});

test("[R1] what an outbox of then was still to tell is told by its job", async () => {
  const sql = fixtureOf("/workspace-0000");
  const space = first(sql, /INSERT INTO "spaces" .*?'(spc_\w+)'/);
  const waiting = `
    INSERT INTO outbox (kind, target, subject, version, attempts, due_at) VALUES ('remove', '${space}', 'ent_x', 1, 3, 5);
    DELETE FROM timers;
    INSERT INTO timers (name, due_at) VALUES ('outbox', 5);
  `;
  const { id } = await open("workspace", sql + waiting);
  const stub: unknown = env.WORKSPACE.getByName(id);
  unwrap(await env.WORKSPACE.getByName(id).describe());
  const rows = (table: string) => inside("workspace", id, ({ sql: db }) => db.exec(`SELECT * FROM ${table}`).toArray());
  const payload = JSON.stringify({ about: "remove", target: space, subject: "ent_x" });
  expect(await rows("jobs")).toEqual([{ kind: "tell", key: `remove ${space} ent_x`, due_at: 5, attempts: 3, payload }]);
  await inside("workspace", id, (storage) => storage.setAlarm(Date.now()));
  await runDurableObjectAlarm(stub as DurableObjectStub);
  await vi.waitFor(async () => expect([await rows("jobs"), await rows("timers")]).toEqual([[], []]));
});

test("[R1] a message that a router of then had yet to decide about is decided by its job", async () => {
  const undecided = `
    INSERT INTO decisions (seq, tries) SELECT seq, 2 FROM log WHERE message_id IS NOT NULL LIMIT 1;
    DELETE FROM timers;
    INSERT INTO timers (name, due_at) VALUES ('route', 5);
  `;
  const { id, workspaceId } = await open("space", fixtureOf("/space-0000") + undecided);
  const space = env.SPACE.getByName(id);
  const key = { kind: "key", workspaceId, keyId: ids.mint("key") } as const;
  const [message] = unwrap(await space.list(key, { limit: 1, after: 0 })).items;
  expect(unwrap(await space.routing(key, message?.id ?? "")).outcome).toBe("pending");
  const stub: unknown = space;
  await inside("space", id, (storage) => storage.setAlarm(Date.now()));
  await runDurableObjectAlarm(stub as DurableObjectStub);
  await vi.waitFor(async () =>
    expect(unwrap(await space.routing(key, message?.id ?? ""))).toMatchObject({
      outcome: "failed",
      error: { code: "interrupted" },
    }),
  );
});

/** Origins as they were stored when they told words and names. */
const [otherSpace, otherRun] = [ids.mint("spc"), ids.mintOwned("run", ids.mint("ent"))];
const oldOrigins = [
  { sourceSpaceId: otherSpace, sourceSpaceName: "Zanzibar", sourceSenderName: "Zoe", sourceEvent: "Zebras cost 9" },
  { sourceType: "service", sourceRunId: otherRun, sourceName: "Zanzibar" },
];

test("[C7] what a space of then stored as origins is served as references, and shares no text", async () => {
  const [message = "", service = ""] = oldOrigins.map((origin) => JSON.stringify(origin));
  const told = `
    UPDATE log SET frame = json_set(frame, '$.message.origin', json('${message}')) WHERE message_count = 1 AND message_id > '';
    UPDATE log SET frame = json_set(frame, '$.message.origin', json('${service}')) WHERE message_count = 2 AND message_id > '';
    INSERT INTO tool_calls (seq, agent_id, is_open, updated_seq, message)
      SELECT seq, 'ent_x', 0, seq, frame -> '$.message' FROM log WHERE message_id > '';
  `;
  const sql = fixtureOf("/space-0004");
  const { id, workspaceId } = await open("space", sql + told);
  const space = env.SPACE.getByName(id);
  const key = { kind: "key", workspaceId, keyId: ids.mint("key") } as const;
  expect(sql).toMatch(/INSERT INTO "space" .*'text'/);
  expect(unwrap(await space.describe(key)).shareOrigin).toBe("reference");
  const { items } = unwrap(await space.list(key, { limit: 200 }));
  const served = [{ spaceId: otherSpace }, { sourceType: "service", sourceRunId: otherRun }];
  expect(items.map(({ origin }) => origin)).toEqual(served);
  const stored = (table: string, column: string) =>
    inside("space", id, ({ sql: db }) => db.exec(`SELECT ${column} AS text FROM ${table}`).toArray());
  const rows = JSON.stringify([await stored("log", "frame"), await stored("tool_calls", "message")]);
  expect(rows).not.toMatch(/Zanzibar|Zoe|Zebra/);
  expect(items.map((each) => each.text)).toEqual(["@Analyst note it", "It's “noted” — for good;\nreally."]);
});

test("[C7] an agent of then that others told an origin keeps the reference, and shares no text", async () => {
  const [message = ""] = oldOrigins.map((origin) => JSON.stringify(origin));
  const event = `{"type":"space_message","spaceName":"Alpha","delivered":{"message":{"origin":${message}}}}`;
  const columns = "event_id, type, data, root_id, received_at";
  const told = `
    DELETE FROM plans;
    INSERT INTO inbox (${columns}, wakes) VALUES ('old', 'space_message', '${event}', 'r', 1, 0);
    INSERT INTO overheard (seq, ${columns}) VALUES (99, 'heard', 'space_message', '${event}', 'r', 1);
    INSERT INTO calls (call_id, run_ordinal, tool, input, root, origin, attached, phase, created_at)
      VALUES ('tc_old', 1, '{}', '{}', '{}', '${message}', 0, 'done', 1);
  `;
  const { id } = await open("agent", fixtureOf("/agent-0018") + told);
  const all = await inside("agent", id, ({ sql }) =>
    JSON.stringify([
      sql.exec("SELECT data -> '$.delivered.message.origin' AS origin FROM inbox WHERE event_id = 'old'").one(),
      sql.exec("SELECT data -> '$.delivered.message.origin' AS origin FROM overheard").one(),
      sql.exec("SELECT origin FROM calls").one(),
    ]),
  );
  expect(JSON.parse(all)).toEqual(
    Array.from({ length: 3 }, () => ({ origin: JSON.stringify({ spaceId: otherSpace }) })),
  );
  const snapshots = await inside("agent", id, ({ sql }) => sql.exec("SELECT snapshot FROM spaces").toArray());
  expect(JSON.stringify(snapshots)).toContain('shareOrigin\\":\\"reference');
});

test("[C20] a call of then that asks to let words out keeps where they go, and to whom", async () => {
  const sql = fixtureOf("/agent-0025");
  const [alpha, board] = [first(sql, /'(spc_\w+)'/), ids.mint("spc")];
  const toolOf = (last: string) =>
    JSON.stringify({ name: "send_message", description: `2 people now. ${last}`, approval: { required: true } });
  const asked = [
    "The space is open: its agents know it everywhere.",
    "The space is confidential: its agents know it there alone.",
  ]
    .map((last, index) => `('tc_${index}', 1, '${toolOf(last)}', '{}', '{}', '${board}', '${alpha}', 1, 'asked', 1)`)
    .join();
  const columns = "call_id, run_ordinal, tool, input, root, space_id, active_space_id, attached, phase, created_at";
  const { id } = await open("agent", `${sql} DELETE FROM plans; INSERT INTO calls (${columns}) VALUES ${asked};`);
  const rows = await inside("agent", id, ({ sql: db }) =>
    db.exec("SELECT release, tool ->> '$.description' AS description FROM calls ORDER BY call_id").toArray(),
  );
  const release = (confidential: boolean) => ({ spaceId: alpha, name: "Alpha", readers: "2 people", confidential });
  expect(rows).toEqual(
    [false, true].map((confidential) => ({
      release: JSON.stringify(release(confidential)),
      description: "send_message",
    })),
  );
});

test("[R1] a block stays shared with the agents and spaces of before the migration", async () => {
  const sql = fixtureOf("/agent-0007");
  const space = first(sql, /'(spc_\w+)'/);
  const friend = ids.mint("ent");
  const shared = `
    INSERT INTO block_shares (block_id, agent_id, permission, created_at) SELECT id, '${friend}', 'Partner', 9e12 FROM blocks;
    INSERT INTO block_spaces (block_id, space_id, permission, created_at) SELECT id, '${space}', 'ReadOnly', 2 FROM blocks;
  `;
  const { id, workspaceId } = await open("agent", sql + shared);
  const agent = env.AGENT.getByName(id);
  expect(unwrap(await agent.blockGrants(workspaceId, "notes"))).toEqual([
    { granteeId: space, permission: "ReadOnly", createdAt: "1970-01-01T00:00:00.002Z" },
    { granteeId: friend, permission: "Partner", createdAt: "2255-03-14T16:00:00.000Z" },
  ]);
  // Whose share is older than all versions reads them, and else from the newest of then on.
  expect((await agent.block(workspaceId, "notes", 1, space)).ok).toBe(true);
  expect((await agent.block(workspaceId, "notes", 1, friend)).ok).toBe(false);
  expect((await agent.block(workspaceId, "notes", 2, friend)).ok).toBe(true);
  expect(unwrap(await agent.spaceBlocks(workspaceId, space))).toMatchObject([
    { label: "notes", permission: "ReadOnly", sharedFrom: { agentId: id } },
  ]);
  const tables = await inside("agent", id, countsOf);
  expect(tables).not.toHaveProperty("block_shares");
  expect(tables).not.toHaveProperty("block_spaces");
});

test("a block that was deleted before the migration is gone with its versions", async () => {
  const { id } = await open("agent", `${fixtureOf("/agent-0010")}; UPDATE blocks SET deleted_at = 1;`);
  const { blocks, block_versions, block_snapshots } = await inside("agent", id, countsOf);
  expect([blocks, block_versions, block_snapshots]).toEqual([0, 0, 0]);
});

test("[K3] [K10] a block put away of old comes back, and search forgets what calls kept", async () => {
  const calls = [{ callId: "tc_then", index: 0, toolName: "block_archive", input: { label: "notes" } }];
  const result = `[Tool result block_edit, tc_1] {"content":"zebra"}`;
  const lines = [`["Alpha", spc_1] "Mia" (human, id: ent_1, msg_1): "hello"`, result, `[Service "zoo"] "gnu"`];
  const columns = "type, permission, description, schema, pinned, char_limit, version, rendered, snapshot_version";
  const then = `
    DELETE FROM plans;
    UPDATE blocks SET type = 'archival';
    INSERT INTO blocks (label, ${columns}, last_used_at, created_at, updated_at)
      SELECT 'old', ${columns}, last_used_at, created_at, updated_at FROM blocks;
    INSERT INTO journal (run_ordinal, step, kind, content, meta, created_at)
      VALUES (1, 9, 'assistant', '{"role":"assistant","content":""}', '${JSON.stringify({ kind: "assistant", calls })}', 1);
    INSERT INTO journal (seq, run_ordinal, step, kind, content, meta, created_at)
      VALUES (98, 1, 9, 'inbox', '{"role":"user","content":""}', '${JSON.stringify({ kind: "inbox", lines })}', 1);
    INSERT INTO search_entries (type, ref, part, role, at, head, text)
      VALUES ('consciousness', 'run:5', 0, 'assistant', 1, '', 'recall {"op":"insert","content":"zebra"}'),
        ('consciousness', 'run:7', 0, 'assistant', 1, '', 'block_edit {"label":"notes","operations":["zebra"]}'),
        ('consciousness', 'run:8', 0, 'assistant', 1, '', 'block_create {"content":"zebra '),
        ('consciousness', 'run:8', 1, 'assistant', 1, '', 'zebra","label":"notes"}'),
        ('consciousness', 'run:9', 0, 'assistant', 1, '', 'recall {"op":"delete","id":"arch_1"}'),
        ('consciousness', 'run:98', 0, 'user', 1, '', '${lines.slice(1).join("\n")}'),
        ('consciousness', 'run:6', 0, 'assistant', 1, '', 'set_memories {"memories":[{"key":"zebra"}]}');
    UPDATE search_state SET passages = 8, embedded_up_to = 8;
  `;
  const { id, workspaceId } = await open("agent", fixtureOf("/agent-0013") + then);
  const agent = env.AGENT.getByName(id);
  unwrap(await agent.describe(workspaceId));
  const texts = "SELECT text FROM search_entries WHERE type = 'consciousness' ORDER BY id";
  expect(
    await inside("agent", id, ({ sql }) =>
      sql
        .exec(texts)
        .toArray()
        .map(({ text }) => text),
    ),
  ).toEqual([
    ...['recall {"op":"insert"}', 'block_edit {"label":"notes"}', "block_create", "block_create"],
    ...['recall {"op":"delete","id":"arch_1"}', '[Service "zoo"] "gnu"', 'set_memories {"memories":[{"key":"zebra"}]}'],
  ]);
  // A provider's embedder would be paid for again.
  const state = "SELECT embedded_up_to, (SELECT count(*) FROM search_vectors) AS packs FROM search_state";
  expect(await inside("agent", id, ({ sql }) => sql.exec(state).one())).toEqual({ embedded_up_to: 8, packs: 1 });
  const find = async (query: string) =>
    unwrap(await agent.search(workspaceId, SearchQuery.parse({ query, types: ["consciousness"], mode: "fts" }))).items;
  expect((await find("zebra")).map((hit) => hit.id)).toEqual(["run:6"]);
  expect((await find("block_edit")).map((hit) => hit.id)).toEqual(["run:7"]);
  scripted([step(...["notes", "old"].map((label) => toolCall("block_restore", { label }))), step(text("Back."))]);
  unwrap(await agent.trigger(workspaceId, { serviceName: "test", payload: "Bring it back" }));
  const [run] = await ended(workspaceId, id, 2);
  const [call, refused] = unwrap(await agent.run(workspaceId, run?.id ?? "")).steps?.[0]?.toolCalls ?? [];
  expect(call?.output).toEqual({ success: true, type: "working", pinned: false });
  expect(refused?.output).toMatchObject({ error: { code: "conflict" } });
});

test("what an inbox of then had only overheard is overheard still, and read by the next run", async () => {
  const service = JSON.stringify({ type: "service", serviceName: "s", payload: 1, root: { id: "r", kind: "service" } });
  const answer = JSON.stringify({
    ...{ type: "tool_result", toolCallId: "tc", tool: "lookUp", result: 7, failed: false },
    ...{ activeSpaceId: null, root: { id: "used", kind: "person" } },
  });
  const columns = "seq, event_id, type, data, root_id, wakes, attempts, status, retry_at, received_at";
  const waiting = `
    DELETE FROM timers;
    DELETE FROM plans;
    INSERT INTO roots (id, wakes, updated_at) VALUES ('used', 99, 1);
    INSERT INTO inbox (${columns}) VALUES (1, 'quiet', 'service', '${service}', 'r', 0, 0, 'pending', NULL, 1),
      (2, 'muted', 'service', '${service}', 'used', 1, 0, 'pending', NULL, 1),
      (3, 'retried', 'service', '${service}', 'used', 1, 1, 'pending', 5, 1),
      (4, 'answer', 'tool_result', '${answer}', 'used', 1, 0, 'pending', NULL, 1),
      (5, 'waking', 'service', '${service}', 'r', 1, 0, 'pending', NULL, 1),
      (6, 'dead', 'service', '${service}', 'r', 0, 5, 'dead', 5, 1);
  `;
  const { id, workspaceId } = await open("agent", fixtureOf("/agent-0009") + waiting);
  const agent = env.AGENT.getByName(id);
  unwrap(await agent.describe(workspaceId));
  const idsIn = (table: string) =>
    inside("agent", id, ({ sql }) =>
      sql
        .exec(`SELECT event_id FROM ${table} ORDER BY seq`)
        .toArray()
        .map(({ event_id }) => event_id),
    );
  expect(await idsIn("overheard")).toEqual(["quiet", "muted"]);
  expect(await idsIn("inbox")).toEqual(["retried", "answer", "waking", "dead"]);
  scripted(() => step(text("Still here.")));
  unwrap(await agent.trigger(workspaceId, { serviceName: "test", payload: "Are you there?" }));
  await vi.waitFor(async () => expect([await idsIn("overheard"), await idsIn("inbox")]).toEqual([[], ["dead"]]));
});
