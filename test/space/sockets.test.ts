import { expect, test } from "vitest";
import type { EntityPrincipal } from "../../src/protocol/principal.ts";
import { maxMembers } from "../../src/protocol/space.ts";
import { createIds } from "../../src/shared/ids.ts";
import { frameWindowMs, maxMemberFrames, maxSockets, maxSocketsPerMember } from "../../src/space/bounds.ts";
import { MemberRates } from "../../src/space/sockets/member-rates.ts";
import { RateWindow } from "../../src/space/sockets/rate.ts";
import { Sockets } from "../../src/space/sockets/sockets.ts";

const ids = createIds("a secret of at least thirty-two chars");
const workspaceId = ids.mint("wsp");

const sockets = () => {
  const timers: number[] = [];
  const time = { now: 0 };
  return {
    timers,
    time,
    held: new Sockets({
      ctx: { acceptWebSocket: () => undefined, getWebSockets: () => [] },
      timers: { set: (_, at) => timers.push(at), setNoLater: (_, at) => timers.push(at) },
      clock: { now: () => time.now },
      proofs: { ask: () => undefined },
    }),
  };
};

const caller = (entityId = ids.mint("ent")): EntityPrincipal => ({
  kind: "entity",
  workspaceId,
  entityId,
  admin: false,
  expiresAt: 1000,
});

const socket = (send: WebSocket["send"] = () => undefined): WebSocket =>
  Object.assign(Object.create(null), { serializeAttachment: () => undefined, send });

test("[B3] a space holds so many sockets, a member so many of them, and says which bound was reached", () => {
  const { held } = sockets();
  const ann = caller();
  for (let index = 0; index < maxSocketsPerMember; index += 1) held.accept(socket(), ann);
  expect(() => held.accept(socket(), ann)).toThrow(
    `${maxSocketsPerMember} sockets here, which is the most (maxSocketsPerMember)`,
  );
  for (let index = maxSocketsPerMember; index < maxSockets; index += 1) {
    held.accept(socket(), caller(`${Math.floor(index / 100)}`));
  }
  expect(() => held.accept(socket(), caller())).toThrow(`${maxSockets} sockets, which is the most (maxSockets)`);
});

test("a window admits so many, and opens again when it is over", () => {
  const window = new RateWindow(2, 100);
  expect([0, 10, 20, 99].map((now) => window.admits(now))).toEqual([true, true, false, false]);
  expect([100, 150, 160].map((now) => window.admits(now))).toEqual([true, true, false]);
});

test("[B3] a window is over when the clock has gone back: nobody is shut out until it has caught up", () => {
  const window = new RateWindow(1, 10_000);
  expect([3_600_000, 3_600_001, 0, 1].map((now) => window.admits(now))).toEqual([true, false, true, false]);
});

test("that a member types is told now and then, and also when the clock has gone back", () => {
  const { held, time } = sockets();
  const heard: number[] = [];
  held.accept(
    socket(() => heard.push(time.now)),
    caller(),
  );
  for (const now of [3_600_000, 3_600_001, 0, 1]) {
    time.now = now;
    held.typing("ann");
  }
  expect(heard).toEqual([3_600_000, 0]);
});

test("a window says how long it stays shut, in whole seconds, and when it is over", () => {
  const window = new RateWindow(1, 10_000);
  window.admits(0);
  expect([0, 1, 9000, 9999].map((now) => window.waitSeconds(now))).toEqual([10, 10, 1, 1]);
  expect([9999, 10_000].map((now) => window.isOver(now))).toEqual([false, true]);
});

test("[B3] a member's window outlives its sockets, and is dropped only when it is over and there are many", () => {
  const rates = new MemberRates();
  const anns = rates.of("ann", 0);
  for (let count = 0; count < maxMemberFrames; count += 1) expect(anns.admits(0)).toBe(true);
  for (let index = 1; index < maxMembers; index += 1) rates.of(`early ${index}`, 0).admits(0);
  rates.of("one more", frameWindowMs - 1).admits(frameWindowMs - 1);
  expect(rates.size).toBe(maxMembers + 1);
  expect(rates.of("ann", frameWindowMs - 1).admits(frameWindowMs - 1)).toBe(false);
  rates.of("late", frameWindowMs);
  expect(rates.size).toBe(2);
  expect(rates.of("ann", frameWindowMs).admits(frameWindowMs)).toBe(true);
});
