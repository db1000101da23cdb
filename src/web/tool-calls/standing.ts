import type { Member, Message, SpaceState, ToolCall } from "../../client/index.ts";
import { toolTitle } from "./titles.ts";

/** Whether one person may answer a call, and if not, why; null for a call that asks nobody now. */
export type Standing = { may: true } | { may: false; why: string } | null;

const list = new Intl.ListFormat("en", { type: "disjunction" });

const namesOf = (ids: readonly string[], members: readonly Member[]): string => {
  const names = ids.flatMap((id) => members.find((member) => member.id === id)?.name ?? []);
  return names.length === 0 ? "people who are not here" : list.format(names);
};

export const standingOf = (call: ToolCall, youId: string, members: readonly Member[], now: number): Standing => {
  const { awaits, status } = call;
  if (!awaits || status !== "requires_action") return null;
  // Where enough have approved, one of them had left: who is back says so by approving again.
  const isShort = awaits.answers.length < awaits.quorum;
  if (isShort && awaits.answers.some(({ entityId }) => entityId === youId)) {
    return { may: false, why: "You have answered." };
  }
  const you = members.find(({ id }) => id === youId);
  if (you?.type !== "human") return { may: false, why: "Only people of this space answer." };
  if (awaits.approvers && !awaits.approvers.includes(youId)) {
    const verb = awaits.kind === "approval" ? "decide" : "answer";
    return { may: false, why: `Only ${namesOf(awaits.approvers, members)} can ${verb}.` };
  }
  if (Date.parse(awaits.expiresAt) <= now) return { may: false, why: "The time to answer is up." };
  return { may: true };
};

/** The loaded messages whose calls this person may answer now, oldest first. */
export const asksOf = ({ messages, members, you }: SpaceState, now: number): Message[] =>
  you === null
    ? []
    : messages.filter(({ toolCall }) => toolCall && standingOf(toolCall, you.id, members, now)?.may === true);

export type Chip = { words: string; tone: "agent" | "warning" | "accent" | "danger" | "none" };

/** Each state as a chip, and as the end of a sentence. */
const states: Record<ToolCall["status"], { chip: Chip; verb: string }> = {
  running: { chip: { words: "Running", tone: "agent" }, verb: "runs" },
  requires_action: { chip: { words: "Waiting", tone: "warning" }, verb: "waits for an answer" },
  complete: { chip: { words: "Done", tone: "accent" }, verb: "is done" },
  error: { chip: { words: "Failed", tone: "danger" }, verb: "failed" },
  expired: { chip: { words: "Expired", tone: "none" }, verb: "has expired" },
  canceled: { chip: { words: "Canceled", tone: "none" }, verb: "was canceled" },
};

/** The state of a call in a word or two, for this person. */
export const chipOf = (call: ToolCall, standing: Standing): Chip => {
  if (standing?.may) return { words: "Needs you", tone: "warning" };
  if (call.error?.code === "approval_rejected") return { words: "Rejected", tone: "danger" };
  if (call.error?.code === "outcome_unknown") return { words: "Outcome unknown", tone: "danger" };
  return states[call.status].chip;
};

/** A call in one line, for places without room for its card: "Deploy app waits for approval". */
export const callWords = ({ name, status, awaits, error }: ToolCall): string => {
  const { title } = toolTitle(name);
  if (status === "requires_action" && awaits?.kind === "approval") return `${title} waits for approval`;
  if (error?.code === "outcome_unknown") return `${title} may have been done`;
  return `${title} ${error?.code === "approval_rejected" ? "was rejected" : states[status].verb}`;
};

/** "1 of 2 approvals" for a call that needs several and that nobody has rejected; null otherwise. */
export const progressOf = ({ awaits }: ToolCall): string | null => {
  if (awaits?.kind !== "approval" || awaits.quorum < 2) return null;
  if (awaits.answers.some(({ approved }) => approved === false)) return null;
  return `${awaits.answers.filter(({ approved }) => approved).length} of ${awaits.quorum} approvals`;
};

const units = [
  { unit: "day", ms: 86_400_000 },
  { unit: "hour", ms: 3_600_000 },
  { unit: "minute", ms: 60_000 },
  { unit: "second", ms: 1000 },
] as const;

/** "in 2 hours", in the largest unit that fits at least 1.5 times; null once the time is up. */
export const timeLeft = (expiresAt: string, now: number): string | null => {
  const left = Date.parse(expiresAt) - now;
  if (left <= 0) return null;
  const { unit, ms } = units.find((one) => left >= one.ms * 1.5) ?? { unit: "second" as const, ms: 1000 };
  return new Intl.RelativeTimeFormat("en").format(Math.max(1, Math.round(left / ms)), unit);
};
