import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { journalLookMs, maxPastRuns } from "../../src/agent/bounds.ts";
import type { Message } from "../../src/protocol/message.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { openBoth } from "./compartment.ts";
import {
  type AgentSettings,
  agentStub,
  ended,
  exported,
  openScene,
  passTime,
  rowsIn,
  scripted,
  told,
} from "./fixture.ts";

/** The journal of runs that are older than their spaces keep messages. */
const old = 3;

/** The columns of a run, as those of the `n`th after it. */
const copied = async (agent: { id: string }): Promise<string> => {
  const names = (await rowsIn(agent, "SELECT name FROM pragma_table_info('runs')")).map(({ name }) => String(name));
  const made: Record<string, string> = { ordinal: "ordinal + n", id: "id || n", kept_before: "ordinal + n - 1" };
  return names.map((name) => made[name] ?? name).join();
};

/** An agent whose first runs were three days ago. Each thought of a tree. As many came since as its inputs may show. */
const open = async (settings: Partial<AgentSettings>, first = step(text("I thought of quince1."))) => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3 * 24 * 60 * 60_000 });
  onTestFinished(() => void vi.useRealTimers());
  const scene = await openScene(settings);
  const { space, husam, house, analyst } = scene;
  const messages: Message[] = [];
  scripted((_, index) => (index === 0 ? first : step(text(`I thought of quince${index + 1}.`))));
  for (let count = 1; count <= old + 1; count += 1) {
    if (count > old) vi.useRealTimers();
    messages.push(await space.post(husam, `message ${count}`));
    await ended(house.workspaceId, analyst, count);
  }
  await rowsIn(
    analyst,
    `WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < ${maxPastRuns - 1})
     INSERT INTO runs SELECT ${await copied(analyst)} FROM runs, more WHERE ordinal = ${old + 1}`,
  );
  return {
    ...{ ...scene, messages },
    /** Restarts the agent, so that its memory is read anew. */
    restart: () => runInDurableObject(agentStub(analyst), (_, state) => state.abort("a crash")).catch(() => undefined),
    keep: async (retentionDays: number) => unwrap(await space.stub().update(house.key, { retentionDays })),
    firstKept: async () => (await rowsIn(analyst, "SELECT min(run_ordinal) AS first FROM journal"))[0]?.first,
    /** It has looked, and found nothing more. */
    looked: () =>
      vi.waitFor(async () => {
        const [job] = await rowsIn(analyst, "SELECT due_at FROM jobs WHERE kind = 'cut-journal'");
        expect(Number(job?.due_at)).toBeGreaterThan(Date.now() + 60_000);
      }),
  };
};

test.each(["consciousness", "timeline"] as const)(
  "[L18] the journal of old runs in no input is cut, and found no more (%s)",
  async (continuity) => {
    const { house, analyst, ask, keep, firstKept, looked, restart } = await open({ continuity });
    const { workspaceId } = house;
    const agent = () => env.AGENT.getByName(analyst.id);
    const find = async () =>
      unwrap(await agent().search(workspaceId, SearchQuery.parse({ query: "quince1", mode: "fts" }))).items.length;
    expect(await find()).toBe(1);
    await rowsIn(analyst, `UPDATE windows SET first_run = ${old + 1}`);
    await restart();
    await keep(30);
    await looked();
    expect(await firstKept()).toBe(1);
    await keep(2);
    vi.useFakeTimers({ toFake: ["Date"] });
    await passTime(analyst, journalLookMs);
    await vi.waitFor(async () => expect(await firstKept()).toBe(old + 1), 10_000);
    expect(await find()).toBe(0);
    const [first] = unwrap(await agent().runs(workspaceId, { limit: 100 })).items.reverse();
    expect(unwrap(await agent().run(workspaceId, first?.id ?? "")).steps).toEqual([]);
    const all = await exported(workspaceId, analyst);
    expect([all.includes("quince1."), all.includes(`quince${old + 1}.`)]).toEqual([false, true]);
    scripted([step(call("get_my_runs", { limit: 50 })), step(text("Well."))]);
    const runs = await ask("And now?", old + maxPastRuns + 1);
    expect(runs.at(-1)?.status).toBe("completed");
  },
);

test("[L4] an old block is offered with its message once the journal is cut", async () => {
  const keeping = step(call("block_create", { label: "trees", content: "quince" }));
  const { house, analyst, messages, keep, firstKept, restart } = await open({}, keeping);
  await rowsIn(analyst, `UPDATE windows SET first_run = ${old + 1}`);
  await restart();
  await keep(2);
  await vi.waitFor(async () => expect(await firstKept()).toBe(old + 1), 10_000);
  const related = async ({ id }: Message) =>
    unwrap(await env.AGENT.getByName(analyst.id).related(house.workspaceId, id));
  const [first, ...others] = await Promise.all(messages.map(related));
  expect([first, ...others]).toEqual([[{ kind: "block", label: "trees" }], [], [], []]);
});

test("[L18] what a window shows is not cut, however old it is", async () => {
  const { keep, firstKept, looked } = await open({});
  await keep(1);
  await looked();
  expect(await firstKept()).toBe(1);
});

test("[L18] a space that was deleted holds up no cut of what a run did in others", async () => {
  const { house, husam, analyst, space, keep, firstKept, restart } = await open({});
  const other = await house.space("Beta", [husam, analyst]);
  await told(other.id);
  await rowsIn(analyst, `UPDATE windows SET first_run = ${old + 1}`);
  await rowsIn(analyst, `UPDATE runs SET space_ids = json_array('${space.id}', '${other.id}') WHERE ordinal <= ${old}`);
  unwrap(await other.stub().remove(house.key));
  const deleted = () => rowsIn(analyst, "SELECT id FROM spaces WHERE snapshot ->> '$.deleted'");
  await vi.waitFor(async () => expect(await deleted()).toHaveLength(1));
  await restart();
  await keep(2);
  await vi.waitFor(async () => expect(await firstKept()).toBe(old + 1));
});

/** A compartment that was fed a run three days ago, whose space keeps messages for two. */
const openFed = async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3 * 24 * 60 * 60_000 });
  onTestFinished(() => void vi.useRealTimers());
  const scene = await openBoth({ continuity: "timeline" });
  const { house, space, ask, secret } = scene;
  scripted(() => step(text("I thought of quince.")));
  await ask("Hello");
  unwrap(await space.stub().update(house.key, { retentionDays: 2 }));
  await told(space.id);
  await secret.ask("Hello", 1);
  const { mind } = secret;
  return {
    ...scene,
    /** Today it has done so many runs as this one since that no input shows the first. It begins anew. */
    comeBack: async (ordinal: number): Promise<void> => {
      vi.useRealTimers();
      const fill = `WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < ${maxPastRuns})`;
      const runs = `SELECT ${await copied(mind)} FROM runs, more WHERE ordinal = ${ordinal}`;
      await rowsIn(mind, `${fill} INSERT INTO runs ${runs}`);
      await runInDurableObject(agentStub(mind), (_, state) => state.abort("a crash")).catch(() => undefined);
    },
    firstKept: async () => (await rowsIn(mind, "SELECT min(run_ordinal) AS first FROM journal"))[0]?.first,
  };
};

type Fed = Awaited<ReturnType<typeof openFed>>;
test.each<[string, (scene: Fed) => Promise<unknown>]>([
  ["that keeps less than its own", async () => undefined],
  ["that the agent has left", ({ space, house, analyst }) => space.stub().removeMember(house.key, analyst.id)],
  ["that was deleted", ({ space, house }) => space.stub().remove(house.key)],
])("[L18] a compartment cuts what it was fed of a space %s", async (_, end) => {
  const scene = await openFed();
  const { space, secret, comeBack, firstKept } = scene;
  await end(scene);
  await told(space.id);
  await secret.ask("And now?", 2);
  await comeBack(3);
  await secret.tell("And then?");
  await vi.waitFor(async () => expect(await firstKept()).toBe(2), 5000);
});

test("[L18] a compartment that hears nothing more cuts what it was fed", async () => {
  const { secret, comeBack, firstKept } = await openFed();
  await comeBack(2);
  await vi.waitFor(async () => {
    await runDurableObjectAlarm(agentStub(secret.mind));
    expect(await firstKept()).toBe(2);
  }, 5000);
});
