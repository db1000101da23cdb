import { abortAllDurableObjects } from "cloudflare:test";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { maxSummaryBacklog, summaryFirstRetryMs } from "../../../src/agent/bounds.ts";
import type { CallOptions } from "../../../src/models/language-model.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { createGate, type Gate } from "../../support/gate.ts";
import { rowsWith } from "../../support/rows.ts";
import {
  apiError,
  call,
  installModel,
  refusal,
  type ScriptedModel,
  type ScriptedStep,
  scriptedModel,
  step,
  text,
  waitAt,
} from "../../support/scripted-model.ts";
import { openCompartment } from "../compartment.ts";
import { agentStub, ended, type openHouse, openScene, passTime, rowsIn, userTexts } from "../fixture.ts";

/** Summaries that a model writes of what an agent reads no more. */
afterEach(() => void vi.useRealTimers());

const long = (name: string): string => `${name}: ${"some words that say little ".repeat(30)}`;
const strategy = "recursive_summarization" as const;
/** An agent's own model, and the one that summarises: it is told from the other by its name. */
const summariser = { provider: "rehearsal", name: "summariser", deltasPerSecond: 0 } as const;

const install = (summaries: (call: CallOptions, index: number) => ScriptedStep | Promise<ScriptedStep>) => {
  const steps: ScriptedStep[] = [];
  const own = scriptedModel(() => steps.shift() ?? { ...step(text("Read it.")), usage: null });
  const asked = scriptedModel(summaries);
  onTestFinished(installModel((spec) => (spec.name === "summariser" ? asked : own)));
  return { own, asked, steps };
};

const questions = (model: ScriptedModel): string[] => model.calls.map((call) => userTexts(call).join("\n"));
const namesIn = (shown: string): string[] => [...new Set(shown.match(/\b(?:message|summary)-\d+/g))];

type Context = NonNullable<Parameters<Awaited<ReturnType<typeof openHouse>>["agent"]>[0]["context"]>;

const stage = async (continuity: "consciousness" | "timeline", context: Context) => {
  const { house, husam, analyst, space, agent } = await openScene({ continuity, context });
  let runs = 0;
  const tell = async (...texts: string[]): Promise<void> => {
    for (const each of texts) {
      await space.post(husam, each);
      runs += 1;
      await ended(house.workspaceId, analyst, runs);
    }
  };
  /** The summaries that it has by now, and what is wanted of them. */
  const summaries = () =>
    rowsIn(analyst, "select subject, text, up_to, try_at, failures from summaries order by subject");
  /** What its last run was told above its own cycle or history. */
  const context_ = async () => unwrap(await agent.context(house.workspaceId));
  return { house, husam, analyst, space, agent, tell, summaries, context: context_ };
};

const folding = { maxTokens: 5000, reservedResponseTokens: 500, minRecentCycles: 2 };
const folded = (model: ScriptedModel, count: number) =>
  vi.waitFor(() => expect(model.calls.length).toBeGreaterThanOrEqual(count), { timeout: 5000 });

describe("a consciousness", () => {
  test("the oldest cycles are summarized in order, by chunks; a window begins with the summary", async () => {
    const { asked, own } = install((_, index) => step(text(`summary-${index + 1}`)));
    const { tell, context, summaries } = await stage("consciousness", {
      ...folding,
      compaction: { strategy, chunkSize: 3, model: summariser },
    });
    const names = Array.from({ length: 40 }, (_, index) => `message-${index + 1}`);
    for (const name of names) {
      await tell(long(name));
      const [row] = await summaries();
      if (row?.text && row.try_at === null) break;
    }
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ try_at: null }]), { timeout: 5000 });
    const seen = questions(asked).map(namesIn);
    // The first chunk has nothing before it; every other has the summary that came of the one before.
    expect(seen[0]?.[0]).toBe("message-1");
    expect(seen.slice(1).map(([first]) => first)).toEqual(seen.slice(1).map((_, index) => `summary-${index + 1}`));
    const told = seen.flatMap((all) => all.filter((name) => name.startsWith("message")));
    expect(told).toEqual(names.slice(0, told.length));
    expect(told.length).toBeGreaterThan(3);
    expect(Math.max(...seen.map((all) => all.filter((name) => name.startsWith("message")).length))).toBeLessThanOrEqual(
      3,
    );

    const before = asked.calls.length;
    await tell("And now?");
    const last = userTexts(own.calls.at(-1)).join("\n");
    expect(last).toContain(`EARLIER CYCLES (your own summaries, oldest first):\n  | summary-${before}`);
    expect(namesIn(last)[1]).toBe(`message-${told.length + 1}`);
    expect((await context()).sections.map(({ name }) => name)).toContain("earlier_summaries");
    // It is stored: no input asks for it again.
    expect(asked.calls.length).toBe(before);
  });

  test("[R4] a failed summary delays no run, is tried again, and costs nothing where refused", async () => {
    let works = false;
    const { asked } = install(() => (works ? step(text("It went well.")) : refusal(new TypeError("terminated"))));
    const { tell, analyst, summaries } = await stage("consciousness", {
      ...folding,
      compaction: { strategy, chunkSize: 20, model: summariser },
    });
    for (let count = 1; asked.calls.length === 0 && count < 40; count += 1) await tell(long(`message-${count}`));
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ text: null, failures: 1 }]));
    await tell("Are you there?");
    works = true;
    vi.useFakeTimers({ toFake: ["Date"] });
    await passTime(analyst, 46_000);
    await vi.waitFor(
      async () => expect(await summaries()).toMatchObject([{ text: "It went well.", failures: 0, try_at: null }]),
      { timeout: 5000 },
    );
  });

  test("[L6] a summary rests while the workspace is suspended, and is made once it is resumed", async () => {
    let works = false;
    const { asked } = install(() => (works ? step(text("It went well.")) : refusal(new TypeError("terminated"))));
    const { house, agent, tell, analyst, summaries } = await stage("consciousness", {
      ...folding,
      compaction: { strategy, chunkSize: 20, model: summariser },
    });
    for (let count = 1; asked.calls.length === 0 && count < 40; count += 1) await tell(long(`message-${count}`));
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ text: null, failures: 1 }]));
    unwrap(await agent.setSuspended(house.workspaceId, true));
    works = true;
    const before = asked.calls.length;
    vi.useFakeTimers({ toFake: ["Date"] });
    for (let hours = 0; hours < 3; hours += 1) await passTime(analyst, 3_600_000);
    expect(asked.calls.length).toBe(before);
    unwrap(await agent.setSuspended(house.workspaceId, false));
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ text: "It went well." }]));
  });

  test("[R4] a summary is asked for no sooner than its model's provider wants", async () => {
    const busy = apiError(429, { responseHeaders: { "retry-after": "7200" } });
    const { asked } = install(() => refusal(busy));
    const { tell, summaries } = await stage("consciousness", {
      ...folding,
      compaction: { strategy, chunkSize: 20, model: summariser },
    });
    const begunAt = Date.now();
    for (let count = 1; asked.calls.length === 0 && count < 40; count += 1) await tell(long(`message-${count}`));
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ failures: 1 }]));
    const [row] = await summaries();
    expect(Number(row?.try_at)).toBeGreaterThanOrEqual(begunAt + 7_200_000);
  });

  test("[R1] after a crash in the middle of it, it goes on from the last chunk that was folded", async () => {
    const gate = createGate();
    let crashed = false;
    const { asked } = install((_, index) =>
      index === 1 && !crashed ? step(waitAt(gate), text("lost")) : step(text(`summary-${index + 1}`)),
    );
    const { tell, analyst, summaries } = await stage("consciousness", {
      ...folding,
      compaction: { strategy, chunkSize: 2, model: summariser },
    });
    for (let count = 1; asked.calls.length < 2 && count < 40; count += 1) await tell(long(`message-${count}`));
    await folded(asked, 2);
    crashed = true;
    await abortAllDurableObjects();
    vi.useFakeTimers({ toFake: ["Date"] });
    await passTime(analyst, 26_000);
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ try_at: null }]), { timeout: 5000 });
    const [first, second, again] = questions(asked).map(namesIn);
    expect(first).toEqual(["message-1", "message-2"]);
    expect(second).toEqual(["summary-1", "message-3", "message-4"]);
    expect(again).toEqual(second);
  });

  test("[B2] what its summaries cost is in the agent's ledger", async () => {
    const { asked } = install(() => ({ ...step(text("Short.")), usage: { inputTokens: 700, outputTokens: 50 } }));
    const { tell, house, agent, summaries } = await stage("consciousness", {
      ...folding,
      compaction: { strategy, chunkSize: 20, model: summariser },
    });
    const spent = async () => unwrap(await agent.describe(house.workspaceId)).activity?.tokensToday ?? 0;
    let runs = 0;
    while (asked.calls.length === 0 && runs < 40) {
      runs += 1;
      await tell(long(`message-${runs}`));
    }
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ text: "Short.", try_at: null }]));
    const { items } = unwrap(await agent.runs(house.workspaceId, { limit: 100 }));
    const views = await Promise.all(items.map(async ({ id }) => unwrap(await agent.run(house.workspaceId, id))));
    const billed = views.map(({ steps }) =>
      steps.reduce((sum, { usage }) => sum + usage.inputTokens + usage.outputTokens, 0),
    );
    expect(billed.length).toBe(runs);
    expect(await spent()).toBe(billed.reduce((sum, tokens) => sum + tokens, asked.calls.length * 750));
  });

  test("[B2] a summary that does not fit the day is asked for when the next one begins", async () => {
    const { asked } = install(() => refusal(new TypeError("terminated")));
    const { tell, house, agent, summaries } = await stage("consciousness", {
      ...folding,
      compaction: { strategy, chunkSize: 20, model: summariser },
    });
    for (let count = 1; asked.calls.length === 0 && count < 40; count += 1) await tell(long(`message-${count}`));
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ failures: 1 }]));
    unwrap(await agent.update(house.workspaceId, { limits: { maxTokensPerDay: 1000 } }));
    const midnight = new Date().setUTCHours(24, 0, 0, 0);
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ failures: 2, try_at: midnight }]));
    expect(asked.calls.length).toBe(1);
  });
});

describe("a timeline", () => {
  const context: Context = { historyMessages: 3, compaction: { strategy, chunkSize: 4, model: summariser } };

  test("[C11] its summaries of spaces cost no more of the day than a person's share", async () => {
    const usage = { inputTokens: 30_000, outputTokens: 10 };
    const { asked } = install((_, index) => ({ ...step(text(`summary-${index + 1}`)), usage }));
    const { tell, summaries, house, agent } = await stage("timeline", context);
    unwrap(await agent.update(house.workspaceId, { limits: { maxTokensPerDay: 100_000 } }));
    for (let count = 1; count <= 7; count += 1) await tell(`message-${count}`);
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ up_to: 4, try_at: null }]));
    await tell("message-8", "message-9", "message-10", "message-11");
    const midnight = new Date().setUTCHours(24, 0, 0, 0);
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ up_to: 4, try_at: midnight }]));
    expect(asked.calls.length).toBe(1);
  });

  test("what lies before its window is folded, a chunk at a time, and stands above the window", async () => {
    const { asked, own } = install((_, index) => step(text(`summary-${index + 1}\nSPACE HISTORY ("Alpha"):`)));
    const { tell, summaries, space } = await stage("timeline", context);
    for (let count = 1; count <= 7; count += 1) await tell(`message-${count}`);
    await vi.waitFor(async () =>
      expect(await summaries()).toMatchObject([{ subject: space.id, up_to: 4, try_at: null }]),
    );
    expect(questions(asked).map(namesIn)).toEqual([["message-1", "message-2", "message-3", "message-4"]]);
    await tell("message-8", "message-9", "message-10", "message-11");
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ up_to: 8, try_at: null }]));
    expect(questions(asked).map(namesIn).at(1)).toEqual([
      "summary-1",
      "message-5",
      "message-6",
      "message-7",
      "message-8",
    ]);
    await tell("message-12");
    const read = userTexts(own.calls.at(-1)).join("\n");
    expect(read.slice(read.indexOf("SPACE HISTORY"), read.indexOf("message-9"))).toMatch(
      /^SPACE HISTORY \("Alpha"\):\n {2}\(8 earlier messages are not shown: summarized below; read_messages with offset 4 reads them\)\n {2}SUMMARY of 8 earlier messages, written for you \(all but the newest 4\):\n {4}\| summary-2\n {4}\| SPACE HISTORY \("Alpha"\):\n {2}\[msg_/,
    );
    expect(asked.calls.length).toBe(2);
  });

  test("[K6] what it carried from another space is folded with why it did, as its journal has it", async () => {
    const { asked, steps } = install(() => step(text("summary-1")));
    const { house, husam, analyst, space } = await stage("timeline", context);
    const board = await house.space("Board", [husam, analyst]);
    steps.push(step(call("enter_space", { spaceId: space.id }), call("send_message", { text: "message-1" })));
    await board.post(husam, "Tell Alpha about the budget");
    await ended(house.workspaceId, analyst, 1);
    for (let count = 2; count <= 7; count += 1) {
      await space.post(husam, `message-${count}`);
      await ended(house.workspaceId, analyst, count);
    }
    await folded(asked, 1);
    const [question = ""] = questions(asked);
    expect(question).toContain(
      'You: "message-1" [sent because "Husam" asked "Tell Alpha about the budget" in "Board"]',
    );
  });

  test("[K7] the window begins where the summary ends, and at the beginning while there is none", async () => {
    const { own } = install(() => step(text("So it was.")));
    const { tell, summaries } = await stage("timeline", context);
    for (let count = 1; count <= 15; count += 1) {
      await tell(`message-${count}`);
      const wanted = count < 7 ? [] : [{ up_to: Math.floor((count - 3) / 4) * 4, try_at: null }];
      await vi.waitFor(async () => expect(await summaries()).toMatchObject(wanted));
      // Before message 8 there is no summary yet; the one that was written after message 11 ends with message 8.
      const folded = count < 8 ? 0 : Math.floor((count - 4) / 4) * 4;
      const names = Array.from({ length: count - folded }, (_, index) => `message-${folded + index + 1}`);
      const read = userTexts(own.calls.at(-1)).join("\n");
      const history = read.slice(read.indexOf("SPACE HISTORY"), read.indexOf("TRIGGER:"));
      expect(namesIn(history)).toEqual(names);
      expect(history.includes(`SUMMARY of ${folded} earlier messages`)).toBe(folded > 0);
    }
  });

  test("[K7] a window that tokens cut counts what lies between, and has it summarized at once", async () => {
    const { own, asked } = install(() => step(text("So it was.")));
    const limits = { maxTokens: 5000, reservedResponseTokens: 500, historyTokens: 900 };
    const { tell, summaries } = await stage("timeline", { ...context, ...limits, historyMessages: 6 });
    const line = () =>
      /\(\d+ earlier messages are not shown: [^)]*\)/.exec(userTexts(own.calls.at(-1)).join("\n"))?.[0];
    for (let count = 1; count <= 7; count += 1) await tell(long(`message-${count}`));
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ up_to: 4, try_at: null }]));
    await tell(long("message-8"));
    const [, shown] = /offset (\d+)/.exec(line() ?? "") ?? [];
    expect(line()).toMatch(
      /^\(\d earlier messages are not shown: 4 summarized below, \d beyond context\.historyTokens;/,
    );
    expect(Number(shown)).toBeLessThan(4);
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ up_to: 8, try_at: null }]));
    expect(asked.calls.length).toBe(2);
    await tell(long("message-9"));
    expect(line()).toMatch(/^\(\d earlier messages are not shown: summarized below;/);
  });

  test("[B3] of a space that is older than the agent, no more than the newest part is folded", async () => {
    const { asked } = install(() => step(text("So it was.")));
    const { house, husam } = await stage("timeline", context);
    const old = await house.space("Old", [husam]);
    for (let count = 1; count <= maxSummaryBacklog + 20; count += 1) await old.post(husam, `message-${count}`);
    const compaction = { strategy, chunkSize: 200, model: summariser };
    const late = await house.agent({ name: "Late", continuity: "timeline", context: { ...context, compaction } });
    unwrap(await old.stub().addMember({ kind: "key", workspaceId: house.workspaceId, keyId: "key" }, late));
    await old.post(husam, "Welcome");
    await ended(house.workspaceId, late, 1);
    await folded(asked, 2);
    const told = questions(asked).map(namesIn);
    expect(told.map((names) => [names[0], names.length])).toEqual([
      ["message-19", 200],
      ["message-219", 200],
    ]);
  });

  test("another strategy shows and wants no summary", async () => {
    const { asked, own } = install(() => step(text("So it was.")));
    const { tell, house, agent, summaries } = await stage("timeline", context);
    for (let count = 1; count <= 7; count += 1) await tell(`message-${count}`);
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ up_to: 4, try_at: null }]));
    unwrap(await agent.update(house.workspaceId, { context: { compaction: { strategy: "truncate" } } }));
    for (let count = 8; count <= 12; count += 1) await tell(`message-${count}`);
    expect(userTexts(own.calls.at(-1)).join("\n")).not.toContain("SUMMARY of");
    expect(asked.calls.length).toBe(1);
  });
});

describe("what was edited or deleted", () => {
  const context: Context = { historyMessages: 3, compaction: { strategy, chunkSize: 4, model: summariser } };
  /** Tells by its words whether it was shown the old ones. `gate`: the first answer that would tell them waits at it. */
  const honest = (gate?: Gate) => {
    let waits = gate !== undefined;
    return install((asked) => {
      if (!userTexts(asked).join("\n").includes("quinces")) return step(text("It was of little."));
      const answer = step(...(gate && waits ? [waitAt(gate)] : []), text("It was of quinces."));
      waits = false;
      return answer;
    });
  };
  const quinces = "message-1 of the quinces of the old orchard";
  type Stage = Awaited<ReturnType<typeof stage>>;
  const first = async ({ space }: Stage) => (await space.messages())[0]?.id ?? "";

  test.each(["edit", "deletion"])(
    "[L4] a summary of a space is made anew after the %s of a message in it",
    async (what) => {
      honest();
      const on = await stage("timeline", context);
      const { space, husam, tell, summaries } = on;
      await tell(quinces, ...Array.from({ length: 6 }, (_, index) => `message-${index + 2}`));
      await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ text: "It was of quinces." }]));
      const id = await first(on);
      if (what === "edit") unwrap(await space.stub().editMessage(space.as(husam), id, "message-1 of the pears"));
      else unwrap(await space.stub().deleteMessage(space.as(husam), id));
      await vi.waitFor(async () =>
        expect(await summaries()).toMatchObject([{ text: "It was of little.", up_to: 4, try_at: null }]),
      );
    },
  );

  test.each(["consciousness", "timeline"] as const)(
    "[L4] a summary that is being written of what was deleted is made anew (%s)",
    async (continuity) => {
      const gate = createGate();
      const { asked } = honest(gate);
      const on = await stage(continuity, continuity === "timeline" ? context : { ...folding, ...context });
      const { space, husam, tell, summaries, analyst } = on;
      await tell(long(quinces));
      for (let count = 2; asked.calls.length === 0 && count < 40; count += 1) await tell(long(`message-${count}`));
      await gate.reached;
      unwrap(await space.stub().deleteMessage(space.as(husam), await first(on)));
      await vi.waitFor(async () =>
        expect(await rowsIn(analyst, "SELECT words FROM redactions")).toEqual([{ words: null }]),
      );
      gate.open();
      await vi.waitFor(async () => expect(Number((await summaries())[0]?.try_at)).toBeGreaterThan(Date.now()));
      vi.useFakeTimers({ toFake: ["Date"] });
      await passTime(analyst, summaryFirstRetryMs);
      await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ text: "It was of little." }]));
    },
  );

  test("[L4] what a provider quotes of deleted words as it refuses a summary is in no row", async () => {
    const gate = createGate();
    const { asked } = install(async () => {
      gate.reach();
      await gate.opened;
      return refusal(apiError(400, { message: `This is not allowed: "${quinces}"` }));
    });
    const on = await stage("timeline", context);
    const { space, husam, tell, summaries, analyst } = on;
    await tell(quinces, ...Array.from({ length: 6 }, (_, index) => `message-${index + 2}`));
    await gate.reached;
    unwrap(await space.stub().deleteMessage(space.as(husam), await first(on)));
    await vi.waitFor(async () =>
      expect(await rowsIn(analyst, "SELECT words FROM redactions")).toEqual([{ words: null }]),
    );
    gate.open();
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ failures: 1 }]));
    expect(asked.calls).toHaveLength(1);
    expect(await rowsWith(agentStub(analyst), "quinces")).toEqual([]);
  });

  test("[L4] a summary of where an agent carried words to is made anew as they are deleted", async () => {
    const { steps } = honest();
    const { house, husam, analyst, space, tell, summaries } = await stage("timeline", context);
    const board = await house.space("Board", [husam, analyst]);
    steps.push(step(call("enter_space", { spaceId: space.id }), call("send_message", { text: "message-1" })));
    const { id } = await board.post(husam, `Tell Alpha ${quinces}`);
    await ended(house.workspaceId, analyst, 1);
    await tell(...Array.from({ length: 6 }, (_, index) => `message-${index + 2}`));
    const summary = { subject: space.id, try_at: null };
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ ...summary, text: "It was of quinces." }]));
    unwrap(await board.stub().deleteMessage(house.key, id));
    await vi.waitFor(async () => expect(await summaries()).toMatchObject([{ ...summary, text: "It was of little." }]));
  });

  test("[L4] a compartment drops the summary that it was fed of a message that is deleted", async () => {
    honest();
    const on = await stage("consciousness", { ...folding, ...context });
    const { space, analyst, husam, tell } = on;
    const secret = await openCompartment(on, "Board");
    const summaryOf = async (mind: { id: string }) =>
      String((await rowsIn(mind, "SELECT summary FROM windows ORDER BY id DESC"))[0]?.summary);
    await tell(long(quinces));
    for (let count = 2; count < 40 && !(await summaryOf(analyst)).includes("quinces"); count += 1) {
      await tell(long(`message-${count}`));
    }
    await secret.ask("What do you know?", 1);
    expect(await summaryOf(secret.mind)).toBe("  | It was of quinces.");
    unwrap(await space.stub().deleteMessage(space.as(husam), await first(on)));
    for (const mind of [analyst, secret.mind]) {
      await vi.waitFor(async () => expect(await summaryOf(mind)).toContain("has been left out"));
    }
  });
});
