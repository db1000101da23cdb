import type { ModelPrompt } from "../../src/models/language-model.ts";
import { decide } from "../../src/rehearsal/decide.ts";
import { parsePrompt } from "../../src/rehearsal/parse-prompt.ts";
import type { ToolView } from "../../src/rehearsal/tool-view.ts";
import type { ToolCall } from "../../src/rehearsal/turn.ts";

type Output = Parameters<typeof JSON.stringify>[0];

/** One living agent on paper: its cycles are composed as `agent/context` composes them, its tools answer from data. */
export type Stage = {
  name?: string;
  role?: string;
  spaces?: { id: string; name: string; members: [name: string, kind: string][] }[];
  memories?: Record<string, string>;
  goals?: { id: string; description: string; status: string }[];
  activeSpaceId?: string;
  /** What `read_messages` finds, oldest first. */
  history?: { senderName: string; senderType: string; content: string }[];
  /** Tools that answer an error. */
  broken?: string[];
  /** Those of its own, with what they answer. */
  tools?: (ToolView & { answers?: Output })[];
};

export type Said = { from: string; kind?: string; text: string; in?: string; trigger?: string };

const family = {
  id: "spc_FAMILY",
  name: "Family",
  members: [
    ["Husam", "human"],
    ["Ahmad", "human"],
    ["Designer", "agent"],
  ] as [string, string][],
};

export const toolNames = new Set(
  "enter_space leave_space send_message read_messages skip set_memories get_memories delete_memories set_goals delete_goals set_plans get_plans delete_plans".split(
    " ",
  ),
);

const builtin: ToolView[] = [...toolNames].map((name) => ({ name, description: "", properties: [] }));

export const system = (stage: Stage): string =>
  [
    "IDENTITY:",
    `  name: ${JSON.stringify(stage.name ?? "Echo")}`,
    '  entityId: "ent_ECHO"',
    "",
    "INSTRUCTIONS:",
    "  - Your text output is internal reasoning, never shown to anyone. Keep it brief.",
    "",
    "YOUR ROLE:",
    `  ${stage.role ?? "You help."}`,
  ].join("\n");

const spaceById = (stage: Stage, id: string) => (stage.spaces ?? [family]).find((space) => space.id === id) ?? family;

export const eventLine = (stage: Stage, said: Said): string => {
  const space = spaceById(stage, said.in ?? family.id);
  return `  [${JSON.stringify(space.name)}, ${space.id}] ${JSON.stringify(said.from)} (${said.kind ?? "human"}, id: ent_X, msg_1): ${JSON.stringify(said.text)} [triggerSource: ${said.trigger ?? "every_message"}]`;
};

export const inbox = (stage: Stage, lines: string[]): string => {
  const orNone = (list: string[]): string[] => (list.length > 0 ? list : ["    (none)"]);
  const active = stage.activeSpaceId;
  return [
    `INBOX (${lines.length} events, 2026-02-18T15:07:00Z):`,
    ...lines,
    "STATE:",
    "  YOUR SPACES:",
    ...(stage.spaces ?? [family]).map(
      ({ id, name, members }) =>
        `    - ${JSON.stringify(name)} (id: ${id}) — ${[...members.map(([member, kind]) => `${JSON.stringify(member)} (${kind})`), "You"].join(", ")}`,
    ),
    "  GOALS:",
    ...orNone(
      (stage.goals ?? []).map(
        ({ id, description, status }) => `    - ${JSON.stringify(description)} (id: ${id}, ${status}, priority: 2)`,
      ),
    ),
    "  MEMORIES:",
    ...orNone(
      Object.entries(stage.memories ?? {}).map(
        ([key, value]) => `    - ${JSON.stringify(key)}: ${JSON.stringify(value)}`,
      ),
    ),
    active === undefined
      ? "ACTIVE SPACE: none (call enter_space to enter a space first)"
      : `ACTIVE SPACE: ${JSON.stringify(spaceById(stage, active).name)} (id: ${active})`,
    "NOW: 2026-02-18T15:07:00Z",
  ].join("\n");
};

const answerOf = (stage: Stage, call: ToolCall): Output => {
  if (stage.broken?.includes(call.toolName)) return { error: { code: "tool_failed", message: "broken" } };
  const own = stage.tools?.find(({ name }) => name === call.toolName);
  if (own) return own.answers === undefined ? call.input : own.answers;
  if (call.toolName === "enter_space") return { success: true, spaceId: call.input.spaceId, history: [] };
  if (call.toolName === "read_messages") return { messages: stage.history ?? [], total: stage.history?.length ?? 0 };
  return { success: true };
};

export type Rehearsed = {
  calls: ToolCall[];
  /** What was said, with the space that was active. */
  said: { spaceId: string | undefined; text: string }[];
  summary: string;
  prompt: ModelPrompt;
};

const mostSteps = 40;

/** Plays one cycle to its end: every step decides anew from the whole prompt. */
export const rehearseLines = (stage: Stage, lines: string[], before: ModelPrompt = []): Rehearsed => {
  const prompt: ModelPrompt = [
    { role: "system", content: system(stage) },
    ...before,
    { role: "user", content: [{ type: "text", text: inbox(stage, lines) }] },
  ];
  const result: Rehearsed = { calls: [], said: [], summary: "", prompt };
  let active = stage.activeSpaceId;
  for (let step = 0; step < mostSteps; step += 1) {
    const action = decide(parsePrompt(prompt), [...builtin, ...(stage.tools ?? [])]);
    if (action.type === "text") return { ...result, summary: action.text };
    const { call } = action;
    result.calls.push(call);
    if (call.toolName === "skip") return result;
    const output = answerOf(stage, call);
    if (call.toolName === "enter_space" && !stage.broken?.includes("enter_space")) active = String(call.input.spaceId);
    if (call.toolName === "send_message") result.said.push({ spaceId: active, text: String(call.input.text) });
    const toolCallId = `call-${step}`;
    prompt.push(
      { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName: call.toolName, input: call.input }] },
      {
        role: "tool",
        content: [
          { type: "tool-result", toolCallId, toolName: call.toolName, output: { type: "json", value: output } },
        ],
      },
    );
  }
  throw new Error("the cycle does not end");
};

export const rehearse = (stage: Stage, ...events: Said[]): Rehearsed =>
  rehearseLines(
    stage,
    events.map((said) => eventLine(stage, said)),
  );

/** What an agent answers to one person's words; undefined if it stays silent. */
export const replyTo = (text: string, stage: Stage = {}, from = "Husam"): string | undefined =>
  rehearse(stage, { from, text }).said[0]?.text;
