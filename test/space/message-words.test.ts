import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import { wasOf } from "../../src/space/message-words.ts";

test("[L4] what people answered a call, and what came of it, counts from the first answer", () => {
  const at = "2031-01-02T00:00:00.000Z";
  const answers = [{ entityId: "ent_1", name: "Ann", note: "the quinces", at }];
  const awaits = { kind: "answer", quorum: 1, answers, expiresAt: at };
  const toolCall = {
    id: "tc_1",
    name: "ask",
    input: { question: "Which?" },
    output: "pears",
    status: "complete",
    awaits,
  };
  const message = { id: "msg_1", kind: "tool_call", text: "asks", toolCall, createdAt: "2031-01-01T00:00:00.000Z" };
  const was = wasOf(message as unknown as Message, { routing: null });
  for (const said of ["asks", "Which?"]) expect(was).toContain(said);
  for (const said of ["the quinces", "pears", "Ann"]) expect(was).toContainEqual([said, Date.parse(at)]);
});
