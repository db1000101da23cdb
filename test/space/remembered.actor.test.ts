import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { assemble } from "../../src/space/assemble.ts";
import { join } from "../../src/space/membership.ts";
import { record } from "../../src/space/parts.ts";
import { entity, house, recordReceivers } from "./fixture.ts";

beforeAll(recordReceivers);

test("what was read in a transaction that is rolled back is not remembered", async () => {
  const [ann, ben, robo] = [entity("human", "Ann"), entity("human", "Ben"), entity("agent", "Robo")];
  const home = await house([ann, ben]);
  await runInDurableObject(home.stub, (_, state) => {
    const parts = assemble(state, env);
    const known = () => ({
      robo: parts.members.find(robo.id)?.name,
      members: parts.members.all().length,
      arePair: parts.members.arePair(),
      follows: parts.subscribers.find(robo.id)?.cursor,
      anyAgent: parts.subscribers.anyAgentBut(ann.id),
      name: parts.settings.find()?.name,
      end: parts.log.head().seq,
    });
    const before = known();
    const failing = (): void =>
      record(parts, (append) => {
        join(parts, append, robo);
        parts.settings.change({ name: "Another" });
        expect(known()).toMatchObject({ robo: "Robo", members: 3, arePair: false, anyAgent: true, name: "Another" });
        throw new Error("rolled back");
      });

    expect(failing).toThrow("rolled back");
    expect(known()).toEqual(before);
    expect(before).toMatchObject({ robo: undefined, members: 2, arePair: true, follows: undefined, anyAgent: false });
  });
});
