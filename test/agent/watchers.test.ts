import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watcherAnswerMs, watcherProofMs } from "../../src/agent/bounds.ts";
import { Watchers } from "../../src/agent/watchers.ts";
import { closeCodes } from "../../src/protocol/events.ts";
import { systemClock } from "../../src/shared/clock.ts";
import { createIds } from "../../src/shared/ids.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ids = createIds("a secret of thirty-two characters");

/** An agent with a socket for each of these keys, whose workspace answers for those in `known` only. */
const watched = (keys: string[], known: string[]) => {
  const provenAt = systemClock.now();
  const workspaceId = ids.mint("wsp");
  const sockets = keys.map((keyId) => {
    let attachment: unknown = { label: "notes", principal: { kind: "key", workspaceId, keyId }, provenAt, sent: 0 };
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
  const watchers = new Watchers({
    ctx: { getWebSockets: () => sockets } as never,
    env: { WORKSPACE: { getByName: () => ({ keyLives: async (id: string) => keyLives(id) }) } } as never,
    timers: { set, setNoLater: vi.fn() },
    clock: systemClock,
  });
  return { watchers, sockets, set };
};

test("[S5] [R1] who cannot be proven in time watches no more, holds up no other, and the next proof is due whatever comes", async () => {
  const [lost, found] = [ids.mint("key"), ids.mint("key")];
  const { watchers, sockets, set } = watched([lost, found], [found]);
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
