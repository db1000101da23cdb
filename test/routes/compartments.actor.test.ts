import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";
import { AgentConfig } from "../../src/protocol/agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, type House, ids, openHouse } from "../support/house.ts";
import { fill, guarded, problemIn } from "./operations.ts";

/** What an agent has from a confidential space is an object of its own. Its id is an address nowhere. */
let house: House;
let mindId: string;

beforeAll(async () => {
  house = await openHouse();
  const { id: agentId } = await house.agent({ name: "Analyst" });
  mindId = ids.compartment(agentId, ids.mint("spc"));
  // It lives, so that only its id is the reason.
  const config = AgentConfig.parse({ name: "Analyst" });
  unwrap(await env.AGENT.getByName(mindId).create({ id: mindId, workspaceId: house.workspaceId, config }));
}, 60_000);

const addressed = guarded.filter(({ path }) => /\{(agentId|otherAgentId|entityId)\}/.test(path));

describe("[C19] a compartment's own id is an address nowhere, not for a secret key either", () => {
  test.each(addressed)("$name", async ({ path, method }) => {
    const named = { agentId: mindId, otherAgentId: mindId, entityId: mindId, spaceId: ids.mint("spc") };
    const within = {
      runId: ids.mintOwned("run", mindId),
      eventId: ids.mintOwned("evt", mindId),
      hookId: ids.mintOwned("hook", mindId),
      archivalId: ids.mintOwned("arch", mindId),
    };
    const headers = path.endsWith("/stream") ? { upgrade: "websocket" } : {};
    const answer = await call(fill(path, { ...named, ...within }), { method, bearer: house.secretKey, headers });
    expect(answer.status).toBe(404);
    expect((await problemIn(answer)).detail).toMatch(/^There is nothing with this (agentId|otherAgentId|entityId)\.$/);
  });

  test("nor does a key act as one, a space take it in, or a search ask it", async () => {
    const asIt = await call("/v1/spaces", { bearer: house.secretKey, as: mindId });
    expect(asIt.status).toBe(422);
    const members = [{ entityId: mindId }];
    const space = await call("/v1/spaces", { bearer: house.secretKey, body: { name: "Alpha", members } });
    expect(space.status).toBe(422);
    const block = { label: "notes", type: "core", partnerEntityId: mindId };
    const { id } = await house.agent({ name: "Writer" });
    expect((await call(`/v1/agents/${id}/blocks`, { bearer: house.secretKey, body: block })).status).toBe(422);
  });
});
