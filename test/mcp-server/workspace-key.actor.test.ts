import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { Key } from "../../src/protocol/workspace.ts";
import { operations } from "../routes/operations.ts";
import { call as callApi, expectOk, type House, openHouse, type Participant } from "../support/house.ts";
import { connect } from "./connect.ts";

/** The tools of a secret key: the routes of the API that it may ask. */
let house: House;
let mona: Participant;
beforeAll(async () => {
  house = await openHouse();
  mona = await house.person("Mona");
});

const keyOf = async (...scopes: string[]): Promise<string> => {
  const created = callApi("/v1/workspace/keys", { bearer: house.secretKey, body: { name: "Narrow", scopes } });
  return (await expectOk(z.object({ key: Key, secretKey: z.string() }), created)).secretKey;
};

/** Operations for keys that answer once, with JSON or nothing. A claim waits for a run: that is for a guest's program. */
const forKeys = operations.filter(({ security, requestBody, responses, path }) => {
  if (path.endsWith("/claims")) return false;
  const types = Object.values(responses).flatMap(({ content = {} }) => Object.keys(content));
  const isJson = types.every((type) => type.endsWith("json") && type !== "application/x-ndjson");
  const isLive = security.some((scheme) => "queryToken" in scheme);
  const hasJsonBody = requestBody === undefined || Object.keys(requestBody.content).join() === "application/json";
  return security.some((scheme) => "secretKey" in scheme) && isJson && !isLive && hasJsonBody && path !== "/mcp";
});

const toolsOf = async (secretKey: string): Promise<string[]> => {
  const { client } = await connect(secretKey);
  return (await client.listTools()).tools.map(({ name }) => name).toSorted();
};

test("[M1] a full key has a tool for each JSON route, and a narrowed one those of its scopes", async () => {
  const namesOf = (some: typeof operations): string[] => some.map(({ operationId }) => operationId).toSorted();
  expect(await toolsOf(house.secretKey)).toEqual(namesOf(forKeys));
  expect(forKeys.length).toBeGreaterThan(90);
  const reads = forKeys.filter(({ method }) => method === "GET");
  expect(await toolsOf(await keyOf("read"))).toEqual(namesOf(reads));
  expect(await toolsOf(await keyOf("hooks"))).toEqual(["postAgentsAgentIdTrigger"]);
  const tokens = ["postEntitiesEntityIdSignInLinks", "postEntitiesEntityIdSignOut", "postTokens"];
  expect(await toolsOf(await keyOf("tokens"))).toEqual(tokens);
});

test("[M1] [M2] a key's tools do what the routes do, as the entity that is named", async () => {
  const { client, call } = await connect(house.secretKey);
  const make = { name: "Kitchen", members: [{ entityId: mona.id }], idempotencyKey: "kitchen" };
  const { space } = (await call("postSpaces", make)).json;
  expect((await call("postSpaces", make)).json.space.id).toBe(space.id);
  const said = { spaceId: space.id, text: "Quinces", xEntityId: mona.id };
  expect((await call("postSpacesSpaceIdMessages", said)).json.message.sender.id).toBe(mona.id);
  const { items } = (await call("getSpacesSpaceIdMessages", { spaceId: space.id, limit: 1, q: "quin" })).json;
  expect(items).toMatchObject([{ text: "Quinces" }]);
  const { json } = await call("postSpacesSpaceIdMessages", { ...said, xEntityId: undefined });
  expect(json.code).toBe("acting_entity_required");
  expect((await call("deleteSpacesSpaceId", { spaceId: space.id })).json).toEqual({ done: true });
  const uri = `colloquy://spaces/${space.id}`;
  await expect(client.readResource({ uri })).rejects.toMatchObject({ data: { uri } });
});

test("[M1] no value of an argument leads to another route", async () => {
  const { call } = await connect(house.secretKey);
  for (const name of ["", ".", "..", "a/../../keys", "%2e%2e", "a?b=c", "a#b"]) {
    const { isError, json } = await call("deleteWorkspaceSecretsName", { name });
    expect([isError, json.code], name).toEqual([true, "invalid_request"]);
  }
  const nulls = await call("getSpaces", { limit: null });
  expect(nulls.json).toMatchObject({ code: "invalid_request", issues: [{ path: "limit" }] });
});

test("[M1] each tool's schema is whole, and all of them together are small enough to be listed", async () => {
  const { client } = await connect(house.secretKey);
  const { tools } = await client.listTools();
  for (const { name, inputSchema } of tools) {
    const text = JSON.stringify(inputSchema);
    const referred = [...text.matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/g)].map(([, to = ""]) => to);
    expect(Object.keys(inputSchema.$defs ?? {}), name).toEqual(expect.arrayContaining(referred));
    expect(name.length, name).toBeLessThanOrEqual(64);
  }
  expect(JSON.stringify(tools).length).toBeLessThan(180_000);
});
