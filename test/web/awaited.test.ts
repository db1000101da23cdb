import { expect, test } from "vitest";
import { initialSpaceState, type Message, reduce, type SpaceState } from "../../src/client/index.ts";
import { presence, presenceText } from "../../src/web/timeline/presence.ts";

/** The presence of an agent that is not at work: it waits for somebody, or tries again soon. */
const member = (name: string, type: "human" | "agent") => ({
  id: `ent_${name}`,
  name,
  type,
  joinedAt: "2026-11-22T08:00:00.000Z",
});
const [envoy, sara, husam] = [member("Envoy", "agent"), member("Sara", "human"), member("Husam", "human")];

const message = (seq: number, sender: typeof envoy, more: Partial<Message> = {}): Message => ({
  id: `msg_${seq}`,
  seq,
  spaceId: "spc_A",
  kind: "text",
  sender: { id: sender.id, name: sender.name, type: sender.type },
  text: "words",
  createdAt: "2026-11-22T09:00:00.000Z",
  ...more,
});

const stateOf = (...messages: Message[]): SpaceState => ({
  ...initialSpaceState("spc_A"),
  members: [envoy, sara, husam],
  messages,
});

const shown = (state: SpaceState): string => presenceText(presence(state));

test("an agent waits for the members it asked until they have spoken", () => {
  const asked = message(1, envoy, { expectsReply: true, mentions: [sara.id, husam.id] });
  expect(shown(stateOf(asked))).toBe("Envoy is waiting for Sara and Husam");
  expect(shown(stateOf(asked, message(2, husam)))).toBe("Envoy is waiting for Sara");
  expect(shown(stateOf(asked, message(2, husam), message(3, sara)))).toBe("");
  expect(shown({ ...stateOf(asked, message(2, husam)), members: [envoy, husam] })).toBe("");
});

test("an agent whose model is away tries again until it is back or its run has ended", () => {
  const at = { entityId: envoy.id, runId: "run_1" };
  const rests = (reason: string) => reduce(stateOf(), { type: "agent.inactive", ...at, reason }, 0);
  expect(shown(rests("model_unavailable"))).toBe("Envoy is trying again soon");
  expect(shown(reduce(rests("model_unavailable"), { type: "agent.active", ...at }, 0))).toBe("Envoy is thinking");
  expect(shown(reduce(rests("model_unavailable"), { type: "run.canceled", ...at }, 0))).toBe("");
  for (const reason of ["waiting_reply", "interrupted", "model_rejected"]) expect(shown(rests(reason))).toBe("");
});
