import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watcherAnswerMs, watcherProofMs } from "../../../src/agent/bounds.ts";
import { Watchers } from "../../../src/agent/memory/blocks/watchers.ts";
import { closeCodes } from "../../../src/protocol/events.ts";
import { systemClock } from "../../../src/shared/clock.ts";
import { createIds } from "../../../src/shared/ids.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ids = createIds("a secret of thirty-two characters");

type Watching = { kind: "key"; keyId: string } | { kind: "entity"; entityId: string; admin: true; expiresAt: number };
const byKey = (keyId: string): Watching => ({ kind: "key", keyId });

/** An agent with a socket for each of these, whose workspace answers for admins, and for those keys that are in `known`. */
const watched = (principals: Watching[], known: string[] = []) => {
  const provenAt = systemClock.now();
  const workspaceId = ids.mint("wsp");
  const sockets = principals.map((principal) => {
    let attachment: unknown = { label: "notes", principal: { ...principal, workspaceId }, provenAt, sent: 0 };
    return {
      deserializeAttachment: () => attachment,
      serializeAttachment: (next: unknown) => {
        attachment = next;
      },
      close: vi.fn(),
    };
  });
  const set = vi.fn();
  const keyLives = (keyId: string) =>
    known.includes(keyId) ? { ok: true, value: true } : new Promise(() => undefined);
  const workspace = {
    keyLives: async (id: string) => keyLives(id),
    standing: async () => ({ ok: true, value: { role: "admin" } }),
  };
  const watchers = new Watchers({
    ctx: { getWebSockets: () => sockets } as never,
    env: { WORKSPACE: { getByName: () => workspace } } as never,
    timers: { set, setNoLater: vi.fn() },
    clock: systemClock,
  });
  return { watchers, sockets, set };
};

test("[S5] [R1] who cannot be proven in time watches no more, holds up no other, and the next proof is due whatever comes", async () => {
  const [lost, found] = [ids.mint("key"), ids.mint("key")];
  const { watchers, sockets, set } = watched([byKey(lost), byKey(found)], [found]);
  const [silent, known] = sockets;
  for (let proofs = 1; proofs <= 2; proofs += 1) {
    await vi.advanceTimersByTimeAsync(watcherProofMs);
    expect(silent?.close).not.toHaveBeenCalled();
    const proven = watchers.prove();
    expect(set).toHaveBeenCalledTimes(proofs);
    await vi.advanceTimersByTimeAsync(watcherAnswerMs);
    await proven;
  }
  expect(silent?.close).toHaveBeenCalledWith(closeCodes.tokenExpired, expect.any(String));
  expect(known?.close).not.toHaveBeenCalled();
});

test("[S5] the next proof is due when a token expires, where that is sooner than the others are to be proven", async () => {
  const expiresAt = systemClock.now() + watcherProofMs + 10_000;
  const { watchers, sockets, set } = watched([
    { kind: "entity", entityId: ids.mint("ent"), admin: true, expiresAt },
    { kind: "entity", entityId: ids.mint("ent"), admin: true, expiresAt: expiresAt + watcherProofMs },
  ]);
  for (const dueAt of [expiresAt, expiresAt + watcherProofMs]) {
    await vi.advanceTimersByTimeAsync(set.mock.lastCall ? 10_000 : watcherProofMs);
    await watchers.prove();
    expect(set).toHaveBeenLastCalledWith("watchers", dueAt);
  }
  expect(sockets.map(({ close }) => close.mock.calls.length)).toEqual([1, 0]);
});
