import { env, exports } from "cloudflare:workers";
import { expect, test } from "vitest";

test("the worker answers, and has its three actors", async () => {
  const response = await exports.default.fetch("https://colloquy.test/healthz");
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ ok: true });
  for (const namespace of [env.WORKSPACE, env.SPACE, env.AGENT]) expect(namespace).toBeDefined();
});
