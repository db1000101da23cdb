import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { closeCodes } from "../../src/protocol/events.ts";
import { neverEnds, type Principal } from "../../src/protocol/principal.ts";
import { systemClock } from "../../src/shared/clock.ts";
import { createIds } from "../../src/shared/ids.ts";
import { closeBack, createAuthenticatedSockets } from "../../src/sockets/authenticated-sockets.ts";

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", { OPEN: 1 });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const ids = createIds("a secret of thirty-two characters");
const workspaceId = ids.mint("wsp");
const [proofMs, proofLeadMs, proofAnswerMs] = [90_000, 45_000, 10_000];

const byKey = (keyId = ids.mint("key")): Principal => ({ kind: "key", workspaceId, keyId });
const byToken = (lastsMs: number): Principal => {
  return { kind: "entity", workspaceId, entityId: ids.mint("ent"), admin: false, expiresAt: Date.now() + lastsMs };
};

const fakeSocket = () => {
  let attachment: unknown;
  return {
    readyState: 1,
    send: vi.fn<(text: string) => void>(),
    close: vi.fn<(code?: number, reason?: string) => void>(),
    serializeAttachment: (next: unknown) => {
      attachment = structuredClone(next);
    },
    deserializeAttachment: () => attachment,
  };
};
type Fake = ReturnType<typeof fakeSocket>;

const stage = ({ isTold = false } = {}) => {
  const accepted: Fake[] = [];
  const due: { at: number | undefined } = { at: undefined };
  const answers = new Map<string, () => Promise<boolean>>();
  const background: Promise<unknown>[] = [];
  const nameOf = (principal: Principal): string => (principal.kind === "key" ? principal.keyId : principal.entityId);
  const prove = vi.fn((principal: Principal) => answers.get(nameOf(principal))?.() ?? Promise.resolve(true));
  /** The object comes up: at first, or again after a sleep. */
  const open = () =>
    createAuthenticatedSockets({
      ctx: {
        acceptWebSocket: (socket: never) => void accepted.push(socket),
        getWebSockets: () => accepted as never,
        waitUntil: (work) => void background.push(work),
        id: "an object",
      },
      timers: {
        set: (_, at) => {
          due.at = at;
        },
        setNoLater: (_, at) => {
          due.at = Math.min(due.at ?? at, at);
        },
      },
      clock: systemClock,
      timer: "sockets",
      data: z.object({ label: z.string() }),
      ...{ proofMs, proofLeadMs, proofAnswerMs },
      isTold: () => isTold,
      proofName: ({ principal }) => nameOf(principal),
      prove: async ({ principal }) => ((await prove(principal)) ? neverEnds : 0),
    });
  const sockets = open();
  const accept = (principal: Principal): Fake => {
    const socket = fakeSocket();
    sockets.accept(socket as never, principal, { label: "notes" });
    return socket;
  };
  /** Lets time pass until the timer is due, and has it go off. */
  const alarm = async (held = sockets): Promise<void> => {
    while ((due.at ?? 0) > Date.now()) await vi.advanceTimersByTimeAsync(1000);
    due.at = undefined;
    held.onTimer();
    await vi.advanceTimersByTimeAsync(0);
  };
  return { sockets, open, accept, answers, prove, due, alarm };
};

test("[S5] a socket closes when its token expires, each at its own time, and no other with it", async () => {
  const { accept, alarm } = stage();
  const [soon, later] = [accept(byToken(10_000)), accept(byToken(20_000))];
  await alarm();
  expect([soon.close.mock.calls.length, later.close.mock.calls.length]).toEqual([1, 0]);
  expect(soon.close).toHaveBeenCalledWith(closeCodes.tokenExpired, expect.any(String));
  await alarm();
  expect(later.close).toHaveBeenCalledTimes(1);
});

test("[S5] a token that has expired already opens no socket", () => {
  const { sockets, accept } = stage();
  expect(() => accept(byToken(0))).toThrow("expired");
  expect(sockets.size).toBe(0);
});

test("[S5] rights are proven before the last proof runs out, once for all sockets of a name", async () => {
  const { accept, alarm, prove } = stage();
  const [key, begunAt] = [byKey(), Date.now()];
  const pair = [accept(key), accept(key)];
  await alarm();
  expect(Date.now() - begunAt).toBe(proofMs - proofLeadMs);
  for (let proofs = 0; proofs < 3; proofs += 1) await alarm();
  expect(prove).toHaveBeenCalledTimes(4);
  for (const { close } of pair) expect(close).not.toHaveBeenCalled();
});

test("[C14] [S5] where the end is told, one proof is enough, asked for after the socket opened", async () => {
  const { accept, alarm, answers, prove } = stage({ isTold: true });
  const answer = Promise.withResolvers<boolean>();
  const key = ids.mint("key");
  answers.set(key, () => answer.promise);
  const early = accept(byKey(key));
  await alarm();
  // It is opened before the answer comes and after it was asked for: what ended in between, it was not told.
  const late = accept(byKey(key));
  answer.resolve(true);
  await vi.advanceTimersByTimeAsync(0);
  answers.set(key, async () => false);
  await alarm();
  expect([early.close.mock.calls.length, late.close.mock.calls.length]).toEqual([0, 1]);
  expect(prove).toHaveBeenCalledTimes(2);
});

test("[L7] a proof that was asked for before an end was told keeps no socket", async () => {
  const { sockets, accept, alarm, answers } = stage({ isTold: true });
  const key = ids.mint("key");
  const [early, late] = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()];
  const asked = [early.promise, late.promise];
  answers.set(key, () => asked.shift() ?? Promise.resolve(false));
  const socket = accept(byKey(key));
  await alarm();
  sockets.proveAgain(key);
  early.resolve(true);
  await vi.advanceTimersByTimeAsync(0);
  late.reject(new Error("out of reach"));
  await vi.advanceTimersByTimeAsync(0);
  await alarm();
  expect(socket.close).toHaveBeenCalledWith(closeCodes.tokenExpired, expect.any(String));
});

test("[L7] a socket that was let in before an end and comes after it is proven at once", async () => {
  const { sockets, accept, answers, prove } = stage({ isTold: true });
  const [key, other] = [ids.mint("key"), ids.mint("key")];
  answers.set(key, async () => false);
  const provenAt = Date.now();
  await vi.advanceTimersByTimeAsync(100);
  sockets.proveAgain(key);
  await vi.advanceTimersByTimeAsync(100);
  const [late, fresh] = [accept({ ...byKey(key), provenAt }), accept({ ...byKey(other), provenAt })];
  await vi.advanceTimersByTimeAsync(0);
  expect([late.close.mock.calls.length, fresh.close.mock.calls.length]).toEqual([1, 0]);
  expect(prove).toHaveBeenCalledTimes(1);
});

test("[S5] sockets whose rights are denied close at once, those of others stay", async () => {
  const { sockets, accept, alarm, answers } = stage();
  const [revoked, living] = [ids.mint("key"), ids.mint("key")];
  answers.set(revoked, async () => false);
  const [gone, kept] = [accept(byKey(revoked)), accept(byKey(living))];
  await alarm();
  expect(gone.close).toHaveBeenCalledWith(closeCodes.tokenExpired, expect.any(String));
  expect([kept.close.mock.calls.length, sockets.size]).toEqual([0, 1]);
});

test("[S5] [R1] a socket whose rights are not proven in two tries closes, and holds up no other", async () => {
  const { accept, alarm, answers } = stage();
  const [lost, found] = [ids.mint("key"), ids.mint("key")];
  const unanswered = vi.fn(() => new Promise<boolean>(() => undefined));
  answers.set(lost, unanswered);
  const [silent, known] = [accept(byKey(lost)), accept(byKey(found))];
  const begunAt = Date.now();
  while (silent.close.mock.calls.length === 0) await alarm();
  expect([Date.now() - begunAt, unanswered.mock.calls.length]).toEqual([proofMs, 2]);
  expect(known.close).not.toHaveBeenCalled();
});

test("[R1] the timer is set before a proof is answered, so that a crash is followed by another", async () => {
  const { accept, alarm, answers, due } = stage();
  const key = ids.mint("key");
  answers.set(key, () => new Promise(() => undefined));
  accept(byKey(key));
  await alarm();
  expect(due.at).toBe(Date.now() + proofLeadMs);
});

test("[S5] after a sleep the sockets have their sessions, and close when their time is up", async () => {
  const { open, accept, alarm } = stage();
  const [socket, closed] = [accept(byToken(10_000)), accept(byToken(20_000))];
  closed.readyState = 2;
  const awake = open();
  expect([...awake.all()].map(({ data }) => data)).toEqual([{ label: "notes" }]);
  await alarm(awake);
  expect(socket.close).toHaveBeenCalledTimes(1);
});

test("a socket that was closed from here, or whose peer is gone, has no session any more", () => {
  const { sockets, accept } = stage();
  const [lost, closed, kept] = [accept(byToken(10_000)), accept(byToken(10_000)), accept(byToken(10_000))];
  lost.send.mockImplementation(() => {
    throw new Error("gone");
  });
  sockets.closeWhere(({ socket }) => (socket as unknown) === closed, closeCodes.removed, "removed");
  sockets.broadcast("hello");
  expect([...sockets.all()].map(({ socket }) => socket as unknown)).toEqual([kept]);
  expect(closed.send).not.toHaveBeenCalled();
  expect(kept.send).toHaveBeenCalledWith("hello");
});

test("a client's close is answered with its code, except those that cannot be sent", () => {
  const answered = (code: number) => {
    const socket = fakeSocket();
    closeBack(socket as never, code);
    return socket.close.mock.calls;
  };
  for (const code of [1000, 1001, 4001]) expect(answered(code)).toEqual([[code]]);
  for (const code of [999, 1004, 1005, 1006, 1015, 5000]) expect(answered(code)).toEqual([[]]);
});
