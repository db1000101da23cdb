import { runInDurableObject } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { type AgentSettings, agentStub, ended, ids, openScene, rowsIn, scripted, statementsOf } from "./fixture.ts";

const note = {
  name: "note",
  description: "Notes it",
  executionType: "internal",
  inputSchema: { type: "object" },
} as const;
const confirm = { ...note, name: "confirm", executionType: "space" } as const;
const filler = "as everybody here knows well enough ".repeat(220);

const longPast = 2000;

const stage = async (continuity: "consciousness" | "timeline", settings: Partial<AgentSettings> = {}) => {
  const context = { maxTokens: 6000, reservedResponseTokens: 500, memoryTokens: 500, minRecentCycles: 1 };
  const scene = await openScene({ continuity, context, tools: [note, confirm] as never, ...settings });
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
  const join = async () => unwrap(await space.stub().addMember(house.key, analyst));
  const leave = async () => {
    unwrap(await space.stub().removeMember(house.key, analyst.id));
    await vi.waitFor(async () => expect(await rowsIn(analyst, "select left from spaces")).toEqual([{ left: 1 }]));
  };
  return { ...scene, key: house.key, join, leave, turn, knows };
};

const asTool = (tool: string) => expect.objectContaining({ how: "tool", tool });
const verbatim = expect.objectContaining({ how: "verbatim" });

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
    const whole = { how: "verbatim", section: continuity === "timeline" ? "history" : "earlier_cycles" };
    for (const [what, all] of Object.entries(await places())) {
      if (continuity === "consciousness") expect(all, what).toContainEqual(whole);
      expect(all, what).toContainEqual(asTool("search"));
    }
    expect((await knows({ callId })).runId).toBe(run?.id);
    for (let more = 0; more < 4; more += 1) await turn(`${more} ${filler}`);
    for (const [what, all] of Object.entries(await places())) {
      expect(all, what).not.toContainEqual(whole);
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
    expect(places).not.toContainEqual(verbatim);
    expect(places).toContainEqual(asTool("get_my_runs"));
  });

  test("[K17] a message that another one only replies to does not stand there", async () => {
    const { turn, knows, house, analyst, space, husam } = await stage(continuity);
    const { heard } = await turn("The quinces are ripe");
    for (let more = 0; more < 4; more += 1) await turn(`${more} ${filler}`);
    scripted([step(text("Yes."))]);
    unwrap(await space.stub().post(space.as(husam), { text: "Did you see it?", replyTo: heard.id }));
    await ended(house.workspaceId, analyst, 6);
    const { places } = await knows({ messageId: heard.id });
    expect(places).not.toContainEqual(verbatim);
    expect(places).toContainEqual(asTool("search"));
  });

  test.each(["enter_space", "an input", "its own call"])(
    "[K17] it knows what %s showed in a space, after it left",
    async (how) => {
      const { join, leave, knows, key, house, analyst, space, husam } = await stage(continuity);
      scripted((_, index) => {
        if (index > 0 || how === "an input") return step(text("Done."));
        const enter = call("enter_space", { spaceId: space.id });
        return how === "enter_space" ? step(enter) : step(enter, call("confirm", { what: "quinces" }));
      });
      if (how === "enter_space") await leave();
      else unwrap(await space.stub().update(key, { wakePolicy: "addressed" }));
      const { id } = await space.post(husam, "The quinces are ripe");
      if (how === "enter_space") await join();
      await space.post(husam, "@Analyst take note");
      const shown = async () => (await space.messages()).find(({ toolCall }) => toolCall);
      if (how === "its own call") await vi.waitFor(async () => expect(await shown()).toBeDefined());
      else await ended(house.workspaceId, analyst, 1);
      const messageId = (await shown())?.id ?? id;
      expect(await knows({ messageId })).toMatchObject({ known: true });
      await leave();
      expect(await knows({ messageId })).toMatchObject({
        known: true,
        places: expect.arrayContaining([asTool("search")]),
      });
    },
  );

  test("[K17] get_my_runs, where named, returns the message, answer, call and event", async () => {
    const { knows, key, agent, house, analyst, space, husam } = await stage(continuity, {
      messaging: "threaded",
      context: {},
    });
    const sara = await house.person("Sara");
    unwrap(await space.stub().addMember(key, sara));
    const enter = call("enter_space", { spaceId: space.id });
    const ask = call("send_message", { text: "@Sara which colour?", wait: true });
    scripted((_, index) => (index === 0 ? step(enter, call("note", { about: "walrus" }), ask) : step(text("Thanks."))));
    const heard = await space.post(husam, "Paint the pier");
    const question = () =>
      vi.waitFor(async () => {
        const [said] = (await space.messages()).filter(({ sender }) => sender.id === analyst.id);
        expect(said).toBeDefined();
        return said?.id ?? "";
      });
    const said = await question();
    const answer = await space.post(sara, "Ultramarine");
    const { eventId } = unwrap(await agent.trigger(house.workspaceId, { serviceName: "zoo", payload: "otter" }));
    let runs = continuity === "timeline" ? 2 : 3;
    const [first] = await ended(house.workspaceId, analyst, runs);
    const callId = first?.steps[0]?.toolCalls.find(({ name }) => name === "note")?.id ?? "";
    const asked = [
      [{ messageId: heard.id }, "Paint the pier"],
      [{ messageId: said }, "which colour"],
      [{ callId }, "walrus"],
      [{ eventId }, "otter"],
      [{ messageId: answer.id }, "Ultramarine"],
    ] as const;
    for (const [thing, words] of asked) {
      const place = (await knows(thing)).places.find((each) => each.how === "tool" && each.tool === "get_my_runs");
      if ("messageId" in thing && thing.messageId === answer.id && !place) continue;
      expect(place, words).toBeDefined();
      scripted([step(call("get_my_runs", place?.how === "tool" ? place.input : {})), step(text("Read."))]);
      unwrap(await agent.trigger(house.workspaceId, { serviceName: "ci", payload: 1 }));
      runs += 1;
      const reader = (await ended(house.workspaceId, analyst, runs)).at(-1);
      expect(JSON.stringify(reader?.steps[0]?.toolCalls[0]?.output), words).toContain(words);
    }
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

test("[K17] a message that stands word for word in a cycle's summary is known as summarised", async () => {
  const { house, analyst, space, husam, knows } = await stage("consciousness", {
    toolRules: [{ tool: "send_message", rule: "exit_loop" }],
  });
  scripted((_, index) =>
    step(call("enter_space", { spaceId: space.id }), call("send_message", { text: `Yes ${index}` })),
  );
  const { id } = await space.post(husam, "Is the walrus fed?");
  await ended(house.workspaceId, analyst, 1);
  for (let more = 2; more < 7; more += 1) {
    await space.post(husam, `${more} ${filler}`);
    await ended(house.workspaceId, analyst, more);
  }
  const { places } = await knows({ messageId: id });
  expect(places).not.toContainEqual(verbatim);
  expect(places).toContainEqual({ how: "summary", section: "earlier_summaries" });
});
