import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { app } from "../../src/routes/app.ts";
import { call, openHouse } from "../support/house.ts";
import { fill, guarded } from "./operations.ts";

const origin = "https://app.example.com";

test("the preflight of another origin is allowed for every route", async () => {
  for (const { method, path, name } of guarded) {
    const answer = await call(fill(path, {}), {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": method, "access-control-request-headers": "authorization" },
    });
    expect(answer.status, name).toBe(204);
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    expect(answer.headers.get("access-control-allow-methods")?.split(",")).toContain(method);
    for (const header of ["authorization", "content-type", "idempotency-key", "x-entity-id", "last-event-id"]) {
      expect(answer.headers.get("access-control-allow-headers")?.split(",")).toContain(header);
    }
  }
});

test("[S5] any page may read an answer or refusal, but never with the browser's own credentials", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.space("Alpha", [mona]);
  const events = await call(`/v1/spaces/${id}/events`, { bearer: mona.token, headers: { origin } });
  const answers = [
    await call("/v1/spaces", { bearer: mona.token, headers: { origin } }),
    await call("/v1/spaces", { headers: { origin } }),
    await call("/v1/nothing", { headers: { origin } }),
    await call("/v1/spaces", { method: "PUT", headers: { origin } }),
    await call("/openapi.json", { headers: { origin } }),
    await app.fetch(new Request("https://x.test/v1/spaces"), { ...env, SIGNING_SECRET: "" }),
    events,
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 405, 200, 500, 200]);
  for (const { headers } of answers) {
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("access-control-allow-credentials")).toBeNull();
  }
  await events.body?.cancel();
});
