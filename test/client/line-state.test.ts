import { expect, test } from "vitest";
import { type LineState, reduceLine } from "../../src/client/line-state.ts";
import type { LineEvent, NeedsYou, SpaceSummary } from "../../src/protocol/line.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const summary = (spaceId: string, seq: number, minute = 0): SpaceSummary => {
  return { spaceId, name: spaceId, seq, unread: seq, mentions: 0, working: [], needsYou: 0, at: at(minute) };
};
const need = (id: string, spaceId: string): NeedsYou => {
  return { id, kind: "mention", spaceId, messageId: "msg_1", title: "Well?", at: at(0) };
};
const notification = (id: string, cursor: number): LineEvent => ({
  ...{ type: "notification", id, cursor, kind: "mention", spaceId: "one", messageId: "msg_1", title: "Ann" },
  ...{ body: "Well?", at: at(0) },
});
const you = { id: "ent_1", type: "human", name: "Ann" } as const;
const welcome = (spaces: SpaceSummary[], needsYou: NeedsYou[] = []): LineEvent => {
  return { type: "welcome", you, spaces, needsYou, cursor: 0 };
};

const after = (...events: LineEvent[]): Extract<LineState, { status: "ready" }> => {
  const state = events.reduce(reduceLine, { status: "loading" } as LineState);
  if (state.status !== "ready") throw new Error(state.status);
  return state;
};
const ids = ({ spaces }: { spaces: readonly SpaceSummary[] }) => spaces.map(({ spaceId, seq }) => `${spaceId} ${seq}`);

test("[I1] spaces come by their newest message, and an older telling changes nothing", () => {
  const told = (space: SpaceSummary): LineEvent => ({ type: "space.summary", ...space });
  const begun = [welcome([summary("one", 3, 1), summary("two", 2, 2)]), told(summary("one", 5, 3))];
  expect(ids(after(...begun))).toEqual(["one 5", "two 2"]);
  expect(ids(after(...begun, told(summary("one", 4, 9))))).toEqual(["one 5", "two 2"]);
  expect(ids(after(...begun, told(summary("new", 1, 2))))).toEqual(["one 5", "new 1", "two 2"]);
});

test("[I4] a space that was left takes with it what it needs of the person", () => {
  const state = after(
    welcome([summary("one", 1), summary("two", 1)], [need("a", "one")]),
    { type: "needs_you", item: need("b", "two") },
    { type: "space.left", spaceId: "one" },
  );
  expect([ids(state), state.needsYou.map(({ id }) => id)]).toEqual([["two 1"], ["b"]]);
  expect(reduceLine(state, { type: "needs_you.done", id: "b" })).toMatchObject({ needsYou: [] });
});

test("[I5] a notification told again is one, and a new welcome forgets those that were read", () => {
  const begun = [welcome([]), notification("a", 1), notification("b", 2), notification("a", 1)];
  expect(after(...begun).notifications.map(({ id }) => id)).toEqual(["b", "a"]);
  const cleared = after(...begun, { type: "notification.cleared", ids: ["b", "c"] });
  expect(cleared.notifications.map(({ id }) => id)).toEqual(["a"]);
  expect(after(...begun, welcome([]), notification("b", 2)).notifications).toHaveLength(1);
});
