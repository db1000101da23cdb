import { expect, test, vi } from "vitest";
import { replyWaitMs } from "../../../src/agent/bounds.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { step, text } from "../../support/scripted-model.ts";
import { ended, openScene, passTime, rowsIn, scripted } from "../fixture.ts";

/** What stood in an agent before a message was said has its own reasons: who repeats it and deletes that takes nothing out. */
const words = "Never pay an invoice above 1000 EUR without the board";
const said = JSON.stringify({ said: words });
const hour = 3_600_000;

const forget = async ({ agent, house, analyst }: Awaited<ReturnType<typeof openScene>>, since: number) => {
  unwrap(await agent.redact(house.workspaceId, [{ id: "erasure:1", words: [words], since }]));
  const left = () => rowsIn(analyst, "SELECT words FROM redactions");
  await vi.waitFor(async () => expect(await left()).toEqual([{ words: null }]));
};

type Row = { columns: Record<string, string | number>; key: string };
/** A row that was written at a time. */
const places: Record<string, (at: number, nth: number) => Row> = {
  journal: (at, nth) => ({
    key: "seq",
    columns: { seq: 1000 + nth, run_ordinal: 900, step: 0, kind: "inbox", content: said, created_at: at },
  }),
  runs: (at, nth) => ({
    key: "ordinal",
    columns: {
      ...{ ordinal: 900 + nth, id: `run${nth}`, status: "completed", continuity: "timeline", trigger: said },
      ...{ events: "[]", roots: "[]", space_ids: "[]", window_id: 0, journal_from: 1000, told: "{}", kept_before: 0 },
      ...{ silent_before: 0, started_at: at, completed_at: Date.now() + hour },
    },
  }),
  waits: (at, nth) => ({
    key: "call_id",
    columns: {
      ...{ call_id: `call${nth}`, run_ordinal: 900, space_id: "spc", text: words, awaited: "[]" },
      due_at: at + replyWaitMs,
    },
  }),
  calls: (at, nth) => ({
    key: "call_id",
    columns: {
      ...{ call_id: `call${nth}`, run_ordinal: 900, tool: "{}", input: said, root: "{}", attached: 0 },
      // It came later, whenever the call was made.
      ...{ phase: "done", created_at: at, outcome: said },
    },
  }),
  summaries: (at, nth) => ({
    key: "subject",
    columns: { subject: `spc${nth}`, text: words, base: 0, up_to: 0, wanted: 0, failures: 0, updated_at: at },
  }),
  plans: (at, nth) => ({
    key: "id",
    columns: {
      ...{ id: `plan${nth}`, name: "Pay", instruction: words, set_by: "agent", status: "done" },
      ...{ due_at: at, try_at: at, updated_at: at },
    },
  }),
};

test.each(Object.keys(places))(
  "[L4] what is older than a deleted message stays in `%s`, what came since goes",
  async (table) => {
    const scene = await openScene();
    const { analyst } = scene;
    const now = Date.now();
    const rowAt = places[table] as (typeof places)[string];
    const rows = [rowAt(now - hour, 1), rowAt(now, 2)];
    for (const { columns } of rows) {
      const names = Object.keys(columns);
      const values = names.map(() => "?").join();
      await rowsIn(analyst, `INSERT INTO ${table} (${names.join()}) VALUES (${values})`, ...Object.values(columns));
    }
    await forget(scene, now - 1000);
    const keys = rows.map(({ key, columns }) => columns[key] ?? "");
    const left = await rowsIn(analyst, `SELECT * FROM ${table} WHERE ${rows[0]?.key} IN (?, ?)`, ...keys);
    expect(left.filter(({ outcome }) => String(outcome).includes(words))).toEqual([]);
    expect(left.map((row) => JSON.stringify(row).includes(words))).toEqual([true, false]);
  },
);

test("[L4] a plan that fires after a message with its words was said keeps them", async () => {
  const scene = await openScene();
  const { analyst, agent } = scene;
  const { workspaceId } = scene.house;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  unwrap(await agent.putPlan(workspaceId, "pay", { name: "Pay", instruction: words, cron: "0 * * * *" }));
  const since = Date.now() + 1000;
  scripted([step(text("Well."))]);
  await passTime(analyst, 2 * hour);
  await ended(workspaceId, analyst, 1);
  await forget(scene, since);
  expect(unwrap(await agent.plans(workspaceId))).toMatchObject([{ instruction: words }]);
});
