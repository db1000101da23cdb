import type { LogRow } from "./log.ts";

const changes = new Set<LogRow["type"]>(["member.joined", "member.left", "member.renamed", "space.updated"]);

/** Whether the event changes the space's settings or members. */
export const changesSpace = ({ type }: Pick<LogRow, "type">): boolean => changes.has(type);

/** Whether the event changes what a message says. */
export const isChange = ({ type }: Pick<LogRow, "type">): boolean =>
  type === "message.updated" || type === "message.deleted";

/** Whether people forget something by it: what a message said, or that somebody who left had failed. */
export const takesBack = (row: Pick<LogRow, "type">): boolean => isChange(row) || row.type === "member.left";
