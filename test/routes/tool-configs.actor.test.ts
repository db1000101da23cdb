import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import * as z from "zod";
import { ImportedAgent } from "../../src/protocol/exported-agent.ts";
import { rowsIn } from "../agent/fixture.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";
import { exported, imported, linesOf, textOf } from "./transfer/lived.ts";

const ask = { name: "ask", description: "Asks", executionType: "space" };
const idle = { ...ask, timeoutMs: 5000 };
const Tools = z.object({
  agent: z.object({ config: z.object({ tools: z.array(z.record(z.string(), z.unknown())) }) }),
});

test("[K15] a space tool's timeoutMs is refused when an agent is made or changed", async () => {
  const house = await openHouse();
  const { id } = await house.agent({ name: "Analyst" });
  const refusal = {
    code: "invalid_request",
    issues: [{ path: "tools.0.timeoutMs", message: expect.stringContaining("answer.expiresInMinutes") }],
  };
  const [bearer, tools] = [house.secretKey, [idle]];
  const made = await call("/v1/agents", { bearer, body: { name: "Other", tools } });
  expect(await problemIn(made)).toMatchObject(refusal);
  const changed = await call(`/v1/agents/${id}`, { method: "PATCH", bearer, body: { tools } });
  expect(await problemIn(changed)).toMatchObject(refusal);
});

test("[K15] a config that an earlier version stored with a space tool's timeoutMs goes on", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const { id } = await house.agent({ name: "Analyst", tools: [ask] });
  const stub = env.AGENT.getByName(id) as unknown as DurableObjectStub;
  await rowsIn({ id }, "UPDATE agent SET config = json_set(config, '$.tools[0].timeoutMs', 30000)");
  await evictDurableObject(stub);
  const shown = () => expectOk(Tools, call(`/v1/agents/${id}`, { bearer }));
  const changed = await expectOk(
    Tools,
    call(`/v1/agents/${id}`, { method: "PATCH", bearer, body: { description: "X" } }),
  );
  expect(changed.agent.config.tools[0]).not.toHaveProperty("timeoutMs");
  // A config that was read can be written back.
  const { config } = (await shown()).agent;
  await expectOk(Tools, call(`/v1/agents/${id}`, { method: "PATCH", bearer, body: { tools: config.tools } }));
});

test("[K15] an earlier version's document with a space tool's timeoutMs is imported without it", async () => {
  const [house, elsewhere] = [await openHouse(), await openHouse("Elsewhere")];
  const { id } = await house.agent({ name: "Analyst", tools: [ask] });
  const document = await exported(house, id);
  const [head, ...rows] = linesOf(document);
  const earlier = JSON.stringify(head).replace('"name":"ask"', '"timeoutMs":30000,"name":"ask"');
  const { agent } = await expectOk(ImportedAgent, imported(elsewhere, textOf([JSON.parse(earlier), ...rows])));
  const [tool] = (await exported(elsewhere, agent.id)).agent.config.tools;
  expect(tool).toMatchObject({ name: "ask", executionType: "space" });
  expect(tool).not.toHaveProperty("timeoutMs");
});
