import type { ArchivalSource } from "../../protocol/archival.ts";
import type { RunRow } from "../runs.ts";
import type { RunServices } from "./run-services.ts";
import { eventsOf, isPersons } from "./utterance.ts";

/**
 * Where what a run keeps comes from: the newest message that it took in the space where it is, a person's rather than
 * an agent's; else the newest of any space; else the space alone.
 */
export const sourceOf = (services: RunServices, run: RunRow, activeSpaceId: string | null): ArchivalSource => {
  const rows = eventsOf(services, run);
  const messages = [...rows.filter((row) => !isPersons(row)), ...rows.filter(isPersons)].flatMap(({ data }) =>
    data.type === "space_message" ? [data.delivered.message] : [],
  );
  const message = messages.findLast(({ spaceId }) => spaceId === activeSpaceId) ?? messages.at(-1);
  if (message) return { spaceId: message.spaceId, messageId: message.id, authorId: message.sender.id };
  return activeSpaceId === null ? {} : { spaceId: activeSpaceId };
};
