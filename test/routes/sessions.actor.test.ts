import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { SignInLink } from "../../src/protocol/workspace.ts";
import { app } from "../../src/routes/app.ts";
import { maxSignInCodes, signInCodeMs } from "../../src/workspace/bounds.ts";
import { type Call, call, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { codeBy, cookieBy, cookieOf, origin } from "../support/session.ts";
import { problemIn } from "./operations.ts";

const foreign = "https://evil.test";

const linkFor = async (house: House, { id }: { id: string }, bearer = house.secretKey): Promise<string> =>
  (await expectOk(SignInLink, call(`/v1/entities/${id}/sign-in-links`, { method: "POST", bearer }))).link;
const codeFor = (house: House, { id }: { id: string }): Promise<string> => codeBy(house.secretKey, id);

const signIn = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  call("/v1/session", { body, headers: { origin, ...headers } });

const cookieFor = (house: House, { id }: Participant): Promise<string> => cookieBy(house.secretKey, id);

const whoIs = async (cookie: string): Promise<string | undefined> => {
  const answer = z.object({ session: z.object({ entity: z.object({ name: z.string() }) }).nullable() });
  return (await expectOk(answer, call("/v1/session", { headers: { cookie } }))).session?.entity.name;
};

const withCookie = (path: string, cookie: string, { headers, ...options }: Call = {}): Promise<Response> =>
  call(path, { ...options, headers: { cookie, ...headers } });

test("[C14] a link's code becomes a cookie that no script reads and no other site sends, once", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const link = await linkFor(house, ada);
  expect(link).toMatch(/^https:\/\/colloquy\.test\/#sign-in=si_wsp_\w{34}_[\w-]{43}$/);
  const code = link.split("#sign-in=")[1] ?? "";
  const answer = await signIn({ code });
  expect(answer.status).toBe(201);
  const cookie = answer.headers.get("set-cookie") ?? "";
  expect(cookie).toMatch(
    /^__Host-colloquy_session=[\w.-]+; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
  );
  expect(await answer.text()).not.toContain(cookieOf(answer).split("=")[1]);
  expect(await whoIs(cookieOf(answer))).toBe("Ada");
  expect((await withCookie("/v1/spaces", cookieOf(answer))).status).toBe(200);
  const again = await signIn({ code });
  expect(again.headers.get("set-cookie")).toBeNull();
  expect(await problemIn(again)).toMatchObject({ code: "unauthorized" });
});

test("[C14] of many who use one code at the same time, one is signed in", async () => {
  const house = await openHouse();
  const code = await codeFor(house, await house.person("Ada"));
  const answers = await Promise.all(Array.from({ length: 12 }, () => signIn({ code })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array.from({ length: 11 }, () => 401)]);
});

test("[C14] a browser that is signed in is asked before it takes another session", async () => {
  const house = await openHouse();
  const [ada, bob] = [await house.person("Ada"), await house.person("Bob")];
  const cookie = await cookieFor(house, ada);
  const code = await codeFor(house, bob);
  const asked = await signIn({ code }, { cookie });
  expect(asked.headers.get("set-cookie")).toBeNull();
  expect(await problemIn(asked)).toMatchObject({
    code: "signed_in",
    detail: "You are signed in as Ada. Sign in as Bob instead?",
  });
  expect(await whoIs(cookie)).toBe("Ada");
  // The question has not used the code up.
  expect(await whoIs(cookieOf(await signIn({ code, replace: true }, { cookie })))).toBe("Bob");
  // Her own new link, and one after her session is over, need no question.
  expect((await signIn({ code: await codeFor(house, ada) }, { cookie })).status).toBe(201);
  await call(`/v1/entities/${ada.id}`, { method: "DELETE", bearer: house.secretKey });
  expect((await signIn({ code: await codeFor(house, bob) }, { cookie })).status).toBe(201);
});

test("[C14] a person is asked before an admin's session for them replaces their own", async () => {
  const house = await openHouse();
  const [ada, boss, chief] = [
    await house.person("Ada"),
    await house.person("Boss", "admin"),
    await house.person("Chief", "admin"),
  ];
  const cookie = await cookieFor(house, ada);
  const code = await codeBy(boss.token, ada.id);
  const asked = await signIn({ code }, { cookie });
  expect(asked.headers.get("set-cookie")).toBeNull();
  expect(await problemIn(asked)).toMatchObject({
    code: "signed_in",
    detail: "You are signed in as Ada. Sign in as Ada by Boss's link instead, and approve nothing?",
  });
  expect(await whoIs(cookie)).toBe("Ada");
  const taken = await signIn({ code, replace: true }, { cookie });
  expect(await taken.json()).toMatchObject({ session: { madeBy: { name: "Boss" } } });
  // Another admin's asks too. The same admin's, and her own, take nothing more from her.
  const made = cookieOf(taken);
  const another = await signIn({ code: await codeBy(chief.token, ada.id) }, { cookie: made });
  expect(await problemIn(another)).toMatchObject({
    code: "signed_in",
    detail: expect.stringContaining("by Chief's link"),
  });
  const again = await signIn({ code: await codeBy(boss.token, ada.id) }, { cookie: made });
  expect(again.status).toBe(201);
  expect((await signIn({ code: await codeFor(house, ada) }, { cookie: cookieOf(again) })).status).toBe(201);
});

test("[C14] a code that ran out, was never issued, or whose person is gone signs nobody in", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const [late, gone] = [await codeFor(house, ada), await codeFor(house, await house.person("Bob"))];
  const [, workspaceId = "", secret = ""] = /^si_(wsp_\w{34})_(.*)$/.exec(late) ?? [];
  const never = [
    `si_${workspaceId}_${"A".repeat(43)}`,
    `si_${ids.mint("wsp")}_${secret}`,
    late.slice(0, -1),
    "",
    house.secretKey,
  ];
  const [bob] = (
    await (
      await call("/v1/entities?limit=10", { bearer: house.secretKey })
    ).json<{ items: { id: string; name: string }[] }>()
  ).items.filter(({ name }) => name === "Bob");
  await call(`/v1/entities/${bob?.id}`, { method: "DELETE", bearer: house.secretKey });
  for (const code of [...never, gone])
    expect(await problemIn(await signIn({ code }))).toMatchObject({ code: "unauthorized" });
  vi.setSystemTime(Date.now() + signInCodeMs + 1);
  try {
    expect(await problemIn(await signIn({ code: late }))).toMatchObject({ code: "unauthorized" });
  } finally {
    vi.useRealTimers();
  }
  for (const body of [
    {},
    { code: 1 },
    { code: "x".repeat(201) },
    { code: late, replace: "yes" },
    { code: late, more: 1 },
  ]) {
    expect(await problemIn(await signIn(body))).toMatchObject({ code: "invalid_request" });
  }
});

test("[C14] a session from another origin is refused, at every kind of request and at sign-in", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const { id } = await house.space("Alpha", [ada]);
  const cookie = await cookieFor(house, ada);
  const places: Record<string, string>[] = [
    { origin: foreign },
    { origin: "null" },
    { origin: "https://app.colloquy.test" },
    { origin: "http://colloquy.test" },
    { origin: "https://colloquy.test:8443" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ];
  const say = (headers: Record<string, string>) =>
    withCookie(`/v1/spaces/${id}/messages`, cookie, { body: { text: "hello" }, headers });
  const socket = (headers: Record<string, string>) =>
    withCookie(`/v1/spaces/${id}/stream`, cookie, { headers: { upgrade: "websocket", ...headers } });
  const code = await codeFor(house, ada);
  for (const headers of places) {
    const asked = [
      say(headers),
      socket(headers),
      withCookie("/v1/spaces", cookie, { headers }),
      withCookie(`/v1/spaces/${id}/events`, cookie, { headers }),
      withCookie("/v1/session", cookie, { headers }),
      withCookie("/v1/session", cookie, { method: "DELETE", headers }),
      call("/v1/session", { body: { code }, headers }),
    ];
    for (const answer of await Promise.all(asked)) {
      expect(answer.headers.get("set-cookie")).toBeNull();
      expect(await problemIn(answer)).toMatchObject({ code: "foreign_origin", status: 403 });
    }
  }
  const messages = await withCookie(`/v1/spaces/${id}/messages`, cookie);
  expect(await messages.json()).toMatchObject({ items: [] });
  for (const headers of [{ origin }, { origin, "sec-fetch-site": "same-origin" }, {}]) {
    expect((await say(headers)).status).toBe(201);
    const answer = await socket(headers);
    expect(answer.status).toBe(101);
    answer.webSocket?.accept();
    answer.webSocket?.close();
  }
  // A page of another origin may still send its own credentials.
  const own = await withCookie("/v1/spaces", cookie, { bearer: ada.token, headers: { origin: foreign } });
  expect(own.status).toBe(200);
  expect((await signIn({ code })).status).toBe(201);
});

test("[C14] a cookie holds a token only, and stands behind what else a request sends", async () => {
  const house = await openHouse();
  const [ada, boss] = [await house.person("Ada"), await house.person("Boss", "admin")];
  const name = "__Host-colloquy_session";
  for (const value of [house.secretKey, env.ADMIN_KEY ?? "", "x", ""]) {
    expect((await withCookie("/v1/spaces", `${name}=${value}`)).status).toBe(401);
  }
  // Over https, what a subdomain may have set is not looked at.
  expect((await withCookie("/v1/spaces", `colloquy_session=${ada.token}`)).status).toBe(401);
  const cookie = await cookieFor(house, boss);
  for (const headers of [
    { authorization: "Basic eDp5" },
    { authorization: "Bearer wrong" },
    { "x-secret-key": "wrong" },
  ]) {
    expect((await withCookie("/v1/spaces", cookie, { headers })).status).toBe(401);
  }
  expect((await withCookie("/v1/agents", cookie, { bearer: ada.token })).status).toBe(403);
  expect((await withCookie("/v1/agents", cookie)).status).toBe(200);
  expect((await withCookie("/v1/workspace/keys", cookie, { method: "POST" })).status).toBe(403);
});

test("[C14] a page that takes the session for another person's gets nothing, by socket neither", async () => {
  const house = await openHouse();
  const [ada, bob] = [await house.person("Ada"), await house.person("Bob")];
  const { id } = await house.space("Alpha", [ada, bob]);
  const agent = await house.agent({ name: "Nova" });
  const cookie = await cookieFor(house, bob);
  const upgrade = { upgrade: "websocket" };
  const asAda = [
    withCookie(`/v1/spaces/${id}/stream?as=${ada.id}`, cookie, { headers: upgrade }),
    withCookie(`/v1/spaces/${id}/stream`, cookie, { headers: upgrade, as: ada.id }),
    withCookie(`/v1/spaces/${id}/events?as=${ada.id}`, cookie),
    withCookie(`/v1/spaces/${id}/agents/${agent.id}/blocks/notes/stream?as=${ada.id}`, cookie, { headers: upgrade }),
    withCookie(`/v1/spaces/${id}/messages`, cookie, { as: ada.id, body: { text: "hello" } }),
    withCookie("/v1/spaces", cookie, { as: ada.id }),
    withCookie("/v1/session", cookie, { as: ada.id, method: "DELETE" }),
  ];
  for (const answer of await Promise.all(asAda)) {
    expect(answer.headers.get("set-cookie")).toBeNull();
    expect(await problemIn(answer)).toMatchObject({ code: "signed_in", status: 409 });
  }
  expect(await (await withCookie(`/v1/spaces/${id}/messages`, cookie)).json()).toMatchObject({ items: [] });
  const own = await withCookie(`/v1/spaces/${id}/stream?as=${bob.id}`, cookie, { headers: upgrade });
  expect(own.status).toBe(101);
  own.webSocket?.accept();
  own.webSocket?.close();
  expect((await withCookie("/v1/session", cookie, { as: bob.id, method: "DELETE" })).status).toBe(204);
  // It says the same of a token, which no browser sends by itself.
  const token = await call(`/v1/spaces/${id}/stream?as=${ada.id}&token=${bob.token}`, { headers: upgrade });
  expect(await problemIn(token)).toMatchObject({ code: "forbidden" });
});

test("[C14] signing out takes the cookie away; over http it is not marked as secure", async () => {
  const house = await openHouse();
  const cookie = await cookieFor(house, await house.person("Ada"));
  const out = await withCookie("/v1/session", cookie, { method: "DELETE", headers: { origin } });
  expect([out.status, out.headers.get("set-cookie")]).toEqual([204, expect.stringContaining("=; Max-Age=0; ")]);
  expect(await whoIs("")).toBeUndefined();
  const local = "http://127.0.0.1:8787";
  const body = JSON.stringify({ code: await codeFor(house, await house.person("Bob")) });
  const headers = { origin: local, "content-type": "application/json" };
  const answer = await app.fetch(new Request(`${local}/v1/session`, { method: "POST", body, headers }), env);
  expect(answer.headers.get("set-cookie")).toMatch(
    /^colloquy_session=[^;]+; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Strict$/,
  );
  const request = new Request(`${local}/v1/spaces`, { headers: { cookie: cookieOf(answer) } });
  expect((await app.fetch(request, env)).status).toBe(200);
});

describe("[C14] behind a proxy that ends TLS", () => {
  const inside = "http://10.0.0.7:8787";
  const tls = { "x-forwarded-proto": "https" };

  /** The worker as such a proxy asks it. */
  const ask = (path: string, init: RequestInit, PUBLIC_ORIGIN?: string): Promise<Response> => {
    const request = new Request(`${inside}${path}`, init);
    return Promise.resolve(app.fetch(request, PUBLIC_ORIGIN === undefined ? env : { ...env, PUBLIC_ORIGIN }));
  };
  const enter = async (house: House, headers: Record<string, string>, named?: string): Promise<Response> => {
    const body = JSON.stringify({ code: await codeFor(house, await house.person("Ada")) });
    return ask(
      "/v1/session",
      { method: "POST", body, headers: { "content-type": "application/json", ...headers } },
      named,
    );
  };

  test.each([
    { how: "that says so", headers: { ...tls, origin: "https://10.0.0.7:8787" } },
    { how: "of a named origin", headers: { origin: "https://colloquy.example" }, named: "https://colloquy.example/" },
  ])("$how, the session is the secure cookie's alone, and its own origin is https", async ({ headers, named }) => {
    const house = await openHouse();
    const answer = await enter(house, headers, named);
    expect(answer.headers.get("set-cookie")).toMatch(/^__Host-colloquy_session=[^;]+; .*; Secure; SameSite=Strict$/);
    const cookie = cookieOf(answer);
    const list = async (more: Record<string, string>) =>
      (await ask("/v1/spaces", { headers: { ...headers, cookie, ...more } }, named)).status;
    expect(await list({})).toBe(200);
    expect(await list({ cookie: cookie.replace("__Host-", "") })).toBe(401);
    expect(await list({ origin: headers.origin.replace("https", "http") })).toBe(403);
    expect((await enter(house, { ...headers, origin: inside }, named)).status).toBe(403);
    const out = await ask("/v1/session", { method: "DELETE", headers: { ...headers, cookie } }, named);
    expect(out.headers.get("set-cookie")).toMatch(/^__Host-colloquy_session=; Max-Age=0; .*Secure/);
  });

  test("that says nothing, a page of https is told what to set, and gets no session", async () => {
    const house = await openHouse();
    const refused = await problemIn(await enter(house, { origin: "https://10.0.0.7:8787" }));
    expect(refused).toMatchObject({ code: "foreign_origin", detail: expect.stringContaining("PUBLIC_ORIGIN") });
  });

  test("a link leads to the named origin; one that is none is refused by name", async () => {
    const house = await openHouse();
    const ada = await house.person("Ada");
    const make = (named: string) =>
      ask(
        `/v1/entities/${ada.id}/sign-in-links`,
        { method: "POST", headers: { authorization: `Bearer ${house.secretKey}` } },
        named,
      );
    const { link } = await expectOk(SignInLink, make("https://colloquy.example"));
    expect(link).toMatch(/^https:\/\/colloquy\.example\/#sign-in=si_/);
    for (const odd of ["colloquy.example", "https://colloquy.example/app", "https://", "file:///x", "ftp://x"]) {
      expect(await problemIn(await make(odd))).toMatchObject({
        status: 500,
        detail: expect.stringMatching(/PUBLIC_ORIGIN/),
      });
    }
  });
});

test("[C15] over https browsers are told to stay there, over http nothing is said", async () => {
  const told = async (url: string, headers = {}, more = {}): Promise<string | null> =>
    (await app.fetch(new Request(url, { headers }), { ...env, ...more })).headers.get("strict-transport-security");
  const year = "max-age=31536000";
  for (const path of ["/healthz", "/v1/spaces", "/nowhere"]) expect(await told(`${origin}${path}`)).toBe(year);
  expect(await told("http://a.test/healthz")).toBeNull();
  expect(await told("http://a.test/healthz", { "x-forwarded-proto": "https" })).toBe(year);
  expect(await told("http://a.test/healthz", {}, { PUBLIC_ORIGIN: origin })).toBe(year);
  expect(await told("https://a.test/healthz", {}, { PUBLIC_ORIGIN: "http://a.test" })).toBe(year);
});

test("[C14] only the workspace's rights make a link, for its people; they are bounded", async () => {
  const house = await openHouse();
  const [ada, boss] = [await house.person("Ada"), await house.person("Boss", "admin")];
  const make = (id: string, bearer: string) => call(`/v1/entities/${id}/sign-in-links`, { method: "POST", bearer });
  expect((await make(ada.id, boss.token)).status).toBe(201);
  expect((await make(ada.id, ada.token)).status).toBe(403);
  expect((await make(ids.mint("ent"), house.secretKey)).status).toBe(404);
  const agent = await house.agent({ name: "Nova" });
  for (const { id } of [agent, await house.service("Jira")]) {
    expect(await problemIn(await make(id, house.secretKey))).toMatchObject({ code: "conflict" });
  }
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  const add = (hash: string) => workspace.addSignInCode({ hash, entityId: ada.id, madeBy: null, issuer: house.keyId });
  await Promise.all(Array.from({ length: maxSignInCodes - 1 }, (_, at) => add(`hash ${at}`)));
  const refused = await problemIn(await make(ada.id, house.secretKey));
  expect(refused).toMatchObject({ code: "limit_reached", detail: expect.stringContaining("maxSignInCodes") });
});

test("[C15] what an entity is called elsewhere is told to itself and to the workspace's rights", async () => {
  const house = await openHouse();
  const [ada, bob, boss] = [await house.person("Ada"), await house.person("Bob"), await house.person("Boss", "admin")];
  await call(`/v1/entities/${ada.id}`, { method: "PATCH", bearer: house.secretKey, body: { externalId: "crm-77" } });
  const { id } = await house.space("Alpha", [ada, bob]);
  const seenBy = async (bearer: string): Promise<boolean[]> => {
    const paths = ["/v1/entities", `/v1/entities/${ada.id}`, `/v1/spaces/${id}`, "/v1/spaces"];
    const texts = await Promise.all(paths.map(async (path) => (await call(path, { bearer })).text()));
    return texts.map((text) => text.includes("crm-77"));
  };
  expect(await seenBy(bob.token)).toEqual([false, false, false, false]);
  for (const bearer of [ada.token, boss.token, house.secretKey]) {
    expect((await seenBy(bearer)).slice(0, 2)).toEqual([true, true]);
  }
});

test("[C15] the API's document is kept by caches, and not sent again to whoever has it", async () => {
  for (const path of ["/openapi.json", "/docs"]) {
    const first = await call(path);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    expect(await first.text()).not.toBe("");
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await call(path, { headers: { "if-none-match": known } });
      expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
    }
    expect((await call(path, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  }
});

test("[C14] a session of a workspace that is over holds up neither a sign-in nor a sign-out", async () => {
  const [house, other] = [await openHouse(), await openHouse()];
  const cookie = await cookieFor(house, await house.person("Ada"));
  const bob = await other.person("Bob");
  const body = { kind: "workspace", id: house.workspaceId };
  expect((await call("/v1/erasures", { bearer: house.secretKey, body })).status).toBe(202);
  expect(await whoIs(cookieOf(await signIn({ code: await codeFor(other, bob), replace: true }, { cookie })))).toBe(
    "Bob",
  );
  const out = await withCookie("/v1/session", cookie, { method: "DELETE", headers: { origin } });
  expect([out.status, out.headers.get("set-cookie")]).toEqual([204, expect.stringContaining("Max-Age=0")]);
});
