import type { ModelMessage } from "ai";
import { compose } from "../../src/agent/context/compose.ts";
import type { Cycle } from "../../src/agent/context/consciousness/compaction.ts";
import { compact } from "../../src/agent/context/consciousness/compaction.ts";
import type { ConsciousnessSnapshot, Window } from "../../src/agent/context/consciousness/compose-consciousness.ts";
import { renderInboxMessage } from "../../src/agent/context/consciousness/inbox-message.ts";
import { toldState } from "../../src/agent/context/consciousness/state.ts";
import { renderInstructions } from "../../src/agent/context/instructions.ts";
import { inputBudget } from "../../src/agent/context/limits.ts";
import type { Section } from "../../src/agent/context/sections.ts";
import type { TimelineSnapshot } from "../../src/agent/context/timeline/compose-timeline.ts";
import type { HistoryEntry } from "../../src/agent/context/timeline/history.ts";
import type { InboxData, ToldState } from "../../src/agent/records.ts";
import { partsOf, type Turn } from "./script.ts";

/** A model's input, and whether it is the first after a compaction. */
export type Input = {
  run: number;
  instructions: string;
  messages: ModelMessage[];
  sections: Section[];
  fresh: boolean;
};

const called = (callId: string, toolName: string, input: unknown): ModelMessage[] => [
  { role: "assistant", content: [{ type: "tool-call", toolCallId: callId, toolName, input }] },
  {
    role: "tool",
    content: [{ type: "tool-result", toolCallId: callId, toolName, output: { type: "json", value: { ok: true } } }],
  },
];

const spoken = ({ answered }: Turn): ModelMessage[] =>
  called(`call_${answered.id}`, "send_message", { text: answered.text ?? "" });

const eventOf = ({ asked, space }: Turn): InboxData => ({
  type: "space_message",
  spaceName: space.name,
  delivered: { message: asked, root: { id: asked.id, kind: "person" }, triggerSource: "every_message" },
});

/** The snapshot of each of a timeline agent's runs, and the model messages of its first step, in which it answers. */
export const timelineSnapshots = (
  turns: Turn[],
): { run: number; snapshot: TimelineSnapshot; answer: ModelMessage[] }[] => {
  const parts = partsOf("timeline");
  return turns.map((turn, run) => {
    const space = { id: turn.space.id, name: turn.space.name };
    const seen = turn.history.map((message): HistoryEntry => ({ kind: "message", message, seen: true }));
    const entries: HistoryEntry[] = [...seen, { kind: "message", message: turn.asked, seen: false }];
    const snapshot: TimelineSnapshot = {
      continuity: "timeline",
      ...parts,
      now: turn.now,
      state: turn.state,
      histories: [{ space, entries: entries.slice(-parts.config.context.historyMessages), total: entries.length }],
      past: { runs: [], earlier: 0 },
      activeRuns: [
        {
          runId: `run_${String(run).padStart(26, "0")}`,
          status: "running",
          isThis: true,
          begunBy: {
            type: "space_message",
            senderName: turn.asked.sender.name,
            spaceName: space.name,
            text: turn.asked.text ?? "",
          },
        },
      ],
      trigger: eventOf(turn),
      activeSpace: { ...space, why: "trigger" },
      resume: null,
      answers: [],
      takenOver: [],
    };
    return { run, snapshot, answer: spoken(turn) };
  });
};

const compactionTokens = 20_000;

/** Each step of a consciousness that lives through the turns, and compacts when its input passes its limit. */
export const consciousnessSteps = (
  turns: Turn[],
): { run: number; snapshot: ConsciousnessSnapshot; fresh: boolean }[] => {
  const parts = partsOf("consciousness", { maxTokens: compactionTokens });
  const { config, limits } = parts;
  const { minRecentCycles, compaction } = config.context;
  const budget = inputBudget(parts);
  let window: Window = { instructions: renderInstructions(turns[0]?.state.agentId ?? "", config), summary: null };
  let past: Cycle[] = [];
  let told: ToldState | null = null;
  let active: Turn["space"] | null = null;
  let fresh = true;
  const taken: ReturnType<typeof consciousnessSteps> = [];
  for (const [run, turn] of turns.entries()) {
    const now = toldState(turn.state, limits.memoryTokens);
    const text = renderInboxMessage({
      now: turn.now,
      events: [eventOf(turn)],
      silent: { lines: [], omitted: 0 },
      leftToHistory: [],
      told: now,
      toldBefore: told,
      activeSpace: active,
    });
    const steps: ModelMessage[][] = [
      [{ role: "user", content: text }],
      called(`call_enter_${run}`, "enter_space", { spaceId: turn.space.id }),
      spoken(turn),
    ];
    let own: ModelMessage[] = [];
    let tokens = 0;
    for (const step of steps) {
      own = [...own, ...step];
      const messages = own.map((message) => ({ message }));
      const snapshot: ConsciousnessSnapshot = { ...parts, continuity: "consciousness", window, past, own: messages };
      const composed = compose(snapshot);
      if (composed.firstCycle > 0) throw new Error("a cycle was left out that no compaction took");
      taken.push({ run, snapshot, fresh });
      tokens = composed.tokens;
      fresh = false;
    }
    told = now;
    active = turn.space;
    const last: ModelMessage = {
      role: "assistant",
      content: `Answered ${turn.asked.sender.name} in ${turn.space.name}.`,
    };
    past = [...past, { runId: `run_${run}`, messages: [...own, last] }];
    if (tokens <= budget * compactAt) continue;
    const made = compact(past, window.summary, {
      strategy: compaction.strategy,
      keepRecent: minRecentCycles,
      maxTokens: budget,
    });
    if (!made) continue;
    window = { ...window, summary: made.summary };
    past = past.slice(made.keptFrom);
    told = null;
    fresh = true;
  }
  return taken;
};

/** Share of the budget from which on a compaction is due, as after a run of the product. */
const compactAt = 0.8;
