import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, vi } from "vitest";
import { watchdogMs } from "../../src/agent/bounds.ts";
import type { CallOptions } from "../../src/models/language-model.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { type AgentSettings, agentStub, openHouse, runsOf, told as toldAll } from "../agent/fixture.ts";
import { createGate } from "../support/gate.ts";
import { call, installModel, type ScriptedStep, scriptedModel, step, text, waitAt } from "../support/scripted-model.ts";

/**
 * Random lives of an agent. Each thing that it is told and each thing that it does holds a word of its own. A case is one
 * such word and one input of a later run: the word stands in that input, or a tool that the input offers returns it.
 */
const deeds = [
  "say here",
  "say there",
  "memory",
  "forgotten memory",
  "goal",
  "plan",
  "ended plan",
  "note",
  "recall",
] as const;
type Deed = (typeof deeds)[number];

const crashes = ["agent.after-take", "agent.after-journal", "agent.after-call", "agent.before-commit"] as const;

const turn = fc.record({
  from: fc.constantFrom("Alpha", "Beta", "service", "plan"),
  deeds: fc.array(fc.constantFrom(...deeds), { maxLength: 3 }),
  ending: fc.constantFrom("text", "silent", "skip"),
  /** It asks Sara and waits; or another run takes it over before it has done anything. */
  more: fc.option(fc.constantFrom("ask", "absorb"), { freq: 3, nil: undefined }),
  crash: fc.option(fc.constantFrom(...crashes), { freq: 4, nil: undefined }),
});

export const turnsInLife = 16;

export const life = fc.record({
  continuity: fc.constantFrom("consciousness", "timeline"),
  messaging: fc.constantFrom("simple", "threaded"),
  /** A small input is compacted after a few runs. */
  maxTokens: fc.constantFrom(6000, 16_000),
  keepRecent: fc.integer({ min: 1, max: 3 }),
  historyMessages: fc.constantFrom(4, 50),
  /** Before this turn the agent is taken out of Beta. */
  leavesAt: fc.integer({ min: 2, max: 2 * turnsInLife }),
  turns: fc.array(turn, { minLength: turnsInLife, maxLength: turnsInLife }),
});
export type Life = typeof life extends fc.Arbitrary<infer L> ? L : never;

const note = {
  name: "note",
  description: "Writes it down",
  executionType: "internal",
  inputSchema: { type: "object" },
};

const settingsOf = ({ continuity, messaging, maxTokens, keepRecent, historyMessages }: Life) =>
  ({
    name: "Analyst",
    ...{ continuity, messaging, tools: [note] },
    context: {
      maxTokens,
      reservedResponseTokens: 500,
      memoryTokens: 1000,
      minRecentCycles: keepRecent,
      historyMessages,
    },
  }) as unknown as AgentSettings;

let words = 0;
/** A word that nothing else holds. */
const mint = (): string => {
  words += 1;
  return `w${words.toString(36).padStart(5, "0")}x`;
};

const filler = "and so on, as everybody here knows well enough. ".repeat(80);

type Places = Record<"Alpha" | "Beta", string>;

/** The step that does a deed, with its word. */
const stepFor = (deed: Deed, word: string, here: string, there: string): ScriptedStep => {
  const speak = (spaceId: string) =>
    step(call("enter_space", { spaceId, limit: 1 }), call("send_message", { text: word }));
  switch (deed) {
    case "say here":
      return speak(here);
    case "say there":
      return speak(there);
    case "memory":
      return step(call("set_memories", { memories: [{ key: word, value: "kept" }] }));
    case "forgotten memory":
      return step(
        call("set_memories", { memories: [{ key: word, value: "kept" }] }),
        call("delete_memories", { keys: [word] }),
      );
    case "ended plan":
      return step(
        call("set_plans", { plans: [{ id: word, name: "Later", instruction: "look", runAfter: "300 days" }] }),
        call("delete_plans", { planIds: [word] }),
      );
    case "goal":
      return step(call("set_goals", { goals: [{ id: word, description: "a goal" }] }));
    case "plan":
      return step(call("set_plans", { plans: [{ name: word, instruction: "look", runAfter: "300 days" }] }));
    case "note":
      return step(call("note", { about: word }));
    case "recall":
      return step(call("recall", { op: "insert", content: word }));
  }
};

/** So many runs are asked for in one step, so that each answer has room. */
const runsAtOnce = 2;

/** What is missing of a case, for a person to read. */
export type Missing = { word: string; what: string; run: number; laterRun: number };

const textOf = ({ prompt }: CallOptions): string => JSON.stringify(prompt);

/** Plays one life. Answers how many cases there were, which do not hold, and how many inputs were compacted. */
export const live = async (one: Life): Promise<{ cases: number; missing: Missing[]; compactions: number }> => {
  const house = await openHouse();
  const { workspaceId } = house;
  const husam = await house.person("Husam");
  const sara = await house.person("Sara");
  const analyst = await house.agent(settingsOf(one));
  const spaces = {
    Alpha: await house.space("Alpha", [husam, sara, analyst]),
    Beta: await house.space("Beta", [husam, sara, analyst]),
  };
  const places: Places = { Alpha: spaces.Alpha.id, Beta: spaces.Beta.id };
  const agent = () => env.AGENT.getByName(analyst.id);

  let play = (_input: string, _index: number): ScriptedStep => step(text("Done."));
  let inputs: string[] = [];
  const uninstall = installModel(
    scriptedModel((options) => {
      const input = textOf(options);
      inputs.push(input);
      return play(input, inputs.length - 1);
    }),
  );
  /** Words by what they are of. */
  const known = new Map<string, Omit<Missing, "word" | "laterRun">>();
  const missing: Missing[] = [];
  let cases = 0;
  let isInBeta = true;
  let compactions = 0;

  /** The alarm that follows a crash. */
  const watchdog = async (): Promise<void> => {
    vi.setSystemTime(Date.now() + watchdogMs + 1);
    await runDurableObjectAlarm(agentStub(analyst)).catch(() => false);
  };
  let crashed = false;
  /** Resolves once so many runs have ended. */
  const settled = async (runs: number, mayWait = false): Promise<void> => {
    await vi.waitFor(
      async () => {
        const all = await runsOf(workspaceId, analyst);
        const open = all.filter(({ status }) => status === "running" || (status === "waiting_reply" && !mayWait));
        if (all.length >= runs && open.length === 0) return;
        if (crashed) await watchdog();
        throw new Error(`${all.length} of ${runs} runs: ${all.map(({ status }) => status).join()}`);
      },
      { timeout: 10_000, interval: 5 },
    );
  };

  /** Whether a tool that is offered returns the word. */
  const isFound = async (word: string): Promise<boolean> => {
    const query = { query: word, mode: "fts", types: [], limit: 10 } as const;
    const { items } = unwrap(await agent().search(workspaceId, { ...query, types: [] }));
    if (JSON.stringify(items).includes(word)) return true;
    // The agent may read those of the spaces that it is in.
    const said = [...(await spaces.Alpha.texts()), ...(isInBeta ? await spaces.Beta.texts() : [])];
    return said.some((each) => each.includes(word));
  };

  /** Checks the first input of a run for all words from before it. */
  const check = async (input: string, before: typeof known, laterRun: number): Promise<void> => {
    for (const [word, of] of before) {
      cases += 1;
      if (!input.includes(word) && !(await isFound(word))) missing.push({ word, ...of, laterRun });
    }
  };

  /** What `get_my_runs` answers of these runs: a timeline is offered it in every input. */
  const ownRuns = async (ended: number, runIds: string[]): Promise<string> => {
    const answers: string[] = [];
    for (let from = 0; from < runIds.length; from += runsAtOnce) {
      const calls = runIds.slice(from, from + runsAtOnce).map((runId) => call("get_my_runs", { runId }));
      play = (_, index) => (index === 0 ? step(...calls) : step(text("Done.")));
      inputs = [];
      await spaces.Alpha.post(husam, "What did you do?");
      await settled(ended + answers.length + 1);
      answers.push(inputs[1] ?? "");
    }
    return answers.join();
  };

  /** How many runs there are so far. */
  let runs = 0;
  const count = async (): Promise<void> => {
    runs = (await runsOf(workspaceId, analyst)).length;
  };
  const know = (word: string, what: string): string => {
    known.set(word, { what, run: runs });
    return word;
  };

  /** A run that waits for its model is absorbed by the next one. */
  const absorb = async (): Promise<void> => {
    const [taken, taker] = [mint(), mint()];
    inputs = [];
    play = () => step(waitAt(createGate()));
    await spaces.Alpha.post(husam, `${taken} ${filler}`);
    await vi.waitFor(() => expect(inputs).toHaveLength(1));
    const [absorbed] = await runsOf(workspaceId, analyst);
    play = (_, index) => (index === 1 ? step(call("absorb_run", { runId: absorbed?.id ?? "" })) : step(text("Done.")));
    await spaces.Alpha.post(husam, taker);
    await settled(runs + 2);
    know(taken, "told to a run that was absorbed");
    know(taker, "told to a run that absorbed another");
    await count();
  };

  try {
    vi.setSystemTime(Date.now());
    for (const [index, each] of one.turns.entries()) {
      const before = new Map(known);
      const told = mint();
      const hasLeft = index >= one.leavesAt;
      if (index === one.leavesAt) {
        unwrap(await spaces.Beta.stub().removeMember({ kind: "key", workspaceId, keyId: "key" }, analyst.id));
        await toldAll(spaces.Beta.id);
        isInBeta = false;
      }
      const here = each.from === "Beta" && !hasLeft ? "Beta" : "Alpha";
      const there = here === "Alpha" && !hasLeft ? "Beta" : "Alpha";
      const isSkipped = each.ending === "skip" && one.continuity === "consciousness" && each.deeds.length === 0;
      const toDo = each.deeds.map((deed) => {
        const word = know(mint(), deed);
        return { word, doing: stepFor(deed, word, places[here], places[there]) };
      });
      const asks = each.more === "ask" && one.messaging === "threaded";
      if (asks) {
        const word = know(mint(), "ask");
        const question = call("send_message", { text: `@Sara ${word}?`, wait: true });
        toDo.push({ word, doing: step(call("enter_space", { spaceId: places[here], limit: 1 }), question) });
      }
      const said = each.ending === "silent" && toDo.length > 0 ? "" : "Done.";
      const ending = isSkipped ? step(call("skip", {})) : step(text(said));
      // A run that was cut goes on with what it has not done yet.
      play = (input) => toDo.find(({ word }) => !input.includes(word))?.doing ?? ending;
      inputs = [];
      crashed = false;
      if (each.crash) void armFault(each.crash).then(() => (crashed = true));
      if (each.from === "service") {
        unwrap(await agent().trigger(workspaceId, { serviceName: "crm", payload: { about: told } }));
      } else if (each.from === "plan") {
        const at = new Date(Date.now() + 60_000).toISOString();
        unwrap(await agent().putPlan(workspaceId, `p${index}`, { name: "Due", instruction: told, scheduledAt: at }));
        vi.setSystemTime(Date.now() + 61_000);
        await runDurableObjectAlarm(agentStub(analyst)).catch(() => false);
      } else await spaces[here].post(husam, `${told} ${filler}`);
      await settled(runs + 1, asks);
      disarmFaults();
      await check(inputs[0] ?? "", before, index);
      if (inputs[0]?.includes("EARLIER CYCLES")) compactions += 1;
      know(told, `told by ${each.from}`);
      if (asks) {
        const answer = know(mint(), "an answer");
        await spaces[here].post(sara, answer);
        await settled(one.continuity === "timeline" ? runs + 1 : runs + 2);
      }
      await count();
      if (each.more === "absorb" && one.continuity === "timeline") await absorb();
    }
    if (one.continuity === "consciousness" || missing.length === 0) return { cases, missing, compactions };
    const ids = (await runsOf(workspaceId, analyst)).map(({ id }) => id).reverse();
    const told = await ownRuns(runs, [...new Set(missing.map(({ run }) => ids[run] ?? ""))]);
    return { cases, missing: missing.filter(({ word }) => !told.includes(word)), compactions };
  } finally {
    disarmFaults();
    uninstall();
    vi.useRealTimers();
    await agent()
      .remove(workspaceId)
      .catch(() => undefined);
  }
};
