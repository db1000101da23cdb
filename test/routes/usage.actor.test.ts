import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { histories } from "../../migrations/histories.ts";
import { usageReportMs } from "../../src/env/report-usage.ts";
import { UsagePage, type UsageReport, usageDays } from "../../src/protocol/usage.ts";
import { Token } from "../../src/protocol/workspace.ts";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { createUsage } from "../../src/workspace/usage.ts";
import { ended, ids, openHouse, scripted } from "../agent/fixture.ts";
import { createGate } from "../support/gate.ts";
import { adminKey, call, expectOk, openHouse as openRoutes } from "../support/house.ts";
import { question } from "../support/question.ts";
import { step, text, waitAt } from "../support/scripted-model.ts";
import { withStorage } from "../workspace/fixture.ts";
import { problemIn } from "./operations.ts";

/** What a workspace used, as its admins and the operator see it. */
type House = Awaited<ReturnType<typeof openHouse>>;
type Thing = { id: string };

const now = Date.parse("2031-03-03T12:00:00Z");
const today = "2031-03-03";

const atNoon = (): void => {
  vi.useFakeTimers({ toFake: ["Date"], now });
  onTestFinished(() => void vi.useRealTimers());
};

const used = async ({ workspaceId }: Pick<House, "workspaceId">, query = "") =>
  expectOk(UsagePage, call(`/v1/operator/workspaces/${workspaceId}/usage?${query}`, { bearer: adminKey }));

/** Has each object tell what it used. */
const told = async (...objects: Thing[]): Promise<void> => {
  vi.setSystemTime(Date.now() + usageReportMs + 1);
  for (const { id } of objects) {
    const stub: unknown = (id.startsWith("spc_") ? env.SPACE : env.AGENT).getByName(id);
    await runInDurableObject(stub as DurableObjectStub, (object) => (object as { alarm(): Promise<void> }).alarm());
  }
};

/** A person and an agent, who answered once. */
const openScene = async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const analyst = await house.agent({ name: "Analyst" });
  const alpha = await house.space("Alpha", [husam, analyst]);
  scripted(() => step(text("Read.")));
  await alpha.post(husam, "One");
  await ended(house.workspaceId, analyst, 1);
  return { house, husam, analyst, alpha };
};

test("[L15] tokens, runs and messages are told by agent, person, space and day, as in ledgers", async () => {
  atNoon();
  const house = await openHouse();
  const husam = await house.person("Husam");
  const mona = await house.person("Mona");
  const analyst = await house.agent({ name: "Analyst" });
  const alpha = await house.space("Alpha", [husam, mona, analyst]);
  const beta = await house.space("Beta", [mona, analyst]);
  scripted(() => step(text("Read.")));
  await alpha.post(husam, "One");
  await ended(house.workspaceId, analyst, 1);
  await alpha.post(mona, "Two");
  await ended(house.workspaceId, analyst, 2);
  await beta.post(mona, "Three");
  await ended(house.workspaceId, analyst, 3);
  await told(analyst, alpha, beta);
  await vi.waitFor(async () => expect((await used(house)).total).toEqual({ tokens: 330, runs: 3, messages: 3 }));
  const { activity } = unwrap(await env.AGENT.getByName(analyst.id).describe(house.workspaceId));
  expect(activity?.tokensToday).toBe(330);
  expect((await used(house, "by=agent")).items).toEqual([{ id: analyst.id, tokens: 330, runs: 3, messages: 0 }]);
  expect((await used(house, "by=person")).items).toEqual([
    { id: mona.id, tokens: 220, runs: 2, messages: 2 },
    { id: husam.id, tokens: 110, runs: 1, messages: 1 },
  ]);
  expect((await used(house, "by=space")).items).toEqual([
    { id: alpha.id, tokens: 220, runs: 2, messages: 2 },
    { id: beta.id, tokens: 110, runs: 1, messages: 1 },
  ]);
  expect(await used(house, "by=day")).toMatchObject({
    items: [{ day: today, tokens: 330, runs: 3, messages: 3 }],
    from: "2031-02-02",
    to: today,
  });
});

test("[L15] what is told again, or as an object comes back from a crash, counts once", async () => {
  atNoon();
  const { house, husam, analyst, alpha } = await openScene();
  await told(analyst, alpha);
  await vi.waitFor(async () => expect((await used(house)).total).toEqual({ tokens: 110, runs: 1, messages: 1 }));
  await abortAllDurableObjects();
  await alpha.post(husam, "Two");
  await ended(house.workspaceId, analyst, 2);
  await told(analyst, alpha);
  await vi.waitFor(async () => expect((await used(house)).total).toEqual({ tokens: 220, runs: 2, messages: 2 }));
});

test("[L15] what an agent and a space used is there after they were deleted", async () => {
  atNoon();
  const { house, analyst, alpha } = await openScene();
  unwrap(await env.AGENT.getByName(analyst.id).remove(house.workspaceId));
  unwrap(await env.SPACE.getByName(alpha.id).remove({ kind: "key", workspaceId: house.workspaceId, keyId: "key" }));
  expect((await used(house)).total).toEqual({ tokens: 110, runs: 1, messages: 1 });
});

test("[L15] what a router is billed is told, though nothing is said after it has decided", async () => {
  atNoon();
  const house = await openHouse();
  const people = [await house.person("Husam"), await house.person("Mona")] as const;
  const alpha = await house.space("Alpha", [...people, await house.agent({ name: "Analyst" })]);
  const router = { model: { provider: "rehearsal" as const, deltasPerSecond: 0 }, maxTokensPerDay: 200_000 };
  unwrap(await env.SPACE.getByName(alpha.id).update(house.key, { router, wakePolicy: "addressed" }));
  const gate = createGate();
  scripted([step(waitAt(gate), text('{"wake": []}'))]);
  const { id } = await alpha.post(people[0], "One?");
  await gate.reached;
  await told(alpha);
  gate.open();
  await vi.waitFor(async () =>
    expect(unwrap(await env.SPACE.getByName(alpha.id).routing(house.key, id)).outcome).toBe("nobody"),
  );
  await told(alpha);
  await vi.waitFor(async () => expect((await used(house)).total).toEqual({ tokens: 110, runs: 0, messages: 1 }));
});

test("[L15] a tool call that was deleted before it was told counts as no message", async () => {
  atNoon();
  const { house, analyst, alpha } = await openScene();
  await question(house.workspaceId, alpha.id, analyst.id);
  const [call] = (await alpha.messages()).filter(({ kind }) => kind === "tool_call");
  unwrap(await env.SPACE.getByName(alpha.id).removeMember(house.key, analyst.id));
  unwrap(await env.SPACE.getByName(alpha.id).deleteMessage(house.key, call?.id ?? ""));
  await told(alpha);
  await vi.waitFor(async () => expect((await used(house)).total).toMatchObject({ messages: 1 }));
});

test("[L15] [L16] an erased space gives its storage back, and what was said there is counted", async () => {
  atNoon();
  const { house, husam, alpha } = await openScene();
  await told(alpha);
  await alpha.post(husam, "Two");
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  const erased = () => env.SPACE.getByName(alpha.id).erase(house.workspaceId, null);
  await vi.waitFor(async () => expect(unwrap(await erased()).isDone).toBe(true));
  expect((await used(house)).total).toMatchObject({ messages: 2 });
  const stored = "select tokens from usage where day = '' and reporter = ?";
  const rows = await runInDurableObject(workspace as unknown as DurableObjectStub, (_, { storage }) =>
    storage.sql.exec(stored, alpha.id).toArray(),
  );
  expect(rows).toEqual([{ tokens: 0 }]);
});

test("[L15] a confidential run counts once, for its agent, its person and its space", async () => {
  atNoon();
  const house = await openHouse();
  const husam = await house.person("Husam");
  const analyst = await house.agent({ name: "Analyst" });
  const alpha = await house.space("Alpha", [husam, analyst], true);
  scripted(() => step(text("Read.")));
  await alpha.post(husam, "One");
  const mind = await compartmentOf(analyst, alpha);
  await vi.waitFor(async () => {
    await told(mind);
    await told(mind, analyst, alpha);
    expect((await used(house, "by=agent")).items).toEqual([{ id: analyst.id, tokens: 110, runs: 1, messages: 0 }]);
  });
  expect((await used(house, "by=person")).items).toEqual([{ id: husam.id, tokens: 110, runs: 1, messages: 1 }]);
  expect((await used(house, "by=space")).items).toEqual([{ id: alpha.id, tokens: 110, runs: 1, messages: 1 }]);
});

test("[C19] [L15] an admin is told tokens alone of a confidential space that they are not in", async () => {
  atNoon();
  const house = await openRoutes();
  const [inside, outside] = [await house.person("Inside", "admin"), await house.person("Outside", "admin")];
  const analyst = await house.agent({ name: "Analyst" });
  const board = await house.space("Board", [inside, analyst], { confidential: true });
  scripted(() => step(text("Read.")));
  await house.say(board.id, inside, "One");
  const mind = await compartmentOf(analyst, board);
  await vi.waitFor(async () => {
    await told(mind);
    await told(mind, analyst, board);
    expect((await used(house)).total).toEqual({ tokens: 110, runs: 1, messages: 1 });
  });
  const bearers = [await house.token(inside.id, 86_400), await house.token(outside.id, 86_400)];
  const body = { entityId: inside.id, expiresInSeconds: 86_400 };
  const minted = call("/v1/tokens", { bearer: bearers[1] ?? "", body });
  bearers.push((await expectOk(Token, minted)).token);
  const figures = async (bearer: string) => {
    const asked = ["agent", "person", "space", "day"].map((by) =>
      expectOk(UsagePage, call(`/v1/usage?by=${by}&from=${today}`, { bearer })),
    );
    const all = (await Promise.all(asked)).flatMap(({ items, total }) => [...items, total]);
    return new Set(all.map(({ tokens, runs, messages }) => `${tokens} ${runs} ${messages}`));
  };
  expect(await Promise.all(bearers.map(figures))).toEqual([
    new Set(["110 1 0", "110 1 1"]),
    new Set(["110 0 0"]),
    new Set(["110 0 0"]),
  ]);
});

const compartmentOf = async (agent: Thing, space: Thing): Promise<Thing> => ({
  id: compartmentId(ids, agent.id, space.id),
});

test("[L15] [S4] days that are none, or in the wrong order, and a bad cursor are refused", async () => {
  const house = await openRoutes();
  const ask = (query: string) => call(`/v1/usage?${query}`, { bearer: house.secretKey });
  for (const bad of ["by=week", "from=yesterday", "to=2026-02-30", "from=2026-02-02&to=2026-02-01", "limit=0"]) {
    expect(await problemIn(await ask(bad))).toMatchObject({ code: "invalid_request" });
  }
  expect(await problemIn(await ask("by=agent&cursor=x"))).toMatchObject({ code: "invalid_cursor" });
  expect(await expectOk(UsagePage, ask("from=2026-02-02&to=2026-02-02"))).toMatchObject({
    items: [],
    total: { tokens: 0, runs: 0, messages: 0 },
  });
});

test("[L15] pages hold each entry once, and what is too old or too much leaves by the day", async () => {
  await withStorage(async (storage) => {
    const db = openDatabase(storage);
    await createSchema(db, histories.workspace);
    let time = now;
    const usage = createUsage(db, { now: () => time }, () => 0, 1500);
    const note = (day: string, count: number): void => {
      const people = Array.from({ length: count }, (_, index) => `ent_${String(index).padStart(4, "0")}`);
      const rows = people.map((id): UsageReport["tokens"][number] => [day, "person", id, 1]);
      usage.note({ reporter: "ent_a", tokens: [[day, "all", "ent_a", count], ...rows] });
      usage.note({ reporter: "ent_a", tokens: [], counted: { after: upTo, upTo: ++upTo, rows: [] } });
    };
    let upTo = 0;
    note("2031-03-02", 1000);
    note(today, 1000);
    const seen: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = usage.page({ by: "person", from: today, to: today, limit: 300, cursor });
      seen.push(...page.items.map(({ id = "" }) => id));
      cursor = page.nextCursor;
    }
    expect(new Set(seen).size).toBe(1000);
    expect(seen).toHaveLength(1000);
    const yesterday = { from: "2031-03-02", to: "2031-03-02", limit: 1 };
    expect(usage.page({ by: "person", ...yesterday }).items).toEqual([]);
    expect(usage.page({ by: "day", ...yesterday }).total.tokens).toBe(1000);
    time += (usageDays + 2) * 24 * 60 * 60_000;
    note("2031-06-13", 1000);
    expect(usage.page({ by: "day", ...yesterday }).total.tokens).toBe(0);
  });
});
