import { expect, test } from "vitest";
import { createIds } from "../../src/shared/ids.ts";
import { maxChannels } from "../../src/space/bounds.ts";
import { readChannel } from "../../src/space/streams/channel.ts";
import { LiveStreams } from "../../src/space/streams/live-streams.ts";

const ids = createIds("a secret of at least thirty-two chars");
const workspaceId = ids.mint("wsp");

test("[B3] one channel too many is refused by the bound's name, and its writer does not hang", async () => {
  const live = new LiveStreams({ now: () => 0 }, () => undefined);
  const agentId = ids.mint("ent");
  const open = () => ({ workspaceId, agentId, runId: ids.mintOwned("run", agentId) });
  const spoken = Array.from({ length: maxChannels }, open);
  for (const one of spoken) live.open(one, () => undefined);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const refused = await readChannel(live, open(), readable, () => undefined);
  expect(refused).toMatchObject({
    ok: false,
    problem: { code: "limit_reached", detail: expect.stringContaining("maxChannels") },
  });
  await expect(writable.getWriter().closed).rejects.toBeUndefined();
  const [again] = spoken;
  if (again) expect(live.open(again, () => undefined).stopped).toBeUndefined();
});

test("who comes later is told which agents wait to try again, until they run or are stopped", () => {
  const live = new LiveStreams({ now: () => 0 }, () => undefined);
  const agentId = ids.mint("ent");
  const open = { workspaceId, agentId, runId: ids.mintOwned("run", agentId) };
  const speak = (reason?: string) => {
    const channel = live.open(open, () => undefined);
    live.receive(channel, { type: "active" });
    live.receive(channel, { type: "end", ...(reason && { reason }) });
  };
  const waits = [{ entityId: agentId, runId: open.runId, reason: "unavailable" }];
  speak("unavailable");
  expect(live.waiting()).toEqual(waits);
  speak();
  expect(live.waiting()).toEqual([]);
  // Such an error does not pass by itself, and a cut run goes on at once.
  for (const reason of ["forbidden", "interrupted"]) speak(reason);
  expect(live.waiting()).toEqual([]);
  speak("unavailable");
  live.stopAgent(agentId, "gone", "It left");
  expect(live.waiting()).toEqual([]);
});
