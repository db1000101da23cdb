import { beforeAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../src/agent/agent.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { MessageChange } from "../../src/protocol/message-change.ts";
import { type Outcome, ok, refuse, unwrap } from "../../src/shared/errors.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { rowsWith } from "../support/rows.ts";
import { counted } from "./counted.ts";
import {
  answers,
  called,
  compartmentOf,
  deliveredTo,
  entity,
  type House,
  heardBy,
  house,
  ids,
  recordReceivers,
  said,
  settled,
} from "./fixture.ts";
import { listen } from "./listener.ts";

beforeAll(recordReceivers);

const Named = z.object({ ctx: z.object({ id: z.object({ name: z.string() }) }) });

const ann = entity("human", "Ann");
const bob = entity("human", "Bob");
const robo = () => entity("agent", "Robo");

const postedBy = async (home: House, who: typeof ann, text: string): Promise<Message> =>
  unwrap(await home.rpc.post(home.as(who), { text })).message;
const codeOf = (outcome: Outcome<unknown>): string => (outcome.ok ? "" : outcome.problem.code);
const changesTold = (agent: typeof ann): MessageChange[] => deliveredTo(agent).flatMap(({ changes = [] }) => changes);

test("[L1] an edit and a deletion are events, and every answer tells the message as it is", async () => {
  const home = await house([ann, bob]);
  const [first, second] = [await postedBy(home, ann, "the quinces"), await postedBy(home, bob, "the medlars")];
  const late = await listen(home, home.as(bob), "?cursor=0");
  await late.until("space.message", 2);
  const edited = unwrap(await home.rpc.editMessage(home.as(ann), first.id, "hello @Bob"));
  expect(edited).toMatchObject({ id: first.id, seq: first.seq, text: "hello @Bob", mentions: [bob.id] });
  expect(edited.editedAt).toBeDefined();
  const { message: gone } = unwrap(await home.rpc.deleteMessage(home.as(bob), second.id));
  expect(gone).toMatchObject({ id: second.id, seq: second.seq, deleted: { by: { id: bob.id, name: "Bob" } } });
  expect(gone.text).toBeUndefined();
  await late.until("message.deleted");
  expect(late.of("message.updated")[0]?.message).toEqual(edited);
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 9 })).items).toEqual([edited, gone]);
  expect(unwrap(await home.rpc.latest(home.as(ann)))).toEqual({ lastMessage: gone, unreadCount: 0 });
  expect(unwrap(await home.rpc.find(home.as(ann), first.id)).message).toEqual(edited);
  // Whatever cursor a client comes with, it is told no old words.
  const anew = await listen(home, home.as(ann), "?cursor=0");
  await anew.until("message.deleted");
  expect(anew.of("space.message").map(({ message }) => message)).toEqual([edited, gone]);
  for (const words of ["quinces", "medlars"]) expect(await rowsWith(home.stub, words)).toEqual([]);
});

test("[L1] what is edited twice and then deleted leaves no words, and stays deleted", async () => {
  const home = await house([ann, bob]);
  const message = await postedBy(home, ann, "one quince");
  unwrap(await home.rpc.editMessage(home.as(ann), message.id, "two quinces"));
  unwrap(await home.rpc.editMessage(home.as(ann), message.id, "three quinces"));
  const { cursor } = (await listen(home, home.as(ann))).of("welcome")[0] ?? {};
  unwrap(await home.rpc.editMessage(home.as(ann), message.id, "three quinces"));
  const gone = unwrap(await home.rpc.deleteMessage(home.key, message.id));
  expect(gone.message.deleted?.by).toBeUndefined();
  // The same edit again was no event.
  expect((await listen(home, home.as(ann))).of("welcome")[0]?.cursor).toBe((cursor ?? 0) + 1);
  expect(unwrap(await home.rpc.deleteMessage(home.as(ann), message.id))).toEqual(gone);
  expect(codeOf(await home.rpc.editMessage(home.as(ann), message.id, "again"))).toBe("gone");
  expect(codeOf(await home.rpc.post(home.as(bob), { text: "yes", replyTo: message.id }))).toBe("gone");
  expect(await rowsWith(home.stub, "quince")).toEqual([]);
});

test("[L1] its own key finds a message that was edited or deleted, and posts no other", async () => {
  const home = await house([ann, bob]);
  const post = () => home.rpc.post(home.as(ann), { text: "quinces", clientKey: "k1" });
  const { message } = unwrap(await post());
  const edited = unwrap(await home.rpc.editMessage(home.as(ann), message.id, "pears"));
  expect(unwrap(await post())).toEqual({ message: edited, created: false });
  const gone = unwrap(await home.rpc.deleteMessage(home.as(ann), message.id));
  expect(unwrap(await post())).toEqual({ message: gone.message, created: false });
});

test("[L1] senders change their own; admins who may read and keys delete any", async () => {
  const agent = robo();
  const home = await house([ann, bob, agent]);
  const message = await postedBy(home, ann, "quinces");
  const own = unwrap(await home.rpc.append(said(home, agent, "medlars")));
  const [byBob, boss] = [home.as(bob), home.as(entity("human", "Boss"), true)];
  expect(codeOf(await home.rpc.editMessage(byBob, message.id, "x"))).toBe("forbidden");
  expect(codeOf(await home.rpc.editMessage(boss, message.id, "x"))).toBe("forbidden");
  expect(codeOf(await home.rpc.editMessage(home.key, message.id, "x"))).toBe("acting_entity_required");
  expect(codeOf(await home.rpc.editMessage(home.as(agent), own.id, "x"))).toBe("forbidden");
  expect(codeOf(await home.rpc.deleteMessage(byBob, message.id))).toBe("forbidden");
  expect(codeOf(await home.rpc.deleteMessage(home.as(agent), own.id))).toBe("forbidden");
  expect(codeOf(await home.rpc.deleteMessage(byBob, ids.mintOwned("msg", home.space.id)))).toBe("not_found");
  expect(unwrap(await home.rpc.deleteMessage(boss, own.id)).message.deleted?.by?.id).toBe(boss.entityId);
  unwrap(await home.rpc.deleteMessage(home.key, message.id));
  const secret = await house([ann, bob], { confidential: true });
  const hidden = await postedBy(secret, ann, "quinces");
  expect(codeOf(await secret.rpc.deleteMessage(secret.as(entity("human", "Boss"), true), hidden.id))).toBe("forbidden");
});

test("[L1] an edit wakes nobody, and agents are told of it once, with the words that were there", async () => {
  const agent = robo();
  const home = await house([ann, bob, agent], { wakePolicy: "addressed" });
  const message = await postedBy(home, ann, "the quinces @Robo");
  await vi.waitFor(() => expect(heardBy(agent)).toHaveLength(1));
  const edited = unwrap(await home.rpc.editMessage(home.as(ann), message.id, "@Robo the pears"));
  await vi.waitFor(() => expect(changesTold(agent)).toHaveLength(1));
  expect(changesTold(agent)[0]).toEqual({
    ...{ seq: edited.seq + 1, kind: "edited", message: edited, was: ["the quinces @Robo"] },
  });
  expect(heardBy(agent)).toHaveLength(1);
  await vi.waitFor(async () => expect(await rowsWith(home.stub, "quinces")).toEqual([]));
});

test("[L1] an agent that was away hears what is left of the messages, in their order", async () => {
  const agent = robo();
  const home = await house([ann, bob, agent]);
  let isAway = true;
  answers.set(agent.id, async ({ cursor }) => {
    return isAway ? refuse("unavailable", "away") : ok({ cursor });
  });
  const [first, second] = [await postedBy(home, ann, "quinces"), await postedBy(home, ann, "medlars")];
  unwrap(await home.rpc.deleteMessage(home.as(ann), first.id));
  unwrap(await home.rpc.editMessage(home.as(ann), second.id, "pears"));
  expect(await rowsWith(home.stub, "medlars")).toHaveLength(1);
  isAway = false;
  await vi.waitFor(() => expect(heardBy(agent).at(-1)).toBe("pears"));
  await settled(home);
  expect(heardBy(agent).filter((text) => text === undefined)).toEqual([]);
  expect(changesTold(agent).map(({ kind, was }) => [kind, ...was])).toEqual([
    ["deleted", "quinces"],
    ["edited", "medlars"],
  ]);
  for (const words of ["quinces", "medlars"]) expect(await rowsWith(home.stub, words)).toEqual([]);
});

test("[L1] a tool call's message is deleted once the call is over, with all that it told", async () => {
  const agent = robo();
  const home = await house([ann, bob, agent]);
  const call = called(home, agent, "c", { input: { secret: "quinces" } });
  const shown = unwrap(await home.rpc.recordToolCall(call));
  expect(codeOf(await home.rpc.deleteMessage(home.key, shown.id))).toBe("conflict");
  unwrap(await home.rpc.recordToolCall({ ...call, status: "complete", output: "many quinces" }));
  expect(codeOf(await home.rpc.deleteMessage(home.as(ann), shown.id))).toBe("forbidden");
  const { message } = unwrap(await home.rpc.deleteMessage(home.key, shown.id));
  await vi.waitFor(() => expect(changesTold(agent)[0]?.was).toEqual(["quinces", "many quinces"]));
  await settled(home);
  expect(unwrap(await home.rpc.recordToolCall({ ...call, status: "complete", output: "more" }))).toEqual(message);
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 9 })).items).toEqual([message]);
  const answered = await home.rpc.answerToolCall(home.as(ann), call.toolCallId, { result: 1 });
  expect(codeOf(answered)).toBe("gone");
  expect(await rowsWith(home.stub, "quinces")).toEqual([]);
});

test("[L4] agents forget the words in the keys of a deleted call, and no names of fields", async () => {
  const agent = robo();
  const home = await house([ann, bob, agent]);
  const call = called(home, agent, "c", { input: { of: "quinces" }, status: "complete" });
  const shown = unwrap(await home.rpc.recordToolCall({ ...call, output: { left: { "Mona's orchard": [3] } } }));
  unwrap(await home.rpc.deleteMessage(home.key, shown.id));
  await vi.waitFor(() => expect(changesTold(agent)[0]?.was).toEqual(["quinces", "Mona's orchard"]));
});

test("[C17] [L1] a mind that hears a space no more is told of an edit as of a deletion", async () => {
  const agent = robo();
  const home = await house([ann, bob, agent]);
  const message = await postedBy(home, ann, "quinces");
  await vi.waitFor(() => expect(heardBy(agent)).toHaveLength(1));
  unwrap(await home.rpc.update(home.key, { confidential: true }));
  const inside = await postedBy(home, ann, "inside");
  unwrap(await home.rpc.editMessage(home.as(ann), message.id, "medlars"));
  unwrap(await home.rpc.editMessage(home.as(ann), inside.id, "more inside"));
  const compartment = compartmentOf(agent, home);
  await vi.waitFor(() => expect(changesTold(compartment)).toHaveLength(2));
  await vi.waitFor(() => expect(changesTold(agent)).toHaveLength(1));
  expect(changesTold(agent)[0]).toMatchObject({ kind: "deleted", was: ["quinces"], message: { id: message.id } });
  expect(JSON.stringify(deliveredTo(agent))).not.toContain("medlars");
  const read = unwrap(await home.rpc.window(home.workspaceId, agent.id, { limit: 9, offset: 0 }));
  expect(JSON.stringify([read, await home.rpc.message(home.workspaceId, agent.id, message.id)])).not.toContain(
    "medlars",
  );
});

test("[C17] [L1] an open mind is told no words said since the space is confidential", async () => {
  const agent = robo();
  const home = await house([ann, bob, agent]);
  const message = await postedBy(home, ann, "quinces");
  unwrap(await home.rpc.update(home.key, { confidential: true }));
  const compartment = compartmentOf(agent, home);
  unwrap(await home.rpc.editMessage(home.as(ann), message.id, "medlars"));
  unwrap(await home.rpc.editMessage(home.as(ann), message.id, "pears"));
  const inside = { ...said(home, agent, "sloes"), mindId: compartment.id };
  const call = called(home, agent, "c", { input: { of: "damsons" }, status: "complete" });
  const own = { toolCallId: ids.deriveOwned("tc", compartment.id, "c"), mindId: compartment.id };
  const messageId = ids.deriveOwned("msg", home.space.id, own.toolCallId);
  for (const shown of [
    unwrap(await home.rpc.append(inside)),
    unwrap(await home.rpc.recordToolCall({ ...call, ...own, messageId })),
    unwrap(await home.rpc.append(said(home, agent, "plums"))),
    unwrap(await home.rpc.recordToolCall({ ...call, input: { of: "figs" } })),
  ]) {
    unwrap(await home.rpc.deleteMessage(home.key, shown.id));
  }
  const was = (who: typeof ann) => changesTold(who).flatMap((change) => change.was);
  await vi.waitFor(() => expect(was(agent)).toContain("figs"));
  // It has what it said from outside.
  expect(was(agent)).toEqual(["quinces", "plums", "figs"]);
  await vi.waitFor(() => expect(was(compartment)).toEqual(["quinces", "medlars", "sloes", "damsons", "plums", "figs"]));
});

test("[C17] [L1] [S1] an agent that left is told of no words that it had not heard", async () => {
  const told: [string, string[]][] = [];
  vi.spyOn(Agent.prototype, "forgetMessages").mockImplementation(async function (this: Agent, _, changes) {
    const { name } = Named.parse(this).ctx.id;
    told.push(...changes.map(({ was }): [string, string[]] => [name, was]));
    return ok(null);
  });
  const agent = robo();
  const home = await house([ann, bob, agent]);
  const message = await postedBy(home, ann, "quinces");
  unwrap(await home.rpc.update(home.key, { confidential: true }));
  const compartment = compartmentOf(agent, home);
  const inside = unwrap(await home.rpc.append({ ...said(home, agent, "sloes"), mindId: compartment.id }));
  const outside = unwrap(await home.rpc.append(said(home, agent, "plums")));
  unwrap(await home.rpc.removeMember(home.key, agent.id));
  for (const words of ["medlars", "pears"]) unwrap(await home.rpc.editMessage(home.as(ann), message.id, words));
  for (const { id } of [inside, outside]) unwrap(await home.rpc.deleteMessage(home.key, id));
  await vi.waitFor(() => expect(told).toHaveLength(5));
  expect(told.filter(([mind]) => mind === agent.id).map(([, was]) => was)).toEqual([["quinces"], ["plums"]]);
  expect(told.filter(([mind]) => mind === compartment.id)).toHaveLength(3);
  expect(JSON.stringify(told)).not.toContain("medlars");
});

test("[L1] an edit costs at most half of a post more", async () => {
  const agent = robo();
  const home = await house([ann, bob, agent]);
  const measure = async (act: () => Promise<unknown>): Promise<number> => {
    await settled(home);
    const { rowsWritten } = await counted(home, async () => {
      await act();
      await settled(home);
    });
    return rowsWritten;
  };
  const message = await postedBy(home, ann, "quinces");
  const post = await measure(() => home.rpc.post(home.as(ann), { text: "hello" }));
  const edit = await measure(() => home.rpc.editMessage(home.as(ann), message.id, "pears"));
  expect(edit).toBeLessThanOrEqual(post * 1.5);
});

test("[L1] a client edits and deletes by its socket, and is told by its own what is refused", async () => {
  const home = await house([ann, bob]);
  const message = await postedBy(home, ann, "quinces");
  const [anns, bobs] = [await listen(home, home.as(ann)), await listen(home, home.as(bob))];
  anns.send({ type: "message.edit", messageId: message.id, text: "pears" });
  await bobs.until("message.updated");
  expect(bobs.of("message.updated")[0]?.message.text).toBe("pears");
  bobs.send({ type: "message.delete", messageId: message.id });
  await bobs.until("error");
  expect(bobs.of("error")[0]).toMatchObject({ code: "forbidden", messageId: message.id });
  anns.send({ type: "message.delete", messageId: message.id });
  await bobs.until("message.deleted");
  anns.send({ type: "message.edit", messageId: message.id, text: "plums" });
  await anns.until("error");
  expect(anns.of("error")[0]).toMatchObject({ code: "gone", messageId: message.id });
});

test("[L1] an admin deletes others' messages by socket, as by HTTP; a member is refused", async () => {
  const [boss, home] = [entity("human", "Boss"), await house([ann, bob])];
  await home.rpc.addMember(home.key, boss);
  vi.spyOn(Workspace.prototype, "standing").mockImplementation(async (id) =>
    ok({ role: id === boss.id ? "admin" : "member", type: "human" }),
  );
  const message = await postedBy(home, ann, "quinces");
  const [bobs, bosss] = [await listen(home, home.as(bob)), await listen(home, home.as(boss))];
  bobs.send({ type: "message.delete", messageId: message.id });
  await bobs.until("error");
  expect(bobs.of("error")[0]).toMatchObject({ code: "forbidden", messageId: message.id });
  bosss.send({ type: "message.delete", messageId: message.id });
  await bobs.until("message.deleted");
  expect(bobs.of("message.deleted")[0]?.message.deleted?.by).toEqual({ id: boss.id, name: "Boss" });
  expect(bosss.of("error")).toEqual([]);
});
