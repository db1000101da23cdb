import { listDurableObjectIds } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";
import { adminKey, type Call, call, type House, ids, openHouse } from "../support/house.ts";
import { fill, guarded, guestBodies, isForOperator, type Operation, problemIn, takesEntities } from "./operations.ts";

/** Every route against every kind of bad caller and bad input, from the API's own document. */
let house: House;
let actor: { id: string; token: string };
beforeAll(async () => {
  house = await openHouse();
  actor = await house.person("Mona");
});

const send = (operation: Operation, path: string, options: Call): Promise<Response> =>
  call(path, {
    method: operation.method,
    ...(operation.requestBody && options.body === undefined ? { body: {} } : {}),
    ...options,
    headers: { ...(operation.path.endsWith("/stream") ? { upgrade: "websocket" } : {}), ...options.headers },
  });

const rightful = (operation: Operation): Call =>
  isForOperator(operation) ? { bearer: adminKey } : { bearer: house.secretKey, as: actor.id };

const spaceId = ids.mint("spc");
const agentId = ids.mint("ent");
const issued: Record<string, string> = {
  spaceId,
  agentId,
  workspaceId: ids.mint("wsp"),
  entityId: ids.mint("ent"),
  erasureId: ids.mint("spc"),
  keyId: ids.mint("key"),
  endpointId: ids.mint("ep"),
  deviceId: ids.mint("dev"),
  runId: ids.mintOwned("run", agentId),
  eventId: ids.mintOwned("evt", agentId),
  hookId: ids.mintOwned("hook", agentId),
  messageId: ids.mintOwned("msg", spaceId),
  toolCallId: ids.mintOwned("tc", agentId),
  otherAgentId: ids.mint("ent"),
};
const hasIds = (operation: Operation): boolean =>
  Object.keys(issued).some((name) => operation.path.includes(`{${name}}`));
const withIds = guarded.filter(hasIds);
/** A speech is no JSON as a whole: `guests` tries it. */
const withBody = guarded.filter(({ requestBody, path }) => requestBody && !path.endsWith("/speech"));

describe("[S5] without valid credentials every route answers 401", () => {
  test.each(guarded)("$name", async (operation) => {
    const path = fill(operation.path, issued);
    const sk = house.secretKey;
    const bearers = [
      undefined,
      "nonsense",
      "a.b.c",
      "sk_nonsense",
      `${sk.slice(0, -3)}AAA`,
      `sk_${ids.mint("wsp")}_${"A".repeat(43)}`,
    ];
    for (const bearer of bearers) {
      const answer = await send(operation, path, bearer === undefined ? {} : { bearer });
      expect(answer.status, bearer).toBe(401);
      expect(answer.headers.get("www-authenticate")).toContain("Bearer");
      expect(await problemIn(answer)).toMatchObject({ code: "unauthorized" });
    }
  });
});

describe("[S1] who has no place at a route is refused with 403", () => {
  test.each(guarded)("$name", async (operation) => {
    const path = fill(operation.path, issued);
    const bearers = isForOperator(operation) ? [house.secretKey, actor.token] : [adminKey];
    if (!isForOperator(operation) && !takesEntities(operation)) bearers.push(actor.token);
    for (const bearer of bearers) {
      expect(await problemIn(await send(operation, path, { bearer }))).toMatchObject({ code: "forbidden" });
    }
  });
});

describe("[S6] an id that was not issued answers 404 and wakes nothing", () => {
  test.each(withIds)("$name", async (operation) => {
    const before = [await listDurableObjectIds(env.SPACE as never), await listDurableObjectIds(env.AGENT as never)];
    for (const name of Object.keys(issued).filter((one) => operation.path.includes(`{${one}}`))) {
      for (const invented of ["x", "a%20b", `${issued[name]?.slice(0, -1)}_`, ids.mint("str"), "%F0%9F%92%A9"]) {
        const path = fill(operation.path, { ...issued, [name]: invented });
        const answer = await send(operation, path, rightful(operation));
        expect(await problemIn(answer), invented).toMatchObject({ code: "not_found" });
      }
    }
    const after = [await listDurableObjectIds(env.SPACE as never), await listDurableObjectIds(env.AGENT as never)];
    expect(after).toEqual(before);
  });
});

describe("[S4] [S6] a bad ?space= is refused and wakes nothing", () => {
  const ofMind = guarded.filter(({ parameters }) => parameters.some(({ name }) => name === "space"));
  const invented = `${spaceId.slice(0, -1)}${spaceId.endsWith("0") ? "1" : "0"}`;
  test.each(ofMind)("$name", async (operation) => {
    const before = await listDurableObjectIds(env.SPACE as never);
    const refusedAs = async (query: string) => {
      const answer = await send(operation, `${fill(operation.path, issued)}?${query}`, rightful(operation));
      return (await problemIn(answer)).code;
    };
    expect(await refusedAs("space=x")).toBe("invalid_request");
    expect(await refusedAs(`space=${spaceId}&space=${spaceId}`)).toBe("invalid_request");
    expect(await refusedAs(`space=${agentId}`)).toBe("invalid_request");
    expect(await refusedAs(`space=${invented}`)).toBe("not_found");
    expect(await listDurableObjectIds(env.SPACE as never)).toEqual(before);
    expect(await refusedAs(`space=${spaceId}`)).toBe("not_found");
  });
});

describe("[S6] an id that was issued and is of nothing here answers 404", () => {
  const bodies: Record<string, unknown> = {
    "POST /v1/agents/{agentId}/trigger": { serviceName: "jira", payload: {} },
    "POST /v1/agents/{agentId}/hooks": { scheme: "github", name: "github" },
    "PATCH /v1/agents/{agentId}/hooks/{hookId}": { name: "x" },
    "POST /v1/agents/{agentId}/hooks/{hookId}/rotate": {},
    "POST /v1/workspace/endpoints/{endpointId}/redeliver": { from: "2026-02-18T15:06:55.000Z" },
    "PUT /v1/agents/{agentId}/memories/{key}": { value: "x" },
    "PUT /v1/agents/{agentId}/plans/{planId}": { name: "x", instruction: "x", runAfter: "1 hour" },
    "POST /v1/agents/{agentId}/blocks": { label: "notes", type: "core" },
    "POST /v1/agents/{agentId}/blocks/{label}/operations": { operations: [{ op: "undo" }] },
    "POST /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/operations": { operations: [{ op: "undo" }] },
    "POST /v1/agents/{agentId}/archival": { content: "x" },
    "POST /v1/spaces/{spaceId}/messages": { text: "hello" },
    "PATCH /v1/spaces/{spaceId}/messages/{messageId}": { text: "hello" },
    "POST /v1/operator/workspaces/{workspaceId}/suspend": { reason: "unpaid" },
    "POST /v1/spaces/{spaceId}/tool-calls/{toolCallId}/result": { result: 1 },
    "POST /v1/tool-calls/{toolCallId}/claim": { holder: "desk" },
    "POST /v1/tool-calls/{toolCallId}/result": { result: 1 },
  };
  test.each(withIds)("$name", async (operation) => {
    const body =
      operation.path.endsWith("/members") && operation.requestBody
        ? { entityId: actor.id }
        : operation.path.endsWith("/read")
          ? { messageId: ids.mintOwned("msg", spaceId) }
          : (bodies[operation.name] ?? guestBodies[operation.name]);
    const takes = (name: string): boolean =>
      operation.parameters.some((one) => one.in === "query" && one.name === name);
    const key = takes("key") ? "?key=k" : "";
    const query = takes("q") ? "?q=x" : takes("callId") ? `?messageId=${ids.mintOwned("msg", spaceId)}` : key;
    const answer = await send(operation, `${fill(operation.path, issued)}${query}`, {
      ...rightful(operation),
      ...(body === undefined ? {} : { body }),
    });
    expect(await problemIn(answer)).toMatchObject({ code: "not_found" });
  });
});

describe("[S4] a body that is no JSON, or not of the shape, answers 400", () => {
  test.each(withBody)("$name", async (operation) => {
    const path = fill(operation.path, issued);
    const as = rightful(operation);
    for (const body of ["{", "", "\u0000", '{"a":', "{'a': 1}"]) {
      expect(await problemIn(await send(operation, path, { ...as, body })), body).toMatchObject({ status: 400 });
    }
    for (const body of [[], null, 7, "text", { unexpected: true }, { name: 7, text: {}, value: [], serviceName: [] }]) {
      const sent = await send(operation, path, { ...as, body: JSON.stringify(body) });
      const problem = await problemIn(sent);
      expect(problem, JSON.stringify(body)).toMatchObject({ code: "invalid_request" });
      expect(problem.issues?.length).toBeGreaterThan(0);
    }
    const form = await send(operation, path, { ...as, body: "a=1", headers: { "content-type": "text/plain" } });
    expect(await problemIn(form)).toMatchObject({
      code: "invalid_json",
      detail: expect.stringContaining("application/json"),
    });
  });
});

describe("[S4] a body that nests without end, or holds half a character, answers 400", () => {
  const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  test.each(withBody)("$name", async (operation) => {
    const path = fill(operation.path, issued);
    const deep = [nested(64), nested(100_000), `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`];
    for (const held of [...deep, '"\\ud800"', '{"length":{"toString":null}}']) {
      for (const name of ["name", "payload", "text", "value"]) {
        const answer = await send(operation, path, { ...rightful(operation), body: `{"${name}":${held}}` });
        expect(await problemIn(answer), held.slice(0, 20)).toMatchObject({ code: "invalid_request" });
      }
    }
    const key = await send(operation, path, { ...rightful(operation), body: '{"\\udc00":1}' });
    expect(await problemIn(key)).toMatchObject({ code: "invalid_request" });
  });

  test("a payload of 60 levels is taken", async () => {
    const { id } = await house.agent({ name: "Analyst" });
    const body = `{"serviceName":"jira","payload":${nested(60)}}`;
    expect((await call(`/v1/agents/${id}/trigger`, { bearer: house.secretKey, body })).status).toBe(202);
  });
});

describe("[S4] a query that is not of the shape answers 400", () => {
  const withQuery = guarded.flatMap((operation) =>
    operation.parameters.filter((one) => one.in === "query").map((one) => ({ operation, query: one.name })),
  );
  test.each(withQuery)("$operation.name ?$query", async ({ operation, query }) => {
    const path = fill(operation.path, issued);
    const free = ["q", "target", "key"].includes(query) ? ["", "%20"] : undefined;
    const values = free ?? (query === "cursor" ? ["x", "-1", "1e9"] : ["x", "-1", "1.5", "999999999999999999"]);
    for (const value of values) {
      const answer = await send(operation, `${path}?${query}=${value}`, rightful(operation));
      // A list inside an agent, a space, an endpoint or a workspace that does not exist has no cursor to be wrong.
      const lists =
        query === "cursor" &&
        /^\/v1\/(?:agents|spaces|workspace\/endpoints|operator\/workspaces)\/\{/.test(operation.path)
          ? [400, 404]
          : [400];
      expect(lists, `${value}: ${await answer.clone().text()}`).toContain((await problemIn(answer)).status);
    }
  });
});

test("[B3] a body beyond 1 MiB is refused before it is parsed", async () => {
  const body = JSON.stringify({ name: "x".repeat(1024 * 1024) });
  const answer = await call("/v1/entities", { bearer: house.secretKey, body });
  expect(await problemIn(answer)).toMatchObject({
    code: "payload_too_large",
    detail: expect.stringContaining("1048576"),
  });
});

test("[S4] a text beyond 32 KiB is refused as too long", async () => {
  const path = `/v1/spaces/${ids.mint("spc")}/messages`;
  const answer = await call(path, { bearer: actor.token, body: { text: "ü".repeat(16 * 1024 + 1) } });
  expect(await problemIn(answer)).toMatchObject({ code: "text_too_long", status: 413 });
});

test("an address that does not exist answers 404, a method that it does not take 405 with Allow", async () => {
  for (const path of ["/v1", "/v1/nothing", "/v1/spaces/", "/v1/agents/x/blocks", "/v1/hooks", "/v1/tool-calls/x"]) {
    expect(await problemIn(await call(path, { bearer: house.secretKey })), path).toMatchObject({ code: "not_found" });
  }
  const wrong = await call("/v1/spaces", { method: "PUT", bearer: house.secretKey, body: {} });
  expect(wrong.headers.get("allow")).toBe("GET, HEAD, POST");
  expect(await problemIn(wrong)).toMatchObject({ code: "method_not_allowed" });
  const alsoWrong = await call(`/v1/entities/${actor.id}`, { method: "POST", body: {} });
  expect(alsoWrong.headers.get("allow")).toBe("DELETE, GET, HEAD, PATCH");
});

test("a GET of the stream that is no upgrade answers 426", async () => {
  const answer = await call(`/v1/spaces/${ids.mint("spc")}/stream`, { bearer: actor.token });
  expect(await problemIn(answer)).toMatchObject({ code: "upgrade_required", status: 426 });
});

test("[S5] a token in the query counts for streams only", async () => {
  const there = await call(`/v1/spaces?token=${actor.token}`);
  expect(there.status).toBe(401);
  const stream = await call(`/v1/spaces/${ids.mint("spc")}/events?token=${actor.token}`);
  expect(stream.status).toBe(404);
});
