import { env } from "cloudflare:workers";
import { describe, expect, inject, test, vi } from "vitest";
import { suspendedLookMs } from "../../src/agent/bounds.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { approved, deploy, eachTest, freshPath, requestsTo, scene, yes } from "./calls/scene.ts";
import { ended, passTime, rowsIn } from "./fixture.ts";
import { config, network, stage, url } from "./mcp/scene.ts";

/** An agent of a suspended workspace: what it does by itself rests, and goes on where it was. */
eachTest();

const suspend = async (workspaceId: string, agent: EntityRef, suspended = true): Promise<void> => {
  unwrap(await env.AGENT.getByName(agent.id).setSuspended(workspaceId, suspended));
};

/** Lets time pass and all that is due come due, a few times. */
const wait = async (agent: EntityRef): Promise<void> => {
  for (let hours = 0; hours < 3; hours += 1) await passTime(agent, suspendedLookMs);
};

describe.each(["timeline", "consciousness"] as const)("a call of a %s", (continuity) => {
  test.each(["gateway", "external"])(
    "[L6] of kind %s that is approved meanwhile is sent once it is resumed",
    async (kind) => {
      const path = freshPath();
      const secrets = { KEY: `whsec_${btoa("a secret of twenty-four b")}` };
      const external = { executionType: kind, execution: { url: `${inject("remote")}${path}`, secret: "KEY" } };
      const tool = deploy(path, { ...(kind === "external" && external), ...approved({ expiresInMinutes: 1440 }) });
      const { agent, workspaceId, space, model, asked, give, ann } = await scene({
        continuity,
        tools: [tool],
        steps: [],
        secrets,
      });
      const entering = continuity === "consciousness" ? [step(call("enter_space", { spaceId: space.id }))] : [];
      model.push(...entering, step(call("deploy", { to: "prod" })), step(text("Asked.")), step(text("Over.")));
      await asked("deploy");
      await suspend(workspaceId, agent);
      unwrap(await give(ann, "deploy", yes));
      await vi.waitFor(async () =>
        expect(await rowsIn(agent, "select phase from calls")).not.toEqual([{ phase: "asked" }]),
      );
      await wait(agent);
      expect(await requestsTo(path)).toHaveLength(0);
      await suspend(workspaceId, agent, false);
      await passTime(agent, 0);
      await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
      await wait(agent);
      expect(await requestsTo(path)).toHaveLength(1);
    },
  );
});

test("[L6] no MCP server is asked for its list meanwhile, and it is once it is resumed", async () => {
  let asked = 0;
  network({
    [new URL(url).origin]: {
      fetch: () => {
        asked += 1;
        return Promise.reject(new TypeError("down"));
      },
    },
  });
  const { house, nova } = await stage(config());
  await vi.waitFor(async () =>
    expect(await rowsIn(nova, "select failures from mcp_servers")).toEqual([{ failures: 1 }]),
  );
  await suspend(house.workspaceId, nova);
  const before = asked;
  await wait(nova);
  expect(asked).toBe(before);
  await suspend(house.workspaceId, nova, false);
  await passTime(nova, 0);
  await vi.waitFor(() => expect(asked).toBeGreaterThan(before));
});

test("[L6] the index rests meanwhile, and is kept up once it is resumed", async () => {
  const { agent, workspaceId, space, ann } = await scene({ tools: [], steps: [step(text("Read it."))] });
  await space.post(ann, "Quinces");
  await ended(workspaceId, agent, 1);
  unwrap(await env.AGENT.getByName(agent.id).search(workspaceId, SearchQuery.parse({ query: "quinces" })));
  await suspend(workspaceId, agent);
  const isDueIn = async (): Promise<number> => {
    const [row] = await rowsIn(agent, "select due_at as at from timers where name = 'search'");
    return Number(row?.at) - Date.now();
  };
  await wait(agent);
  expect(await isDueIn()).toBeGreaterThan(suspendedLookMs / 2);
  await suspend(workspaceId, agent, false);
  expect(await isDueIn()).toBeLessThanOrEqual(0);
});
