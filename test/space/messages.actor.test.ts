import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { entity, house, ids, recordReceivers, said } from "./fixture.ts";

beforeAll(recordReceivers);

const ann = entity("human", "Ann");
const bob = entity("human", "Bob");
const robo = entity("agent", "Robo");

test("[S6] a space that was never created answers not_found and stores nothing", async () => {
  const workspaceId = ids.mint("wsp");
  const rpc = env.SPACE.getByName(ids.mint("spc"));
  const answered = await rpc.describe({ kind: "key", workspaceId, keyId: ids.mint("key") });
  expect(answered).toMatchObject({ ok: false, problem: { code: "not_found" } });
});

test("[D1] a message has a place in the log, and everyone in the space can read it", async () => {
  const home = await house([ann, bob, robo]);
  const { message, created } = unwrap(await home.rpc.post(home.as(ann), { text: "Dinner at seven?" }));
  expect(created).toBe(true);
  expect(message).toMatchObject({
    seq: 5,
    kind: "text",
    text: "Dinner at seven?",
    sender: { name: "Ann", type: "human" },
  });
  const page = unwrap(await home.rpc.list(home.as(bob), { limit: 50 }));
  expect(page).toEqual({ items: [message], nextCursor: null });
});

test("[D1] the same clientKey stores a message once", async () => {
  const home = await house([ann, bob]);
  const first = unwrap(await home.rpc.post(home.as(ann), { text: "hello", clientKey: "k1" }));
  const again = unwrap(await home.rpc.post(home.as(ann), { text: "hello", clientKey: "k1" }));
  const others = unwrap(await home.rpc.post(home.as(bob), { text: "hello", clientKey: "k1" }));
  expect(again).toEqual({ message: first.message, created: false });
  expect(others.created).toBe(true);
  const mismatch = await home.rpc.post(home.as(ann), { text: "other", clientKey: "k1" });
  expect(mismatch).toMatchObject({ ok: false, problem: { code: "idempotency_mismatch", status: 422 } });
  expect(unwrap(await home.rpc.list(home.key, { limit: 50 })).items).toHaveLength(2);
});

test("[R2] an agent that says something again has said it once", async () => {
  const home = await house([ann, robo]);
  const first = unwrap(await home.rpc.append(said(home, robo, "On it.")));
  const again = unwrap(await home.rpc.append(said(home, robo, "On it.")));
  expect(again).toEqual(first);
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 50 })).items).toEqual([first]);
});
