import { expect, test } from "vitest";
import { agentRootEveryMs } from "../../../src/agent/bounds.ts";
import { ownRoot, rootOfAnswer } from "../../../src/agent/inbox/roots.ts";
import type { Root } from "../../../src/protocol/rpc.ts";

const root = (id: string, kind: Root["kind"]): Root => ({ id, kind });

test("[B1] a run's message has the root of the newest event from a person or a service", () => {
  const events = [root("older", "person"), root("service", "service"), root("newest", "person"), root("loop", "agent")];
  const wakes = new Map([
    ["newest", 6],
    ["loop", 0],
  ]);
  expect(rootOfAnswer(events, wakes)?.id).toBe("newest");
  expect(rootOfAnswer(events.slice(0, 2), wakes)?.id).toBe("service");
});

test("[B1] among roots of agents, the one that woke the agent least counts, then the oldest", () => {
  const events = [root("often", "agent"), root("once", "agent"), root("never", "agent"), root("neither", "agent")];
  const wakes = new Map([
    ["often", 5],
    ["once", 1],
  ]);
  expect(rootOfAnswer(events, wakes)?.id).toBe("never");
  expect(rootOfAnswer([], wakes)).toBeUndefined();
});

test("[B1] an agent's own recurring plans begin a root every five minutes at most", () => {
  const last = { id: "last", beganAt: 1_000_000 };
  expect(agentRootEveryMs).toBe(5 * 60_000);
  for (const passed of [0, agentRootEveryMs - 1, 1 - agentRootEveryMs]) {
    expect(ownRoot(last, "new", last.beganAt + passed)).toBe(last);
  }
  for (const passed of [agentRootEveryMs, -agentRootEveryMs]) {
    expect(ownRoot(last, "new", last.beganAt + passed).id).toBe("new");
  }
  expect(ownRoot(null, "new", 0)).toEqual({ id: "new", beganAt: 0 });
});
