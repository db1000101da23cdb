import { expect, test } from "vitest";
import { adminKey, call, openHouse } from "../support/house.ts";

test("a workspace is created by the operator, and its key opens it", async () => {
  const house = await openHouse("Atelier");
  const answer = await call("/v1/workspace", { bearer: house.secretKey });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ workspace: { id: house.workspaceId, name: "Atelier" } });
});

test("people and tokens are made in it", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const answer = await call(`/v1/entities/${mona.id}`, { bearer: mona.token });
  expect(await answer.json()).toMatchObject({ entity: { id: mona.id, name: "Mona", type: "human", role: "member" } });
});

test("docs", async () => {
  const doc = await call("/docs");
  console.log(await doc.text());
  expect((await call("/v1/workspaces", { bearer: adminKey, body: "{" })).status).toBe(400);
});
