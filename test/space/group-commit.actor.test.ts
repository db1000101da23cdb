import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { deliveredTo, entity, type House, heardBy, house, recordReceivers, takenBy } from "./fixture.ts";
import { listen } from "./listener.ts";

/** Posts that come together and are stored together, while something else becomes of their space. */
beforeAll(recordReceivers);
afterEach(disarmFaults);

const cast = () => ({ ann: entity("human", "Ann"), ben: entity("human", "Ben"), robo: entity("agent", "Robo") });
const texts = Array.from({ length: 30 }, (_, index) => `${index}`);

/** All at once, as many clients would, each with a key of its own. Through one stub, so that they come in order. */
const postAll = ({ as }: House, rpc: House["rpc"], [one, other]: [EntityRef, EntityRef], upTo = texts.length) =>
  texts.slice(0, upTo).map((text, index) => rpc.post(as(index % 2 === 0 ? one : other), { text, clientKey: text }));

test("[D1] [D2] [D3] waiting posts of a removed sender are refused; the others keep one order", async () => {
  const { ann, ben, robo } = cast();
  const home = await house([ann, ben, robo]);
  const socket = await listen(home, home.as(ann));
  const { rpc } = home;
  const posting = postAll(home, rpc, [ann, ben]);
  unwrap(await rpc.removeMember(home.key, ben.id));
  const answered = await Promise.all(posting);
  const stored = texts.filter((_, index) => answered[index]?.ok);
  expect(stored).toEqual(expect.arrayContaining(texts.filter((_, index) => index % 2 === 0)));
  const refused = answered.flatMap((each) => (each.ok ? [] : [each.problem.code]));
  expect(refused).toEqual(texts.slice(stored.length).map(() => "not_found"));
  unwrap(await rpc.post(home.as(ann), { text: "the end" }));
  const { items } = unwrap(await rpc.list(home.key, { limit: 100 }));
  expect(items.map(({ text }) => text)).toEqual([...stored, "the end"]);
  await vi.waitFor(() => expect(heardBy(robo)).toEqual([...stored, "the end"]));
  await socket.until("space.message", stored.length + 1);
  expect(socket.of("space.message").map(({ message }) => message.text)).toEqual([...stored, "the end"]);
  const left = socket.of("member.left")[0]?.cursor ?? 0;
  expect(items.filter(({ sender, seq }) => sender.id === ben.id && seq > left)).toEqual([]);
});

test("[D1] [D2] waiting posts to a deleted space are refused; answered ones are delivered", async () => {
  const { ann, ben, robo } = cast();
  const home = await house([ann, ben, robo]);
  const { rpc } = home;
  const posting = postAll(home, rpc, [ann, ben]);
  unwrap(await rpc.remove(home.key));
  const answered = await Promise.all(posting);
  const refused = answered.flatMap((each) => (each.ok ? [] : [each.problem.code]));
  const stored = texts.filter((_, index) => answered[index]?.ok);
  expect(refused).toEqual(texts.slice(stored.length).map(() => "not_found"));
  await vi.waitFor(() => expect(takenBy(robo)).toEqual(stored));
});

test.each([
  ["space.after-append", 0],
  ["space.after-deliver", 0],
  ["space.after-deliver", 15],
] as const)("[D1] [D2] posts resent after a crash (%s, %i told) are stored once", async (point, before) => {
  const { ann, ben, robo } = cast();
  const home = await house([ann, ben, robo]);
  const socket = await listen(home, home.as(ann));
  await vi.waitFor(() => expect(deliveredTo(robo)).toHaveLength(1));
  await Promise.all(postAll(home, home.rpc, [ann, ben], before));
  await vi.waitFor(() => expect(heardBy(robo)).toHaveLength(before));
  const crashed = armFault(point);
  const posting = Promise.allSettled(postAll(home, home.rpc, [ann, ben]));
  await crashed;
  const known = (await posting).flatMap((each) => (each.status === "fulfilled" ? [unwrap(each.value).message] : []));
  const again = (await Promise.all(postAll(home, home.rpc, [ann, ben]))).map((each) => unwrap(each).message);
  expect(again).toEqual(expect.arrayContaining(known));
  unwrap(await home.rpc.post(home.as(ann), { text: "30" }));
  const { items } = unwrap(await home.rpc.list(home.key, { limit: 100 }));
  expect(items.map(({ text }) => Number(text)).toSorted((a, b) => a - b)).toEqual([...texts.map(Number), 30]);
  await vi.waitFor(() => expect(takenBy(robo)).toEqual(items.map(({ text }) => text)));
  // Every message that a socket was told before the crash is stored.
  expect(items).toEqual(expect.arrayContaining(socket.of("space.message").map(({ message }) => message)));
});
