import fc from "fast-check";
import type { ClientFrame } from "../../src/protocol/events.ts";
import { broken, hostileJson, hostileText, type Json, mutated } from "./hostile.ts";

/** What a client may send over its socket, from valid frames to nonsense. Ids are marks of a stage. */
export type FuzzedFrame = { data: string; binary: boolean };

const messageMark = fc.constantFrom("@msg0@", "@msg1@", "@otherMsg@", "@run0@", "@never@", "msg_x");
const callMark = fc.constantFrom("@asked0@", "@asked0@", "@tc0@", "@approval0@", "@msg0@", "tc_x");
const text = fc.oneof(fc.constantFrom("Hello", "@Sara, hello", "**x**", "a".repeat(33_000)), hostileText);
const clientKey = fc.oneof(
  fc.nat().map((number) => `key-${number}`),
  fc.constantFrom("again", "again", "", "x".repeat(129), "__proto__"),
);

/** Every type of frame that a client may send: a new one fails the types. */
const validOf: Record<ClientFrame["type"], fc.Arbitrary<Json>> = {
  "message.send": fc.record(
    { type: fc.constant("message.send"), text, clientKey, replyTo: messageMark, expectsReply: fc.boolean() },
    { requiredKeys: ["type", "text", "clientKey"], noNullPrototype: true },
  ),
  "message.edit": fc.record(
    { type: fc.constant("message.edit"), messageId: messageMark, text },
    { noNullPrototype: true },
  ),
  "message.delete": fc.record(
    { type: fc.constant("message.delete"), messageId: messageMark },
    { noNullPrototype: true },
  ),
  read: fc.record({ type: fc.constant("read"), messageId: messageMark }, { noNullPrototype: true }),
  typing: fc.constant<Json>({ type: "typing" }),
  "tool.result": fc.record(
    { type: fc.constant("tool.result"), toolCallId: callMark, result: hostileJson },
    { noNullPrototype: true },
  ),
};

const valid: fc.Arbitrary<Json> = fc.oneof(...Object.values(validOf));

const data = fc.oneof(
  { weight: 6, arbitrary: valid.map((value) => JSON.stringify(value)) },
  { weight: 6, arbitrary: mutated(valid).map((value) => JSON.stringify(value)) },
  { weight: 2, arbitrary: broken(valid) },
  { weight: 2, arbitrary: hostileJson.map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: hostileText },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "ping",
      "pong",
      "[".repeat(100_000),
      `{"type":"message.send","clientKey":"k","text":"${"\\u0041".repeat(40_000)}"}`,
      "x".repeat(256 * 1024 + 1),
      '{"type":"typing","type":"read"}',
      '{"type":"constructor"}',
      '{"type":"__proto__"}',
    ),
  },
);

export const frame: fc.Arbitrary<FuzzedFrame> = fc.record({
  data,
  binary: fc.oneof({ weight: 20, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
});
