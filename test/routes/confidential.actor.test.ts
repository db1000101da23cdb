import { beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { type Call, call, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { question } from "../support/question.ts";
import { fill, guestRows, type Operation, operations, problemIn } from "./operations.ts";

/**
 * Every operation on a confidential space, and on what an agent has from it, by who is in it and who is not. In Board are
 * Mona, Ada (an admin) and two agents. Boss and Gone are admins: one never was in it, the other has left.
 */
const members = ["key", "keyAsMona", "ada", "mona"] as const;
const outsiders = ["keyAsStranger", "boss", "gone", "stranger", "otherKey"] as const;
type Who = (typeof members)[number] | (typeof outsiders)[number];
const everyone: Who[] = [...members, ...outsiders];

type Row = { status: number; query?: string; body?: () => unknown; who: (status: number) => Record<Who, number> };

/** For what was said: members, and secret keys whoever they act as. Who only runs spaces knows that there is one. */
const read = (status: number): Record<Who, number> => ({
  ...{ key: status, keyAsMona: status, keyAsStranger: status, ada: status, mona: status },
  ...{ boss: 403, gone: 403, stranger: 404, otherKey: 404 },
});
/** For what only a participant does. */
const act = (status: number): Record<Who, number> => ({ ...read(status), key: 422, keyAsStranger: 403, otherKey: 422 });
/** Its name, its members and its settings. */
const see = (status: number): Record<Who, number> => ({ ...read(status), boss: status, gone: status });
const run = (status: number): Record<Who, number> => ({ ...see(status), mona: 403 });
/** For what an agent has from there: those who may ask the agent and may read the space. */
const mind = (status: number): Record<Who, number> => ({ ...read(status), mona: 403, stranger: 403 });

const newId = (): string => ids.mint("key").slice(-20);
const text = () => ({ operations: [{ op: "append_text", text: "x" }] });

const spaceRows: Record<string, Row> = {
  "GET /v1/spaces/{spaceId}": { who: see, status: 200 },
  "PATCH /v1/spaces/{spaceId}": { who: run, status: 200, body: () => ({ name: `Board ${newId()}` }) },
  "DELETE /v1/spaces/{spaceId}": { who: run, status: 204 },
  "POST /v1/spaces/{spaceId}/members": {
    who: (status) => ({ ...run(status), otherKey: 422 }),
    status: 201,
    body: () => ({ entityId: scene.stranger.id }),
  },
  "DELETE /v1/spaces/{spaceId}/members/{entityId}": { who: run, status: 204 },
  "GET /v1/spaces/{spaceId}/messages": { who: read, status: 200 },
  "POST /v1/spaces/{spaceId}/messages": { who: act, status: 201, body: () => ({ text: "hello" }) },
  // Mona's own, which the others may delete and not edit.
  "PATCH /v1/spaces/{spaceId}/messages/{messageId}": {
    who: (status) => ({ ...act(status), ada: 403 }),
    status: 200,
    body: () => ({ text: `Hello ${newId()}` }),
  },
  "DELETE /v1/spaces/{spaceId}/messages/{messageId}": { who: read, status: 200 },
  "GET /v1/spaces/{spaceId}/messages/{messageId}/reads": { who: read, status: 200 },
  // Nothing is told of one that is not there: members and others get the same answer.
  "GET /v1/spaces/{spaceId}/messages/{messageId}/origin": {
    who: (status) => ({ ...read(status), boss: 404, gone: 404 }),
    status: 404,
  },
  "GET /v1/spaces/{spaceId}/messages/{messageId}/routing": { who: read, status: 404 },
  "POST /v1/spaces/{spaceId}/read": { who: act, status: 204, body: () => ({ messageId: scene.messageId }) },
  "POST /v1/spaces/{spaceId}/tool-calls/{toolCallId}/result": {
    who: act,
    status: 200,
    body: () => ({ result: "yes" }),
  },
  "GET /v1/spaces/{spaceId}/stream": { who: act, status: 101 },
  "GET /v1/spaces/{spaceId}/events": { who: act, status: 200 },
  "GET /v1/spaces/{spaceId}/blocks": { who: read, status: 200 },
  // The agent shares none with it.
  "GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}": { who: read, status: 404 },
  "GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/history": { who: read, status: 404 },
  "POST /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/operations": { who: act, status: 404, body: text },
  "GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/stream": { who: act, status: 404 },
};

const at = (path: string): string => `/v1/agents/{agentId}${path}`;
const plan = () => ({ name: "Report", instruction: "Report", runAfter: "2 hours" });
/** For the agent's own program, which is none of them, and secret keys. */
const guests = (status: number): Record<Who, number> => ({ ...mind(status), ada: 403 });
const mindRows: Record<string, Omit<Row, "who"> & { who?: Row["who"] }> = {
  [`GET ${at("")}`]: { status: 200 },
  [`GET ${at("/runs")}`]: { status: 200 },
  [`GET ${at("/runs/{runId}")}`]: { status: 200 },
  [`POST ${at("/runs/{runId}/cancel")}`]: { status: 409 },
  ...guestRows((row) => ({ ...row, status: 409, who: guests })),
  [`GET ${at("/context")}`]: { status: 200 },
  // Without a query.
  [`GET ${at("/knows")}`]: { status: 400 },
  [`GET ${at("/search")}`]: { status: 400 },
  [`GET ${at("/inbox")}`]: { status: 200 },
  [`POST ${at("/inbox/{eventId}/retry")}`]: { status: 409 },
  [`DELETE ${at("/inbox/{eventId}")}`]: { status: 409 },
  [`POST ${at("/dead-events/retry")}`]: { status: 200 },
  [`GET ${at("/memories")}`]: { status: 200 },
  [`PUT ${at("/memories/{key}")}`]: { status: 200, body: () => ({ value: "green" }) },
  [`DELETE ${at("/memories/{key}")}`]: { status: 204 },
  [`GET ${at("/goals")}`]: { status: 200 },
  [`PUT ${at("/goals/{goalId}")}`]: { status: 200, body: () => ({ description: "Finish" }) },
  [`DELETE ${at("/goals/{goalId}")}`]: { status: 204 },
  [`GET ${at("/plans")}`]: { status: 200 },
  [`PUT ${at("/plans/{planId}")}`]: { status: 200, body: plan },
  [`DELETE ${at("/plans/{planId}")}`]: { status: 204 },
  [`POST ${at("/blocks")}`]: { status: 201, body: () => ({ label: newId().toLowerCase(), type: "core" }) },
  [`GET ${at("/blocks")}`]: { status: 200 },
  [`GET ${at("/blocks/{label}")}`]: { status: 200 },
  [`PATCH ${at("/blocks/{label}")}`]: { status: 200, body: () => ({ pinned: true }) },
  [`DELETE ${at("/blocks/{label}")}`]: { status: 204 },
  [`POST ${at("/blocks/{label}/operations")}`]: { status: 200, body: text },
  [`GET ${at("/blocks/{label}/history")}`]: { status: 200 },
  [`POST ${at("/archival")}`]: { status: 201, body: () => ({ content: "A fact" }) },
  [`GET ${at("/archival")}`]: { status: 200 },
  [`DELETE ${at("/archival/{archivalId}")}`]: { status: 204 },
};

let house: House;
let callers: Record<Who, Pick<Call, "bearer" | "as">>;
let scene: {
  stranger: Participant;
  inside: { id: string }[];
  spaceId: string;
  agentId: string;
  messageId: string;
  runId: string;
  broke: { agentId: string; eventId: string };
};

const Runs = z.object({ items: z.array(z.object({ id: z.string(), status: z.string() })) });
const Inbox = z.object({ items: z.array(z.object({ eventId: z.string() })) });

/** The first thing of a list, once there is one. */
const firstOf = <Item>(list: () => Promise<{ items: Item[] }>): Promise<Item> =>
  vi.waitFor(
    async () => {
      const [first] = (await list()).items;
      if (!first) throw new Error("there is none yet");
      return first;
    },
    { timeout: 10_000 },
  );

beforeAll(async () => {
  const [own, other] = await Promise.all([openHouse("Here"), openHouse("Elsewhere")]);
  house = own;
  const [mona, ada, boss, gone, stranger] = await Promise.all([
    house.person("Mona"),
    house.person("Ada", "admin"),
    house.person("Boss", "admin"),
    house.person("Gone", "admin"),
    house.person("Stranger"),
  ]);
  const [analyst, broke] = await Promise.all([
    house.agent({ name: "Analyst" }),
    house.agent({ name: "Broke", limits: { maxTokensPerDay: 1000 } }),
  ]);
  const key = { bearer: house.secretKey };
  callers = {
    key,
    keyAsMona: { ...key, as: mona.id },
    keyAsStranger: { ...key, as: stranger.id },
    ada: { bearer: ada.token },
    boss: { bearer: boss.token },
    gone: { bearer: gone.token },
    mona: { bearer: mona.token },
    stranger: { bearer: stranger.token },
    otherKey: { bearer: other.secretKey },
  };
  const inside = [mona, ada, analyst, broke];
  const { id: spaceId } = await house.space("Board", [...inside, gone], { confidential: true });
  await call(`/v1/spaces/${spaceId}/members/${gone.id}`, { method: "DELETE", ...key });
  const { id: messageId } = await house.say(spaceId, mona, "@Analyst Hello");
  const mindOf = (agentId: string, list: string) => call(`/v1/agents/${agentId}/${list}space=${spaceId}`, key);
  const [{ id: runId }, { eventId }] = await Promise.all([
    firstOf(() => expectOk(Runs, mindOf(analyst.id, "runs?status=completed&"))),
    firstOf(() => expectOk(Inbox, mindOf(broke.id, "inbox?"))),
  ]);
  scene = {
    stranger,
    inside,
    spaceId,
    agentId: analyst.id,
    messageId,
    runId,
    broke: { agentId: broke.id, eventId },
  };
}, 60_000);

/** Creates what the operation deletes or needs: in the compartment if it is of an agent's mind. */
const targets = async ({ method, path }: Operation): Promise<Record<string, string>> => {
  const { spaceId, agentId, messageId, runId, broke, inside } = scene;
  const own = path.includes("{eventId}") ? broke : { agentId };
  const filled: Record<string, string> = { spaceId, messageId, runId, ...own };
  const key = { bearer: house.secretKey };
  const put = (what: string, body: unknown, by = "PUT") =>
    call(`/v1/agents/${agentId}/${what}?space=${spaceId}`, { method: by, ...key, body });
  if (method === "DELETE" && path.includes("/memories/")) await put("memories/a-name", { value: "x" });
  if (method === "DELETE" && path.includes("/goals/")) await put("goals/a-name", { description: "x" });
  if (method === "DELETE" && path.includes("/plans/")) await put("plans/a-name", plan());
  if (path.startsWith(at("/blocks/"))) await put("blocks", { label: "a-name", type: "core" }, "POST");
  if (path.includes("{archivalId}")) {
    const archived = put("archival", { content: "A fact" }, "POST");
    filled.archivalId = (await expectOk(z.object({ id: z.string() }), archived)).id;
  }
  if (path.includes("{toolCallId}")) {
    const mindId = ids.compartment(agentId, spaceId);
    filled.toolCallId = await question(house.workspaceId, spaceId, agentId, "answer", mindId);
  }
  const isLasting = path !== "/v1/spaces/{spaceId}" && !path.includes("/members");
  if (isLasting) return filled;
  // One of its own, which the next call does not miss.
  const friend = await house.person(`Friend ${newId()}`);
  const { id } = await house.space(`Board ${newId()}`, [...inside, friend], { confidential: true });
  return { ...filled, spaceId: id, entityId: friend.id };
};

const ask = async (operation: Operation, { body }: Omit<Row, "who">, who: Who, query = ""): Promise<number> => {
  const headers = operation.path.endsWith("/stream") ? { upgrade: "websocket" } : {};
  const path = fill(operation.path, await targets(operation)) + query;
  const sent = body === undefined ? {} : { body: body() };
  const answer = await call(path, { method: operation.method, ...callers[who], headers, ...sent });
  answer.webSocket?.accept();
  answer.webSocket?.close();
  if (answer.status >= 400) await problemIn(answer);
  else await answer.body?.cancel();
  return answer.status;
};

const got = async (operation: Operation, row: Omit<Row, "who">, query?: string): Promise<Record<string, number>> => {
  const statuses: Record<string, number> = {};
  for (const who of everyone) statuses[who] = await ask(operation, row, who, query);
  return statuses;
};

const named = (prefix: string): Operation[] => operations.filter(({ path }) => path.startsWith(prefix));
const ofSpaces = named("/v1/spaces/{spaceId}");
const ofMinds = operations.filter(({ parameters }) => parameters.some(({ name }) => name === "space"));

describe("[C19] [S1] [S5] a confidential space by who is in it and who is not", () => {
  test("every operation has a row, and every row an operation", () => {
    expect(Object.keys(spaceRows).toSorted()).toEqual(ofSpaces.map(({ name }) => name).toSorted());
  });

  test.each(ofSpaces)("$name", async (operation) => {
    const row = spaceRows[operation.name];
    if (!row) throw new Error(`${operation.name} has no row: say who gets what`);
    expect(await got(operation, row)).toEqual(row.who(row.status));
  });
});

describe("[C19] [S1] [S5] what an agent has from it by who is in it and who is not", () => {
  test("every operation that takes ?space= has a row", () => {
    expect(Object.keys(mindRows).toSorted()).toEqual(ofMinds.map(({ name }) => name).toSorted());
  });

  test.each(ofMinds)("$name", async (operation) => {
    const row = mindRows[operation.name];
    if (!row) throw new Error(`${operation.name} has no row: say what it answers who may ask`);
    expect(await got(operation, row, `?space=${scene.spaceId}&${row.query ?? ""}`)).toEqual(
      (row.who ?? mind)(row.status),
    );
  });
});

test("[C19] an agent's compartments are listed, and since when only to who reads their space", async () => {
  const agent = await house.agent({ name: "Clerk" });
  const [mona, ada] = scene.inside;
  const spaceFor = async (name: string, confidential: boolean): Promise<string> =>
    (
      await house.space(
        name,
        [mona, ada, agent].flatMap((one) => one ?? []),
        { confidential },
      )
    ).id;
  const [vault, old] = [await spaceFor("Vault", true), await spaceFor("Old", true), await spaceFor("Open", false)];
  await house.say(vault, { id: mona?.id ?? "", name: "Mona", token: callers.mona.bearer ?? "" }, "Hello");
  await call(`/v1/spaces/${old}/members/${agent.id}`, { method: "DELETE", bearer: house.secretKey });
  const listed = (who: Who, query = "") => call(`/v1/agents/${agent.id}/compartments${query}`, callers[who]);
  const Compartments = z.object({ items: z.array(z.unknown()), nextCursor: z.string().nullable() });
  const of = (who: Who, query?: string) => expectOk(Compartments, listed(who, query));
  const since = expect.stringMatching(/^\d{4}-/);
  const active = { spaceId: vault, name: "Vault", state: "active" };
  const both = [{ ...active, since }, expect.objectContaining({ spaceId: old, name: "Old", state: "resting" })];
  await vi.waitFor(async () => expect(await of("key")).toEqual({ items: both, nextCursor: null }), { timeout: 10_000 });
  const first = await of("key", "?limit=1");
  expect(first.items).toEqual(both.slice(0, 1));
  expect(await of("key", `?limit=1&cursor=${first.nextCursor}`)).toEqual({ items: both.slice(1), nextCursor: null });
  expect((await of("ada")).items).toEqual([{ ...active, since }]);
  expect((await of("boss")).items).toEqual([active]);
  expect((await listed("mona")).status).toBe(403);
});
