import { setTimeout as wait } from "node:timers/promises";
import { ColloquyError, createClient, type SpaceState } from "../../src/client/index.ts";
import type { Person as Signed } from "../e2e/support/house.ts";
import { answerIn } from "./commands.ts";
import { type Wire, wireOf } from "./wire.ts";

/** A message that a person sent; times in milliseconds of `performance.now()`. */
export type Sent = { text: string; at: number; acknowledgedAt?: number; refused?: string };

/** A person in a space, with the SDK, who never leaves however often the server is gone. */
export type Person = {
  signed: Signed;
  sent: Sent[];
  /** The ids of the messages in the order in which they came to this person. */
  saw: string[];
  /** When the answer to a command was seen, by the command's id. */
  answeredAt: Map<string, number>;
  wire: Wire;
  state(): SpaceState;
  /** Resolves when the space is open and its past is loaded. */
  ready: Promise<void>;
  /** `http` sends by request and again until it is answered; `socket` leaves that to the SDK. */
  say(text: string, by: "socket" | "http"): Promise<void>;
  close(): void;
};

const timings = { minDelayMs: 100, maxDelayMs: 1000 };

export const joinAs = (url: string, spaceId: string, signed: Signed): Person => {
  const { id, token } = signed;
  const client = createClient({ baseUrl: url, token });
  const live = client.openSpace(spaceId, { timings });
  const sent: Sent[] = [];
  const saw: string[] = [];
  const answeredAt = new Map<string, number>();
  const isReady = Promise.withResolvers<void>();
  let seenTo = 0;
  let over = false;
  const look = (): void => {
    const { messages, history, connection, outgoing } = live.getSnapshot();
    if (history.status === "ready" && connection.status === "open") isReady.resolve();
    for (const { id: messageId, seq, sender, text = "" } of messages.filter((message) => message.seq > seenTo)) {
      saw.push(messageId);
      seenTo = seq;
      if (sender.id === id) acknowledge(text);
      const answer = answerIn(text);
      if (answer) answeredAt.set(answer.id, performance.now());
    }
    for (const { text, status } of outgoing) {
      const one = sent.find((each) => each.text === text);
      if (one && status.kind === "failed") one.refused = status.code;
    }
  };
  const acknowledge = (text: string): void => {
    const one = sent.find((each) => each.text === text);
    if (one) one.acknowledgedAt ??= performance.now();
  };
  live.subscribe(look);
  return {
    signed,
    sent,
    saw,
    answeredAt,
    wire: wireOf(token),
    state: () => live.getSnapshot(),
    ready: isReady.promise,
    say: async (text, by) => {
      const one: Sent = { text, at: performance.now() };
      sent.push(one);
      // Half of what is said answers the newest message.
      const newest = live.getSnapshot().messages.at(-1);
      let replyTo = newest?.kind === "text" && newest.deleted === undefined ? newest.id : undefined;
      if (by === "socket") return void live.send(text);
      while (!over && one.acknowledgedAt === undefined) {
        try {
          await client.postMessage(spaceId, { text, clientKey: text, ...(replyTo && { replyTo }) });
          acknowledge(text);
        } catch (error) {
          if (!(error instanceof ColloquyError)) throw error;
          // What it replies to was deleted meanwhile: it is said without, as the refusal asks.
          if (error.code === "gone" && replyTo !== undefined) {
            replyTo = undefined;
            continue;
          }
          if (error.code !== "unavailable") {
            one.refused = error.code;
            return;
          }
          await wait(100);
        }
      }
    },
    close: () => {
      over = true;
      live.close();
    },
  };
};
