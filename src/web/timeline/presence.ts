import type { SpaceState } from "../../client/index.ts";
import { awaited } from "./awaited.ts";

/** Who does what right now, most telling first. */
export type Doing = {
  entityId: string;
  name: string;
  doing: "writing" | "using a tool" | "thinking" | "typing" | "trying again soon" | `waiting for ${string}`;
};

export const nameOf = (state: Pick<SpaceState, "members">, entityId: string, fallback = "Someone"): string =>
  state.members.find((member) => member.id === entityId)?.name ?? fallback;

const speech = new Set(["send_message", "send_reply"]);

export const isSpeech = (toolName: string): boolean => speech.has(toolName);

/** One entry for each participant that is at something here. */
export const presence = (state: SpaceState): Doing[] => {
  const found = new Map<string, Doing["doing"]>();
  for (const { entityId, toolName } of state.streams)
    found.set(entityId, isSpeech(toolName) ? "writing" : "using a tool");
  for (const { entityId } of state.active) if (!found.has(entityId)) found.set(entityId, "thinking");
  for (const { entityId } of state.backingOff) if (!found.has(entityId)) found.set(entityId, "trying again soon");
  for (const message of state.messages) {
    const names = message.sender.type === "agent" ? awaited(message, state) : null;
    if (names !== null && !found.has(message.sender.id)) found.set(message.sender.id, `waiting for ${names}`);
  }
  for (const { entityId } of state.typing) found.set(entityId, "typing");
  return [...found].map(([entityId, doing]) => ({ entityId, name: nameOf(state, entityId), doing }));
};

const list = new Intl.ListFormat("en", { type: "conjunction" });

/** "Nova is writing", "Nova and Atlas are thinking · Sara is typing". */
export const presenceText = (doings: readonly Doing[]): string => {
  const kinds = [...new Set(doings.map(({ doing }) => doing))];
  return kinds
    .map((kind) => {
      const names = doings.filter(({ doing }) => doing === kind).map(({ name }) => name);
      const who = names.length > 3 ? `${names.length} participants` : list.format(names);
      return `${who} ${names.length === 1 ? "is" : "are"} ${kind}`;
    })
    .join(" · ");
};
