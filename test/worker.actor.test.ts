import { exports } from "cloudflare:workers";
import { expect, test } from "vitest";

test("healthz answers", async () => {
  const response = await exports.default.fetch("https://colloquy.test/healthz");
  expect(response.status).toBe(200);
});
