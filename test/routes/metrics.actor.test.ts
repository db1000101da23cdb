import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { maxAttempts } from "../../src/agent/bounds.ts";
import { app } from "../../src/routes/app.ts";
import { refuse, unwrap } from "../../src/shared/errors.ts";
import { meter } from "../../src/shared/meter.ts";
import { Space } from "../../src/space/space.ts";
import { ended, openScene, passTime, scripted, undoLater } from "../agent/fixture.ts";
import { adminKey, call, expectOk, openHouse } from "../support/house.ts";
import { apiError, installModel, refusal, scriptedModel, step, text } from "../support/scripted-model.ts";
import { parseOpenMetrics, type Sample } from "./open-metrics.ts";

const restore = undoLater();
afterEach(() => {
  vi.useRealTimers();
});

const read = async () => {
  const answer = await call("/metrics", { bearer: adminKey });
  expect(answer.headers.get("content-type")).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
  return parseOpenMetrics(await answer.text());
};

/** The value of the sample whose labels hold these; 0 where there is none. */
const sampleOf = (samples: Sample[], name: string, labels: Record<string, string> = {}): number =>
  samples.find(
    (sample) =>
      sample.name === `colloquy_${name}` &&
      Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )?.value ?? 0;

test("[L11] the metrics are OpenMetrics text, and count what happens once", async () => {
  restore.push(installModel(scriptedModel(() => step(text("Done.")))));
  const before = await read();
  const house = await openHouse();
  const mona = await house.person("Mona");
  const robot = await house.agent({ name: "Robo" });
  const { id: spaceId } = await house.space("Lab", [mona, robot]);
  const stream = { bearer: mona.token, headers: { upgrade: "websocket" } };
  const { webSocket } = await call(`/v1/spaces/${spaceId}/stream`, stream);
  webSocket?.accept();
  for (const said of ["One", "Two", "Three"]) await house.say(spaceId, mona, said);
  await call("/v1/spaces/nothing", { bearer: mona.token });
  const posts = { route: "POST /v1/spaces/{spaceId}/messages", status: "201" };
  await vi.waitFor(async () => {
    const now = await read();
    const added = (name: string, labels?: Record<string, string>): number =>
      sampleOf(now, name, labels) - sampleOf(before, name, labels);
    expect(added("requests_total", posts)).toBe(3);
    expect(added("errors_total", { code: "not_found" })).toBe(1);
    expect(added("runs_total", { end: "completed" })).toBeGreaterThanOrEqual(1);
    expect(added("tokens_total")).toBeGreaterThan(0);
    expect(added("delivery_seconds_count")).toBeGreaterThanOrEqual(1);
    expect(added("sockets")).toBe(1);
  });
  webSocket?.close();
  await vi.waitFor(async () => expect(sampleOf(await read(), "sockets")).toBe(sampleOf(before, "sockets")));
  const whole = JSON.stringify(await read());
  for (const id of [house.workspaceId, spaceId, robot.id, mona.id]) expect(whole).not.toContain(id);
});

test("[L11] events that died and jobs that fail are among the figures", async () => {
  const before = await read();
  const added = async (name: string): Promise<number> => sampleOf(await read(), name) - sampleOf(before, name);
  const { house, analyst, space, husam } = await openScene();
  scripted(() => refusal(apiError(401)));
  await space.post(husam, "Lost");
  for (let run = 1; run <= maxAttempts; run += 1) {
    await ended(house.workspaceId, analyst, run);
    await passTime(analyst, 60_000);
  }
  await vi.waitFor(async () => expect(await added("dead_events_total")).toBe(1));
  const { setSuspended } = Space.prototype;
  restore.push(() => Object.assign(Space.prototype, { setSuspended }));
  Object.assign(Space.prototype, { setSuspended: async () => refuse("unavailable", "Cut off") });
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  unwrap(await workspace.suspend("Unpaid"));
  await vi.waitFor(async () => expect(await added("jobs_waiting")).toBe(1));
  Object.assign(Space.prototype, { setSuspended });
  vi.setSystemTime(Date.now() + 60_000);
  await runDurableObjectAlarm(workspace as unknown as DurableObjectStub);
  await vi.waitFor(async () => expect(await added("jobs_waiting")).toBe(0));
});

test("[L11] an isolate reports at most once a minute, and nothing twice", () => {
  meter.take(0, true);
  const now = Date.now() + 1e9;
  meter.count("runs", { end: "completed" });
  meter.take(now, true);
  meter.count("runs", { end: "completed" });
  expect(meter.take(now + 59_999)).toBeUndefined();
  meter.count("runs", { end: "completed" });
  expect(meter.take(now + 60_000)?.counts).toEqual([['runs_total{end="completed"}', 2]]);
  expect(meter.take(now + 120_000)).toBeUndefined();
});

test("[L11] an object's last word about its sockets counts for a day", async () => {
  const shard = env.WORKSPACE.getByName("meter-of-tests");
  await shard.report({
    counts: [],
    gauges: [
      ["sockets", "one", 3],
      ["sockets", "two", 4],
    ],
  });
  await shard.report({ counts: [['runs_total{end="failed"}', 2]], gauges: [["sockets", "one", 1]] });
  expect(await shard.reported()).toMatchObject({ value: { sockets: 5, 'runs_total{end="failed"}': 2 } });
  await shard.report({ counts: [['runs_total{end="failed"}', 1]], gauges: [["sockets", "two", 0]] });
  expect(await shard.reported()).toMatchObject({ value: { sockets: 1, 'runs_total{end="failed"}': 3 } });
  vi.setSystemTime(Date.now() + 25 * 3_600_000);
  expect(await shard.reported()).toMatchObject({ value: { 'runs_total{end="failed"}': 3 } });
  expect(await shard.reported()).not.toMatchObject({ value: { sockets: 1 } });
});

const Ready = z.object({
  ready: z.boolean(),
  checkedAt: z.string(),
  kinds: z.record(z.string(), z.object({ ready: z.boolean(), ms: z.number() })),
});

test("[L11] /readyz asks an object of each kind, once in five seconds, and stores nothing", async () => {
  vi.setSystemTime(Date.now() + 60_000);
  const first = await expectOk(Ready, call("/readyz"));
  expect(first).toMatchObject({
    ready: true,
    kinds: { workspace: { ready: true }, space: { ready: true }, agent: { ready: true } },
  });
  for (const namespace of [env.WORKSPACE, env.SPACE, env.AGENT]) {
    const stub: unknown = namespace.getByName("readyz");
    const tables = await runInDurableObject(stub as DurableObjectStub, (_, { storage }) =>
      storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '_cf%'").toArray(),
    );
    expect(tables).toEqual([]);
  }
  expect(await expectOk(Ready, call("/readyz"))).toEqual(first);
  vi.setSystemTime(Date.now() + 5000);
  expect((await expectOk(Ready, call("/readyz"))).checkedAt).not.toBe(first.checkedAt);
});

test("[L11] /readyz answers 503 and names the kind that does not answer", async () => {
  vi.setSystemTime(Date.now() + 120_000);
  const broken = { ...env, AGENT: { getByName: () => ({ describe: () => Promise.reject(new Error("overloaded")) }) } };
  const answer = await app.request("/readyz", {}, broken);
  expect(answer.status).toBe(503);
  expect(Ready.parse(await answer.json())).toMatchObject({
    ready: false,
    kinds: { space: { ready: true }, agent: { ready: false } },
  });
});

test.each([
  ["no end", "# TYPE a counter\na_total 1\n"],
  ["a counter without _total", "# TYPE a counter\na 1\n# EOF\n"],
  ["a series twice", '# TYPE a counter\na_total{b="c"} 1\na_total{b="c"} 2\n# EOF\n'],
  ["an open label", '# TYPE a counter\na_total{b="c} 1\n# EOF\n'],
  ["a foreign sample", "# TYPE a counter\nb_total 1\n# EOF\n"],
  ["falling buckets", '# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_count 1\n# EOF\n'],
])("the reader of these tests refuses %s", (_, broken) => {
  expect(() => parseOpenMetrics(broken)).toThrow();
});
