import { beforeAll, expect, test } from "vitest";
import type { Principal } from "../../src/protocol/principal.ts";
import { type Outcome, unwrap } from "../../src/shared/errors.ts";
import { entity, type House, house, ids, recordReceivers } from "./fixture.ts";
import { upgrade } from "./listener.ts";

beforeAll(recordReceivers);

const creator = entity("human", "Creator");
const member = entity("human", "Member");
const outsider = entity("human", "Outsider");
const guest = entity("human", "Guest");

type Act = (home: House, principal: Principal, messageId: string) => Promise<Outcome<unknown>>;

const socket: Act = async (home, principal) => {
  const response = await upgrade(home, principal);
  response.webSocket?.accept();
  return response.webSocket ? { ok: true, value: null } : { ok: false, problem: await response.json() };
};

const acts: Record<string, Act> = {
  describe: ({ rpc }, principal) => rpc.describe(principal),
  list: ({ rpc }, principal) => rpc.list(principal, { limit: 1 }),
  latest: ({ rpc }, principal) => rpc.latest(principal),
  post: ({ rpc }, principal) => rpc.post(principal, { text: "hello" }),
  markRead: ({ rpc }, principal, messageId) => rpc.markRead(principal, messageId),
  socket,
  update: ({ rpc }, principal) => rpc.update(principal, { name: "Attic" }),
  addMember: ({ rpc }, principal) => rpc.addMember(principal, guest),
  leave: ({ rpc }, principal) => rpc.removeMember(principal, principal.entityId ?? member.id),
  removeOther: ({ rpc }, principal) => rpc.removeMember(principal, creator.id),
  remove: ({ rpc }, principal) => rpc.remove(principal),
};

const callers: Record<string, (home: House) => Principal> = {
  key: (home) => home.key,
  keyAsMember: (home) => ({ ...home.key, entityId: member.id }),
  keyAsOutsider: (home) => ({ ...home.key, entityId: outsider.id }),
  admin: (home) => home.as(outsider, true),
  creator: (home) => home.as(creator),
  member: (home) => home.as(member),
  outsider: (home) => home.as(outsider),
  foreignKey: (home) => ({ ...home.key, workspaceId: ids.mint("wsp") }),
  foreignAdmin: (home) => ({ ...home.as(member, true), workspaceId: ids.mint("wsp") }),
};

const [hidden, denied, who] = ["not_found", "forbidden", "acting_entity_required"] as const;
const everything = (code: string) => Object.fromEntries(Object.keys(acts).map((name) => [name, code]));

/** The result for each caller. `leave` finds no such member where the caller is not in the space. */
const expected: Record<string, Record<string, string>> = {
  key: { ...everything("ok"), post: who, markRead: who, socket: who },
  keyAsMember: everything("ok"),
  keyAsOutsider: { ...everything("ok"), post: denied, markRead: denied, socket: denied, leave: hidden },
  admin: { ...everything("ok"), post: denied, markRead: denied, socket: denied, leave: hidden },
  creator: everything("ok"),
  member: { ...everything("ok"), update: denied, addMember: denied, removeOther: denied, remove: denied },
  outsider: everything("not_found"),
  foreignKey: everything("not_found"),
  foreignAdmin: everything("not_found"),
};

for (const [caller, principalOf] of Object.entries(callers)) {
  test(`[S1] what a space lets ${caller} do`, async () => {
    const got: Record<string, string> = {};
    for (const [name, act] of Object.entries(acts)) {
      const home = await house([creator, member], { createdBy: creator });
      const { message } = unwrap(await home.rpc.post(home.as(creator), { text: "first" }));
      const answered = await act(home, principalOf(home), message.id);
      got[name] = answered.ok ? "ok" : answered.problem.code;
    }
    expect(got).toEqual(expected[caller]);
  });
}

test("[S1] another workspace's agent and directory find no space", async () => {
  const robo = entity("agent", "Robo");
  const home = await house([member, robo]);
  const other = ids.mint("wsp");
  expect(await home.rpc.window(other, robo.id, { limit: 1, offset: 0 })).toMatchObject({ problem: { code: hidden } });
  expect(await home.rpc.renameMember(other, member.id, "Mallory")).toMatchObject({ problem: { code: hidden } });
  expect(await home.rpc.window(home.workspaceId, outsider.id, { limit: 1, offset: 0 })).toMatchObject({
    problem: { code: "not_a_member" },
  });
});

test("adding who is there already changes nothing, and a space of a thousand is full", async () => {
  const crowd = Array.from({ length: 999 }, (_, index) => entity("human", `Person ${index}`));
  const home = await house([member, ...crowd]);
  const joined = unwrap(await home.rpc.addMember(home.key, member));
  expect(joined.joinedAt).toBe(home.space.members?.[0]?.joinedAt);
  const full = await home.rpc.addMember(home.key, outsider);
  expect(full).toMatchObject({ ok: false, problem: { code: "limit_reached" } });
});
