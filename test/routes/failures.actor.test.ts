import { afterEach, expect, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { call, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

afterEach(() => vi.restoreAllMocks());

test("[S3] [S4] an internal failure is answered as one, without its details", async () => {
  const house = await openHouse();
  vi.spyOn(Workspace.prototype, "describe").mockRejectedValue(new Error("SQLITE_FULL in /var/lib with sk_secret"));
  const broken = await problemIn(await call("/v1/workspace", { bearer: house.secretKey }));
  expect(broken).toMatchObject({ status: 500, code: "internal" });
  expect(JSON.stringify(broken)).not.toMatch(/SQLITE|var|sk_/);
});

test("[S4] an agent that cannot be made leaves nothing, and its name is free", async () => {
  const house = await openHouse();
  const make = () => call("/v1/agents", { bearer: house.secretKey, body: { name: "Analyst" } });
  vi.spyOn(Agent.prototype, "create").mockRejectedValueOnce(new Error("out of reach"));
  expect((await make()).status).toBe(500);
  expect(await (await call("/v1/agents", { bearer: house.secretKey })).json()).toMatchObject({ items: [] });
  expect((await make()).status).toBe(201);
});

test("[S1] nobody gets a token to speak as an agent", async () => {
  const house = await openHouse();
  const { id } = await house.agent({ name: "Analyst" });
  const answer = await call("/v1/tokens", { bearer: house.secretKey, body: { entityId: id } });
  expect(await problemIn(answer)).toMatchObject({ code: "unknown_reference" });
});
