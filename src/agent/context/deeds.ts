import type { OwnWords } from "../../protocol/rpc.ts";
import type { RunTrigger } from "../../protocol/run.ts";
import { brief, briefJson, callLine, quote } from "./wording.ts";

/** A tool call of this agent, with its output if that is known. */
export type Action = { toolName: string; input: unknown; output?: unknown };

/** A call that the agent made, or words that it said in a space. Only the agent reads them. `at` is ISO 8601. */
export type Deed = { at: string; callId: string } & (
  | { kind: "action"; action: Action }
  /** `spaceName`: undefined for a space of another workspace. `waitingFor`: the names of those whose answers it asked for. */
  | { kind: "sent"; text: string; spaceName: string | undefined; messageId: string; waitingFor: string[] }
);

/** How the agent's own words came to be here that another mind of it said. */
export const ownNotes: Record<OwnWords, string> = {
  let_out: "[your own words, let out by the people of a confidential space]",
  outside: "[your own words, said from outside of this space]",
};

const shownCharacters = 2000;
const mostAwaited = 5;

const waitWords = (names: string[]): string => {
  if (names.length === 0) return "";
  const left = names.length - mostAwaited;
  return `, waiting for ${[...names.slice(0, mostAwaited).map(quote), ...(left > 0 ? [`${left} more`] : [])].join(", ")}`;
};

/** A deed on one line, the same in every section. `most`: the characters of each value in it. */
export const deedLine = (deed: Deed, most = shownCharacters): string => {
  if (deed.kind === "action") return callLine(deed.action, { most });
  const where = deed.spaceName === undefined ? "" : ` to ${quote(deed.spaceName)}`;
  return `sent ${brief(deed.text, most)}${where} (${deed.messageId})${waitWords(deed.waitingFor)}`;
};

/** The sender, plan, service or tool that a run answers, with the beginning of its words, payload or result. */
export type BegunBy = Pick<RunTrigger, "type" | "senderName" | "text"> & { spaceName?: string | undefined };

export const begunByLine = ({ type, senderName = "", spaceName, text = "" }: BegunBy, most: number): string => {
  const kind = type === "space_message" ? "" : `${type} `;
  const where = spaceName === undefined ? "" : ` in ${quote(spaceName)}`;
  const told = type === "service" || type === "tool_result" ? briefJson : brief;
  return `${kind}${quote(senderName)}${where}: ${told(text, most)}`;
};
