import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { Person } from "../../src/person/person.ts";
import type { PersonDelivery } from "../../src/protocol/person-rpc.ts";
import { ok, refuse, unwrap } from "../../src/shared/errors.ts";
import { listenIntervalMs } from "../../src/space/bounds.ts";
import { entity, house, recordReceivers, settled } from "./fixture.ts";

beforeAll(recordReceivers);

/** People who take all that they are told. */
const hearing = () => {
  const heard: PersonDelivery[] = [];
  const spied = vi.spyOn(Person.prototype, "hear").mockImplementation(async (delivery) => {
    heard.push(delivery);
    return ok({ follows: "all" });
  });
  onTestFinished(() => spied.mockRestore());
  return heard;
};

test("[I2] a message in a space of 500 people of whom none looks asks none of them", async () => {
  const people = Array.from({ length: 500 }, (_, n) => entity("human", `Person ${n}`));
  const [ann] = people;
  if (!ann) throw new Error("nobody is there");
  const home = await house(people);
  const heard = hearing();
  unwrap(await home.rpc.post(home.as(ann), { text: "@Person 7 and all the others" }));
  await settled(home);
  expect(heard).toEqual([]);
});

test("[I1] people who look are told together, at most four times a second, and all of it", async () => {
  const people = Array.from({ length: 50 }, (_, n) => entity("human", `Person ${n}`));
  const ann = entity("human", "Ann");
  const home = await house([ann, ...people]);
  const heard = hearing();
  for (const { id } of people) unwrap(await home.rpc.attend(home.workspaceId, id, "all"));
  const began = performance.now();
  for (let n = 0; n < 20; n += 1) unwrap(await home.rpc.post(home.as(ann), { text: `message ${n}` }));
  await vi.waitFor(() => {
    const last = heard.filter(({ standing }) => standing?.summary.preview?.text === "message 19");
    expect(last).toHaveLength(50);
  });
  await settled(home);
  const seconds = (performance.now() - began) / 1000;
  expect(heard.length / people.length).toBeLessThanOrEqual(seconds * (1000 / listenIntervalMs) + 2);
  expect(heard.at(-1)?.standing?.summary).toMatchObject({ unread: 20 });
});

test("[L16] an erasure waits until those who keep its words have heard that they are gone", async () => {
  const [ann, ben] = [entity("human", "Ann"), entity("human", "Ben")];
  const home = await house([ann, ben]);
  let isAway = false;
  const spied = vi
    .spyOn(Person.prototype, "hear")
    .mockImplementation(async () => (isAway ? refuse("unavailable", "not now") : ok({ follows: "all" })));
  onTestFinished(() => spied.mockRestore());
  unwrap(await home.rpc.attend(home.workspaceId, ann.id, "all"));
  unwrap(await home.rpc.post(home.as(ben), { text: "@Ann quinces" }));
  await settled(home);
  isAway = true;
  const goes = async (after: number, upTo?: number) =>
    unwrap(await home.rpc.erase(home.workspaceId, { entityId: ben.id, after, upTo }));
  const { upTo = 0 } = await goes(0);
  const { after } = await goes(0, upTo);
  expect(after).toBe(upTo);
  expect(await goes(after, upTo)).toMatchObject({ isDone: false });
  isAway = false;
  await vi.waitFor(async () => expect(await goes(after, upTo)).toMatchObject({ isDone: true }));
});
