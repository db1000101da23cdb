import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, vi } from "vitest";
import { watchdogMs } from "../../src/agent/bounds.ts";
import type { CallOptions } from "../../src/models/language-model.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { type AgentSettings, agentStub, openHouse, runsOf, told as toldAll } from "../agent/fixture.ts";
import { createGate } from "../support/gate.ts";
import {
  call,
  installModel,
  type ScriptedPart,
  type ScriptedStep,
  scriptedModel,
  step,
  text,
  waitAt,
} from "../support/scripted-model.ts";
import { type Reader, unreachable, watchInputs } from "./reach.ts";

/**
 * Random lives of an agent. Each thing that it is told or does holds a word of its own. A case is one input of a life:
 * every earlier word stands in it, or can be reached from it (`reach.ts`).
 */
const speak = (spaceId: string, message: string, more: object = {}): ScriptedPart[] => [
  call("enter_space", { spaceId, limit: 1 }),
  call("send_message", { text: message, ...more }),
];
const keep = (key: string, value: string): ScriptedPart => call("set_memories", { memories: [{ key, value }] });
const intend = (plan: object): ScriptedPart => call("set_plans", { plans: [{ runAfter: "300 days", ...plan }] });
const make = (label: string, content: string): ScriptedPart => call("block_create", { label, content });

/** The calls of each deed, with its word: what is kept, and what is gone again and stands in the journal alone. */
const deeds = {
  "say here": (word, { here }) => speak(here, word),
  "say there": (word, { there }) => speak(there, word),
  memory: (word) => [keep(word, "kept")],
  "changed memory": (word) => [keep("mood", word), keep("mood", "other")],
  "forgotten memory": (word) => [keep(word, "kept"), call("delete_memories", { keys: [word] })],
  block: (word) => [make(`b_${word}`, "kept")],
  "changed block": (word) => {
    const label = `block_${Number.parseInt(word.slice(1), 36)}`;
    return [make(label, word), call("block_edit", { label, operations: [{ op: "set_text", text: "other" }] })];
  },
  goal: (word) => [call("set_goals", { goals: [{ id: word, description: "a goal" }] })],
  plan: (word) => [intend({ name: word, instruction: "look" })],
  "ended plan": (word) => [
    intend({ id: word, name: "Later", instruction: "look" }),
    call("delete_plans", { planIds: [word] }),
  ],
  note: (word) => [call("note", { about: word })],
  recall: (word) => [call("recall", { op: "insert", content: word })],
} satisfies Record<string, (word: string, places: { here: string; there: string }) => ScriptedPart[]>;
type Deed = keyof typeof deeds;
const allDeeds = Object.keys(deeds) as Deed[];

const crashes = ["agent.after-take", "agent.after-journal", "agent.after-call", "agent.before-commit"] as const;

/** As often nothing happens instead. */
const seldom = (times: number): undefined[] => Array.from({ length: times });

const turn = fc.record({
  from: fc.constantFrom("Alpha", "Beta", "service", "plan"),
  deeds: fc.array(fc.constantFrom(...allDeeds), { maxLength: 3 }),
  ending: fc.constantFrom("text", "silent", "skip"),
  /** It asks Sara and waits; or another run takes it over before it has done anything. */
  more: fc.constantFrom("ask", "absorb", ...seldom(4)),
  crash: fc.constantFrom(...crashes, ...seldom(16)),
});

const smallInput = 6000;
export const turnsInLife = 16;

const strategies = ["self_summaries", "truncate", "recursive_summarization"] as const;

export const life = fc.record({
  continuity: fc.constantFrom("consciousness", "timeline"),
  messaging: fc.constantFrom("simple", "threaded"),
  /** A small input is compacted after a few runs. */
  maxTokens: fc.constantFrom(smallInput, 16_000),
  keepRecent: fc.integer({ min: 1, max: 3 }),
  strategy: fc.constantFrom(...strategies),
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

const settingsOf = ({ continuity, messaging, maxTokens, keepRecent, strategy, historyMessages }: Life) =>
  ({
    name: "Analyst",
    ...{ continuity, messaging, tools: [note] },
    context: {
      maxTokens,
      reservedResponseTokens: 500,
      memoryTokens: 1000,
      minRecentCycles: keepRecent,
      historyMessages,
      compaction: strategy === "recursive_summarization" ? { strategy, chunkSize: 4 } : { strategy },
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

/** What happens in the lives of agents of this continuity. */
export const things = (continuity: Life["continuity"]): string[] => [
  ...[...allDeeds, "ask", "an answer", "leave", ...crashes.map((point) => `crash ${point}`)],
  ...["Alpha", "Beta", "service", "plan"].map((from) => `told by ${from}`),
  ...(continuity === "timeline" ? ["absorb"] : ["compaction", "skip"]),
];

/** A word that a case misses, for a person to read. */
export type Missing = { word: string; what: string; run: number; laterRun: number };

const textOf = ({ prompt }: CallOptions): string => JSON.stringify(prompt);

/** The result of one life: how many cases there were, which do not hold, and what happened in it. */
export type Lived = { cases: number; missing: Missing[]; happened: Set<string> };

/** Plays one life. */
export const live = async (one: Life): Promise<Lived> => {
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
  const watched = watchInputs();
  const uninstall = installModel(
    scriptedModel(async (options) => {
      if (!options.tools?.length) return step(text("So it was."));
      vi.setSystemTime(Date.now() + 1000);
      const input = textOf(options);
      const reader = watched.taken();
      if (reader) await check(reader, options);
      inputs.push(input);
      // Without a bill, inputs count as they are estimated.
      return { ...play(input, inputs.length - 1), usage: null };
    }),
  );
  /** Words by what they are of. */
  const known = new Map<string, Omit<Missing, "word" | "laterRun">>();
  const missing: Missing[] = [];
  let cases = 0;
  const happened = new Set<string>();

  /** The alarm that follows a crash. */
  const watchdog = async (): Promise<void> => {
    vi.setSystemTime(Date.now() + watchdogMs + 1);
    await runDurableObjectAlarm(agentStub(analyst)).catch(() => false);
  };
  let crashed = false;
  const counted = async (statuses: string) => {
    const query = `SELECT count(*) AS runs, total(status IN (${statuses})) AS open FROM runs`;
    const all = await runInDurableObject(agentStub(analyst), (_, { storage }) => storage.sql.exec(query).one());
    return { runs: Number(all.runs), open: Number(all.open) };
  };
  /** Resolves once so many runs have ended. */
  const settled = async (runs: number, mayWait = false): Promise<void> => {
    await vi.waitFor(
      async () => {
        const all = await counted(mayWait ? "'running'" : "'running', 'waiting_reply'");
        if (all.runs >= runs && all.open === 0) return;
        if (crashed) await watchdog();
        throw new Error(`${all.runs} of ${runs} runs, ${all.open} open`);
      },
      { timeout: 10_000, interval: 5 },
    );
  };

  let turnNumber = 0;
  /** Holds an input to all words from before it. */
  const check = async (reader: Reader, options: CallOptions): Promise<void> => {
    cases += 1;
    if (textOf(options).includes("EARLIER CYCLES")) happened.add("compaction");
    for (const word of await unreachable(reader, options, known.keys())) {
      missing.push({ word, what: "", run: 0, ...known.get(word), laterRun: turnNumber });
    }
  };

  /** How many runs there are so far. */
  let runs = 0;
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
    happened.add("absorb");
    ({ runs } = await counted("''"));
  };

  try {
    vi.setSystemTime(Date.now());
    for (const [index, each] of one.turns.entries()) {
      turnNumber = index;
      vi.setSystemTime(Date.now() + 60_000);
      const told = mint();
      // A small input cuts what a tool returns to its beginning.
      const end = one.maxTokens > smallInput ? mint() : told;
      const hasLeft = index >= one.leavesAt;
      if (index === one.leavesAt) {
        unwrap(await spaces.Beta.stub().removeMember({ kind: "key", workspaceId, keyId: "key" }, analyst.id));
        await toldAll(spaces.Beta.id);
        happened.add("leave");
      }
      const here = each.from === "Beta" && !hasLeft ? "Beta" : "Alpha";
      const there = here === "Alpha" && !hasLeft ? "Beta" : "Alpha";
      const isSkipped = each.ending === "skip" && one.continuity === "consciousness" && each.deeds.length === 0;
      const toDo = each.deeds.map((deed) => {
        const word = mint();
        return {
          word,
          what: deed as string,
          doing: step(...deeds[deed](word, { here: places[here], there: places[there] })),
        };
      });
      const asks = each.more === "ask" && one.messaging === "threaded";
      if (asks) {
        const word = mint();
        toDo.push({ word, what: "ask", doing: step(...speak(places[here], `@Sara ${word}?`, { wait: true })) });
      }
      const said = each.ending === "silent" && toDo.length > 0 ? "" : "Done.";
      const ending = isSkipped ? step(call("skip", {})) : step(text(said));
      // A run that was cut goes on with what it has not done yet.
      play = (input) => toDo.find(({ word }) => !input.includes(word))?.doing ?? ending;
      inputs = [];
      crashed = false;
      if (each.crash) void armFault(each.crash).then(() => (crashed = true));
      if (each.from === "service") {
        unwrap(await agent().trigger(workspaceId, { serviceName: "crm", payload: { about: told, end } }));
      } else if (each.from === "plan") {
        const at = new Date(Date.now() + 60_000).toISOString();
        const plan = { name: "Due", instruction: `${told} ${end}`, scheduledAt: at };
        unwrap(await agent().putPlan(workspaceId, `p${index}`, plan));
        vi.setSystemTime(Date.now() + 61_000);
        await runDurableObjectAlarm(agentStub(analyst)).catch(() => false);
      } else await spaces[here].post(husam, `${told} ${filler} ${end}`);
      await settled(runs + 1, asks);
      disarmFaults();
      for (const word of [told, end]) know(word, `told by ${each.from}`);
      for (const { word, what } of toDo) know(word, what);
      if (isSkipped) happened.add("skip");
      if (crashed) happened.add(`crash ${each.crash}`);
      if (asks) {
        const answer = mint();
        await spaces[here].post(sara, answer);
        await settled(one.continuity === "timeline" ? runs + 1 : runs + 2);
        know(answer, "an answer");
      }
      ({ runs } = await counted("''"));
      if (each.more === "absorb" && one.continuity === "timeline") await absorb();
    }
    for (const { what } of known.values()) happened.add(what);
    return { cases, missing, happened };
  } finally {
    disarmFaults();
    uninstall();
    watched.stop();
    vi.useRealTimers();
    await agent()
      .remove(workspaceId)
      .catch(() => undefined);
  }
};
