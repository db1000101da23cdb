import { runInDurableObject } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { agentStub, ended, ids, openScene, scripted, statementsOf } from "./fixture.ts";

const note = {
  name: "note",
  description: "Notes it",
  executionType: "internal",
  inputSchema: { type: "object" },
} as const;
const filler = "as everybody here knows well enough ".repeat(220);

const longPast = 2000;

const stage = async (continuity: "consciousness" | "timeline") => {
  const context = { maxTokens: 6000, reservedResponseTokens: 500, memoryTokens: 500, minRecentCycles: 1 };
  const scene = await openScene({ continuity, context, tools: [note] as never });
  const { house, husam, analyst, space, agent } = scene;
  let runs = 0;
  /** The agent does that, and the run's calls and its message are answered. */
  const turn = async (words: string, ...calls: ReturnType<typeof call>[]) => {
    scripted([
      ...(calls.length === 0 ? [] : [step(call("enter_space", { spaceId: space.id }), ...calls)]),
      step(text("Done.")),
    ]);
    const heard = await space.post(husam, words);
    runs += 1;
    const run = (await ended(house.workspaceId, analyst, runs)).at(-1);
    const made = run?.steps.flatMap(({ toolCalls }) => toolCalls) ?? [];
    return { heard, run, made: made.filter(({ name }) => name !== "enter_space") };
  };
  const knows = async (asked: Parameters<typeof agent.knows>[1]) => unwrap(await agent.knows(house.workspaceId, asked));
  return { ...scene, turn, knows };
};

describe.each(["consciousness", "timeline"] as const)("a %s", (continuity) => {
  test("[K17] tells where a message, its words, a call and an event stand, now and later", async () => {
    const { turn, knows, agent, house, analyst } = await stage(continuity);
    const { heard, run, made } = await turn(
      "Is the walrus fed?",
      call("send_message", { text: "The walrus ate." }),
      call("note", { about: "walrus diary" }),
    );
    const [said, noted] = made;
    const { messageId } = z.object({ messageId: z.string() }).parse(said?.output);
    const callId = noted?.id ?? "";
    await turn("And now?");
    const places = async () => ({
      heard: (await knows({ messageId: heard.id })).places,
      said: (await knows({ messageId })).places,
      call: (await knows({ callId })).places,
      event: (await knows({ eventId: run?.trigger.eventId ?? "" })).places,
    });
    const verbatim = { how: "verbatim", section: continuity === "timeline" ? "history" : "earlier_cycles" };
    for (const [what, all] of Object.entries(await places())) {
      if (continuity === "consciousness") expect(all, what).toContainEqual(verbatim);
      expect(all, what).toContainEqual(expect.objectContaining({ how: "tool", tool: "search" }));
    }
    expect((await knows({ callId })).runId).toBe(run?.id);
    for (let more = 0; more < 4; more += 1) await turn(`${more} ${filler}`);
    for (const [what, all] of Object.entries(await places())) {
      expect(all, what).not.toContainEqual(verbatim);
      expect(all, what).toContainEqual(expect.objectContaining({ how: "tool" }));
    }
    expect(await knows({ messageId: ids.mintOwned("msg", heard.spaceId) })).toMatchObject({ known: false, places: [] });
    const { eventId } = unwrap(
      await agent.trigger(house.workspaceId, { serviceName: "zoo", payload: { ill: "otter" } }),
    );
    scripted([step(text("Seen."))]);
    await ended(house.workspaceId, analyst, 7);
    expect((await knows({ eventId })).known).toBe(true);
  });

  test("[K17] each call that it names returns the message, however many came after it", async () => {
    const { knows, agent, analyst, house, space, husam } = await stage(continuity);
    scripted(() => step(text("Read.")));
    const posted: string[] = [];
    for (let n = 0; n < 60; n += 1) posted.push((await space.post(husam, `The walrus sleeps at the pier ${n % 7}`)).id);
    const activity = async () => unwrap(await agent.describe(house.workspaceId)).activity;
    const quiet = { state: "idle", waiting: { events: 0 } };
    await vi.waitFor(async () => expect(await activity()).toMatchObject(quiet), { timeout: 10_000 });
    for (const [n, messageId] of posted.entries()) {
      if (n % 10 > 0) continue;
      const calls = (await knows({ messageId })).places.flatMap((each) => (each.how === "tool" ? [each] : []));
      expect(calls.map(({ tool }) => tool)).toContain("read_messages");
      for (const { tool, input } of calls) {
        const { offset } = z.object({ offset: z.int().default(0) }).parse(input);
        const returned = {
          search: () => agent.search(house.workspaceId, SearchQuery.parse(input)),
          read_messages: () => space.stub().window(house.workspaceId, analyst.id, { limit: 50, offset }),
        }[tool];
        if (returned) expect(JSON.stringify(await returned()), `${n}: ${tool}`).toContain(messageId);
      }
    }
  });

  test("[K17] a call stands where it is told, not where a newer one just like it is", async () => {
    const { turn, knows } = await stage(continuity);
    const { made } = await turn("Note it.", call("note", { about: "walrus" }));
    for (let more = 0; more < 4; more += 1) await turn(`${more} ${filler}`);
    await turn("Again.", call("note", { about: "walrus" }));
    await turn("And now?");
    const { places } = await knows({ callId: made[0]?.id ?? "" });
    expect(places).not.toContainEqual(expect.objectContaining({ how: "verbatim" }));
    expect(places).toContainEqual(expect.objectContaining({ tool: "get_my_runs" }));
  });

  test("[K17] [B4] each row of the past is read once to find what is asked", async () => {
    const { turn, knows, analyst } = await stage(continuity);
    const { heard, made } = await turn("Is the walrus fed?", call("note", { about: "walrus diary" }));
    await runInDurableObject(agentStub(analyst), (_, { storage }) => {
      storage.sql.exec(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${longPast})
         INSERT INTO journal SELECT -i, 0, 0, kind, content, meta, 0 FROM n,
           (SELECT kind, content, meta FROM journal WHERE kind = 'result' LIMIT 1)`,
      );
    });
    const callId = made[0]?.id ?? "";
    await knows({ callId });
    const statements = await statementsOf(agentStub(analyst));
    expect((await knows({ callId })).runId).not.toBeUndefined();
    expect((await knows({ messageId: heard.id })).runId).not.toBeUndefined();
    expect(statements.reduce((sum, { cursor }) => sum + cursor.rowsRead, 0)).toBeLessThan(longPast);
  });
});
