import { env, exports } from "cloudflare:workers";
import { expect, test } from "vitest";

test("the worker answers, and has its three actors", async () => {
  const response = await exports.default.fetch("https://colloquy.test/healthz");
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    ok: true,
    secrets: { ring: [expect.any(String)], ids: expect.any(String) },
  });
  for (const namespace of [env.WORKSPACE, env.SPACE, env.AGENT]) expect(namespace).toBeDefined();
});
