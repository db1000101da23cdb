import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { deliverTimer } from "../../src/space/delivery/delivery.ts";
import { join } from "../../src/space/lifecycle.ts";
import { createLog } from "../../src/space/log/log.ts";
import { createServices } from "../../src/space/services.ts";
import { entity, house, recordReceivers } from "./fixture.ts";

beforeAll(recordReceivers);

test("what was read in a transaction that is rolled back is not remembered", async () => {
  const [ann, ben, robo] = [entity("human", "Ann"), entity("human", "Ben"), entity("agent", "Robo")];
  const home = await house([ann, ben]);
  await runInDurableObject(home.stub, (_, state) => {
    const parts = createServices(state, env);
    const known = () => ({
      robo: parts.members.find(robo.id)?.name,
      members: parts.members.all().length,

      follows: parts.subscribers.find(robo.id)?.cursor,
      anyAgent: parts.subscribers.anyAgentBut(ann.id),
      name: parts.settings.find()?.name,
      undecided: parts.decisions.pending(),
      end: parts.log.head().seq,
      newest: parts.log.after(0, 100),
    });
    const before = known();
    const failing = (): void =>
      parts.record((append) => {
        join(parts, append, robo);
        parts.settings.change({ name: "Another" });
        parts.decisions.hold(1);
        expect(known()).toMatchObject({ robo: "Robo", members: 3, anyAgent: true, name: "Another" });
        expect(known().undecided).toEqual([1]);
        throw new Error("rolled back");
      });

    expect(failing).toThrow("rolled back");
    expect(known()).toEqual(before);
    parts.record((append) => append({ type: "member.left", entityId: ben.id, name: ben.name }));
    expect(known().newest).toEqual(createLog(parts.db).after(0, 100));
    expect(before).toMatchObject({ robo: undefined, members: 2, follows: undefined, anyAgent: false });
  });
});

test("[D2] a timer of a rolled-back transaction is set by the next one, at the same time", async () => {
  const home = await house([entity("human", "Ann"), entity("human", "Ben")]);
  await runInDurableObject(home.stub, async (_, state) => {
    const parts = createServices(state, env);
    parts.timers.clear(deliverTimer);
    const dueAt = parts.clock.now() + 60_000;
    const failing = (): void =>
      parts.transaction(() => {
        parts.timers.setNoLater(deliverTimer, dueAt);
        throw new Error("rolled back");
      });
    expect(failing).toThrow("rolled back");
    expect([parts.timers.dueAt(deliverTimer), await state.storage.getAlarm()]).toEqual([undefined, null]);
    // Posts that are stored in one turn all have the same time.
    parts.transaction(() => parts.timers.setNoLater(deliverTimer, dueAt));
    expect([parts.timers.next(), await state.storage.getAlarm()]).toEqual([dueAt, dueAt]);
  });
});
