import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { decodeJwt } from "jose";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { subscriberProofMs } from "../../src/agent/bounds.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { keyProofLeadMs, keyProofMs } from "../../src/space/bounds.ts";
import { maxSessionsOfPerson } from "../../src/workspace/bounds.ts";
import { type Call, call, expectOk, type House, openHouse, type Participant } from "../support/house.ts";
import { codeBy, cookieBy, cookieOf, origin, signIn } from "../support/session.ts";
import { problemIn } from "./operations.ts";

/** A session ends when its person signs out: whoever has copied its cookie has nothing, and its sockets close. */
afterEach(() => {
  vi.useRealTimers();
});

const cookieFor = async (house: House, person: Participant): Promise<string> => cookieBy(house.secretKey, person.id);

const withCookie = (path: string, cookie: string, options: Call = {}): Promise<Response> =>
  call(path, { ...options, headers: { origin, cookie, ...options.headers } });

const signOut = (cookie: string): Promise<Response> => withCookie("/v1/session", cookie, { method: "DELETE" });

const open = async (path: string, cookie: string): Promise<{ closed?: number }> => {
  const { webSocket } = await withCookie(path, cookie, { headers: { upgrade: "websocket" } });
  if (!webSocket) throw new Error("a socket was expected");
  const seen: { closed?: number } = {};
  webSocket.addEventListener("close", ({ code }) => {
    seen.closed = code;
  });
  webSocket.accept();
  return seen;
};

const stubOf = (actor: unknown): DurableObjectStub => actor as DurableObjectStub;
const passTime = async (milliseconds: number, actor: unknown): Promise<void> => {
  vi.setSystemTime(Date.now() + milliseconds);
  await runDurableObjectAlarm(stubOf(actor));
};

test("[C14] [S5] signing out ends the session wherever its cookie is, and its sockets", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const { id } = await house.space("Alpha", [ada]);
  const [phone, desk] = [await cookieFor(house, ada), await cookieFor(house, ada)];
  const [doomed, staying] = [await open(`/v1/spaces/${id}/stream`, phone), await open(`/v1/spaces/${id}/stream`, desk)];
  expect((await signOut(phone)).status).toBe(204);
  for (const path of ["/v1/spaces", `/v1/spaces/${id}`, `/v1/spaces/${id}/events`]) {
    expect(await problemIn(await withCookie(path, phone))).toMatchObject({ code: "unauthorized" });
  }
  expect(await (await withCookie("/v1/session", phone)).json()).toEqual({ session: null });
  await vi.waitUntil(() => doomed.closed !== undefined);
  expect(doomed.closed).toBe(4401);
  expect((await signOut(phone)).status).toBe(204);
  expect((await withCookie("/v1/spaces", desk)).status).toBe(200);
  expect(staying.closed).toBeUndefined();
});

test("[C14] a session counts as a cookie only, and no other token as a session", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const { id } = await house.space("Alpha", [ada]);
  const cookie = await cookieFor(house, ada);
  const [name = "", bearer = ""] = cookie.split("=");
  for (const answer of [
    await call("/v1/spaces", { bearer }),
    await call(`/v1/spaces/${id}/events?token=${bearer}`),
    await withCookie("/v1/spaces", `${name}=${ada.token}`),
  ]) {
    expect(await problemIn(answer)).toMatchObject({ code: "unauthorized" });
  }
  const { session } = await expectOk(
    z.object({ session: z.null() }),
    withCookie("/v1/session", `${name}=${ada.token}`),
  );
  expect(session).toBeNull();
  expect((await withCookie("/v1/spaces", cookie)).status).toBe(200);
  expect((await call("/v1/spaces", { bearer: ada.token })).status).toBe(200);
});

test("[C14] a sign-in ends the session whose place it takes, one too many the oldest", async () => {
  const house = await openHouse();
  const [ada, bob] = [await house.person("Ada"), await house.person("Bob")];
  const first = await cookieFor(house, ada);
  const second = cookieOf(await signIn(await codeBy(house.secretKey, bob.id), first));
  expect((await withCookie("/v1/spaces", first)).status).toBe(401);
  expect((await withCookie("/v1/spaces", second)).status).toBe(200);
  const expiresAt = Date.now() + 1_000_000;
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  for (let at = 0; at <= maxSessionsOfPerson; at += 1) {
    const code = { hash: `hash ${at}`, entityId: ada.id, madeBy: null, issuer: house.keyId };
    await workspace.addSignInCode(code);
    await workspace.useSignInCode(code.hash, { id: `session ${at}`, expiresAt: expiresAt + at });
  }
  const lives = async (at: number): Promise<boolean> => unwrap(await workspace.sessionLives(`session ${at}`));
  expect([await lives(0), await lives(1), await lives(maxSessionsOfPerson)]).toEqual([false, true, true]);
  vi.setSystemTime(expiresAt + 1);
  expect(await lives(1)).toBe(false);
  await call(`/v1/entities/${bob.id}`, { method: "DELETE", bearer: house.secretKey });
  expect((await withCookie("/v1/spaces", second)).status).toBe(401);
});

test("[C14] [S5] a socket opened before its space heard of the end closes once it has heard", async () => {
  const house = await openHouse();
  const [ada, bob] = [await house.person("Ada"), await house.person("Bob")];
  const { id } = await house.space("Alpha", [ada, bob]);
  const [cookie, other] = [await cookieFor(house, ada), await cookieFor(house, bob)];
  expect((await withCookie("/v1/spaces", cookie)).status).toBe(200);
  const { sid } = z.object({ sid: z.string() }).parse(decodeJwt(cookie.split("=")[1] ?? ""));
  // As from another place, whose memory this one does not share.
  await env.WORKSPACE.getByName(house.workspaceId).endSession(sid);
  const late = await open(`/v1/spaces/${id}/stream`, cookie);
  const living = await open(`/v1/spaces/${id}/stream`, other);
  await vi.waitUntil(() => late.closed !== undefined);
  expect(late.closed).toBe(4401);
  await passTime(keyProofMs - keyProofLeadMs, env.SPACE.getByName(id));
  // One proof is enough: from then on the space is told.
  const proofs = () =>
    runInDurableObject(stubOf(env.SPACE.getByName(id)), (_, state) =>
      state.getWebSockets().map((socket) => socket.deserializeAttachment().provenUntil),
    );
  await vi.waitFor(async () => expect(await proofs()).toEqual([null]));
  await passTime(10 * keyProofMs, env.SPACE.getByName(id));
  expect(living.closed).toBeUndefined();
  await signOut(other);
  await vi.waitUntil(() => living.closed !== undefined);
});

test("[C14] [S5] a block's socket closes once its session has ended", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const agent = await house.agent({ name: "Nova" });
  const { id } = await house.space("Alpha", [ada, agent]);
  const path = `/v1/agents/${agent.id}/blocks`;
  const block = { label: "notes", type: "core", content: "Tea" };
  await call(path, { bearer: house.secretKey, body: block });
  await call(`${path}/notes/spaces/${id}`, { bearer: house.secretKey, method: "PUT", body: {} });
  const [phone, desk] = [await cookieFor(house, ada), await cookieFor(house, ada)];
  const stream = `/v1/spaces/${id}/agents/${agent.id}/blocks/notes/stream`;
  const [doomed, staying] = [await open(stream, phone), await open(stream, desk)];
  await signOut(phone);
  await passTime(subscriberProofMs, env.AGENT.getByName(agent.id));
  await vi.waitUntil(() => doomed.closed !== undefined);
  expect([doomed.closed, staying.closed]).toEqual([4401, undefined]);
});

test("[C14] a sign-in link is void once who made it may make none any more", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const [boss, chief, gone] = [
    await house.person("Boss", "admin"),
    await house.person("Chief", "admin"),
    await house.person("Gone", "admin"),
  ];
  const key = await expectOk(
    z.object({ key: z.object({ id: z.string() }), secretKey: z.string() }),
    call("/v1/workspace/keys", { method: "POST", bearer: house.secretKey }),
  );
  // A session that the boss made for the chief makes links by the right of both.
  const asChief = await expectOk(
    z.object({ token: z.string() }),
    call("/v1/tokens", { bearer: boss.token, body: { entityId: chief.id } }),
  );
  const makers = { key: key.secretKey, boss: boss.token, gone: gone.token, both: asChief.token };
  const codes: [string, string][] = [];
  for (const [name, bearer] of Object.entries(makers)) codes.push([name, await codeBy(bearer, ada.id)]);
  const still = [
    await codeBy(house.secretKey, ada.id),
    await codeBy(chief.token, ada.id),
    await codeBy(house.secretKey, ada.id, boss.id),
  ];
  const change = (path: string, method: string, body?: unknown) =>
    call(path, { method, bearer: house.secretKey, ...(body ? { body } : {}) });
  await change(`/v1/workspace/keys/${key.key.id}`, "DELETE");
  await change(`/v1/entities/${boss.id}`, "PATCH", { role: "member" });
  await change(`/v1/entities/${gone.id}`, "DELETE");
  for (const [name, code] of codes) {
    expect(await problemIn(await signIn(code)), name).toMatchObject({ code: "unauthorized" });
  }
  for (const code of still) expect((await signIn(code)).status).toBe(201);
});
