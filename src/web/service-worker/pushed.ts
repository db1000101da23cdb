import type { Shown } from "../notifications/shown.ts";

/** What a push says, as `docs/notifications.md` has it. */
export type Pushed = (Shown & { type: "notification"; count?: number }) | { type: "cleared"; ids: string[] };

const texts = ["id", "kind", "spaceId", "messageId", "title", "body"] as const;

/** Undefined for what is no push of ours, or of a newer server. By hand: a schema library would be most of the worker. */
export const readPushed = (text: string): Pushed | undefined => {
  try {
    const given = JSON.parse(text);
    if (given?.type === "cleared" && Array.isArray(given.ids)) return given;
    if (given?.type !== "notification" || texts.some((name) => typeof given[name] !== "string")) return undefined;
    return given;
  } catch {
    return undefined;
  }
};
