import { expect, test, vi } from "vitest";
import { replyWaitMs } from "../../../src/agent/bounds.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { step, text } from "../../support/scripted-model.ts";
import { ended, openScene, passTime, rowsIn, scripted } from "../fixture.ts";

/** What stood in an agent before a message was said has its own reasons: who repeats it and deletes that takes nothing out. */
const words = "Never pay an invoice above 1000 EUR without the board";
const said = JSON.stringify({ said: words });
const hour = 3_600_000;

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
      ...{ phase: "done", created_at: at },
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
    const { house, analyst, agent } = await openScene();
    const now = Date.now();
    const rowAt = places[table] as (typeof places)[string];
    const rows = [rowAt(now - hour, 1), rowAt(now, 2)];
    for (const { columns } of rows) {
      const names = Object.keys(columns);
      const values = names.map(() => "?").join();
      await rowsIn(analyst, `INSERT INTO ${table} (${names.join()}) VALUES (${values})`, ...Object.values(columns));
    }
    unwrap(await agent.redact(house.workspaceId, [{ id: "erasure:1", words: [words], since: now - 1000 }]));
    await vi.waitFor(async () =>
      expect(await rowsIn(analyst, "SELECT words FROM redactions")).toEqual([{ words: null }]),
    );
    const left = await rowsIn(
      analyst,
      `SELECT * FROM ${table} WHERE ${rows[0]?.key} IN (?, ?)`,
      ...rows.map(({ key, columns }) => columns[key] ?? ""),
    );
    expect(left.map((row) => JSON.stringify(row).includes(words))).toEqual([true, false]);
  },
);

test("[L4] an outcome that came since goes from a call that is older than the message", async () => {
  const { house, analyst, agent } = await openScene();
  const now = Date.now();
  await rowsIn(
    analyst,
    `INSERT INTO calls (call_id, run_ordinal, tool, input, root, attached, phase, outcome, created_at)
     VALUES ('call1', 900, '{}', '{}', '{}', 0, 'done', ?, ?)`,
    said,
    now - hour,
  );
  unwrap(await agent.redact(house.workspaceId, [{ id: "erasure:1", words: [words], since: now - 1000 }]));
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT words FROM redactions")).toEqual([{ words: null }]),
  );
  expect(await rowsIn(analyst, "SELECT outcome FROM calls")).toEqual([{ outcome: '{"said":"[deleted]"}' }]);
});

test("[L4] a plan that fires after a message with its words was said keeps them", async () => {
  const { house, analyst, agent } = await openScene();
  const { workspaceId } = house;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  unwrap(await agent.putPlan(workspaceId, "pay", { name: "Pay", instruction: words, cron: "0 * * * *" }));
  const since = Date.now() + 1000;
  scripted([step(text("Well."))]);
  await passTime(analyst, 2 * hour);
  await ended(workspaceId, analyst, 1);
  unwrap(await agent.redact(workspaceId, [{ id: "erasure:1", words: [words], since }]));
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT words FROM redactions")).toEqual([{ words: null }]),
  );
  expect(unwrap(await agent.plans(workspaceId))).toMatchObject([{ instruction: words }]);
});
