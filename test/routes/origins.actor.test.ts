import { expect, test } from "vitest";
import * as z from "zod";
import { Message } from "../../src/protocol/message.ts";
import { type Call, call, expectOk, ids, openHouse } from "../support/house.ts";
import { carriedMessage } from "./inside-things.ts";
import { problemIn } from "./operations.ts";

const Found = z.object({ message: Message, spaceName: z.string() });

/** Alice asked in Source; Bob is in Target alone, where an agent said it. */
const stage = async () => {
  const house = await openHouse();
  const [alice, bob] = [await house.person("Alice"), await house.person("Bob")];
  const agent = await house.agent({ name: "Carrier" });
  const carried = await carriedMessage(house, alice, agent.id, [alice, bob]);
  const ask = (caller: Call, messageId = carried.messageId) =>
    call(`/v1/spaces/${carried.spaceId}/messages/${messageId}/origin`, caller);
  return { house, alice, bob, agent, ask, ...carried };
};

test("[C7] the source space answers what an origin was: to its members and the workspace alone", async () => {
  const { house, alice, bob, ask, spaceId, sourceId, asked } = await stage();
  const [boss, stranger, other] = [await house.person("Boss", "admin"), await house.person("Eve"), await openHouse()];
  for (const caller of [{ bearer: alice.token }, { bearer: house.secretKey }, { bearer: boss.token }]) {
    const { message, spaceName } = await expectOk(Found, ask(caller));
    expect([message.id, message.spaceId, message.text]).toEqual([asked, sourceId, "Tell Target that the tea is ready"]);
    expect(spaceName).toBe("Source");
  }
  const own = await house.say(spaceId, bob, "What is this about?");
  const refused = async (caller: Call, messageId?: string) => problemIn(await ask(caller, messageId));
  const none = await refused({ bearer: bob.token }, own.id);
  expect(none.code).toBe("not_found");
  // A caller who may not see it gets the answer for no origin, or for no such message.
  for (const caller of [bob, stranger]) expect(await refused({ bearer: caller.token })).toEqual(none);
  expect(await refused({ bearer: house.secretKey }, own.id)).toEqual(none);
  const absent = ids.mintOwned("msg", spaceId);
  for (const bearer of [bob.token, house.secretKey]) expect(await refused({ bearer }, absent)).toEqual(none);
  expect((await refused({ bearer: other.secretKey })).code).toBe("not_found");
});

test("[C7] an origin is answered no more to who left its space, nor once that is deleted", async () => {
  const { house, alice, ask, sourceId } = await stage();
  const leave = `/v1/spaces/${sourceId}/members/${alice.id}`;
  expect((await call(leave, { method: "DELETE", bearer: alice.token })).status).toBe(204);
  expect((await ask({ bearer: alice.token })).status).toBe(404);
  expect((await ask({ bearer: house.secretKey })).status).toBe(200);
  await call(`/v1/spaces/${sourceId}`, { method: "DELETE", bearer: house.secretKey });
  expect((await ask({ bearer: house.secretKey })).status).toBe(404);
});
