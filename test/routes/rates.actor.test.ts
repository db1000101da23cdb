import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { rateWindowSeconds } from "../../src/auth/rates.ts";
import type { Env } from "../../src/env/env.ts";
import { app } from "../../src/routes/app.ts";
import { call, ids, openHouse } from "../support/house.ts";
import { apiDocument, operations, problemIn } from "./operations.ts";

type Asked = { method?: string; body?: string; headers?: Record<string, string>; bearer?: string; address?: string };

/** The worker with this rate, of five a minute, counting. */
const counting = (
  binding: "RATE_KEY" | "RATE_ENTITY" | "RATE_HOOK" | "RATE_PUBLIC" | "RATE_STRANGER",
  limiter = env.RATE_OF_TESTS,
) => {
  const bindings: Env = { ...env, RATE_LIMITS: "on", [binding]: limiter };
  return (path: string, { bearer, address, ...init }: Asked = {}) =>
    Promise.resolve(
      app.fetch(
        new Request(`https://colloquy.test${path}`, {
          ...init,
          headers: {
            ...init.headers,
            ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
            ...(address === undefined ? {} : { "cf-connecting-ip": address }),
          },
        }),
        bindings,
      ),
    );
};

const mostAsked = 200;

/** Asks until it is refused: counts come in the background, so a few more than five may be admitted. */
const untilRefused = async (ask: () => Promise<Response>): Promise<{ admitted: number[]; refusal: Response }> => {
  const admitted: number[] = [];
  while (admitted.length < mostAsked) {
    const answer = await ask();
    if (answer.status === 429) return { admitted, refusal: answer };
    await answer.body?.cancel();
    admitted.push(answer.status);
    // Requests without I/O would never let a count come in: real ones have a turn of their own each.
    await new Promise((turn) => setTimeout(turn));
  }
  throw new Error(`${mostAsked} requests, and never refused`);
};

const expectRefusal = async (refusal: Response, binding: string): Promise<void> => {
  expect(refusal.headers.get("retry-after")).toBe(String(rateWindowSeconds));
  expect(await problemIn(refusal)).toMatchObject({ code: "rate_limited", detail: expect.stringContaining(binding) });
};

test("[B3] an entity that asks too often is told when to ask again; others are not kept waiting", async () => {
  const house = await openHouse();
  const [mia, leo] = [await house.person("Mia"), await house.person("Leo")];
  const ask = counting("RATE_ENTITY");
  const { admitted, refusal } = await untilRefused(() => ask("/v1/spaces", { bearer: mia.token }));
  expect(new Set(admitted)).toEqual(new Set([200]));
  expect(admitted.length).toBeGreaterThanOrEqual(5);
  await expectRefusal(refusal, "RATE_ENTITY");
  expect((await ask("/v1/spaces", { bearer: leo.token })).status).toBe(200);
  expect((await ask("/v1/spaces", { bearer: house.secretKey })).status).toBe(200);
});

test("[B3] a secret key is counted as one caller, whichever entity it acts as", async () => {
  const house = await openHouse();
  const ask = counting("RATE_KEY");
  const { admitted, refusal } = await untilRefused(() => ask("/v1/spaces", { bearer: house.secretKey }));
  expect(new Set(admitted)).toEqual(new Set([200]));
  await expectRefusal(refusal, "RATE_KEY");
});

test("[B3] a caller over its rate opens no socket", async () => {
  const house = await openHouse();
  const mia = await house.person("Mia");
  const space = await house.space("Room", [mia]);
  const ask = counting("RATE_ENTITY");
  const { refusal } = await untilRefused(() => ask(`/v1/spaces/${space.id}/stream`, { bearer: mia.token }));
  await expectRefusal(refusal, "RATE_ENTITY");
});

test("[B3] a hook's sender over its rate gets 429 with Retry-After before the agent is asked", async () => {
  const ask = counting("RATE_HOOK");
  const agentId = ids.mint("ent");
  const path = `/v1/hooks/${ids.deriveOwned("hook", agentId, "never-made")}`;
  const deliver = (address: string) => ask(path, { method: "POST", body: "{}", address });
  const { admitted, refusal } = await untilRefused(() => deliver("192.0.2.7"));
  expect(new Set(admitted)).toEqual(new Set([404]));
  await expectRefusal(refusal, "RATE_HOOK");
  expect((await deliver("192.0.2.8")).status).toBe(404);
});

test("[B3] wrong credentials count by address and stop its look-ups, but not its valid tokens", async () => {
  const house = await openHouse();
  const mia = await house.person("Mia");
  const ask = counting("RATE_STRANGER");
  const address = "2001:DB8:0:7::1";
  expect((await ask("/v1/spaces", { bearer: house.secretKey, address })).status).toBe(200);
  const { admitted, refusal } = await untilRefused(() => ask("/v1/spaces", { bearer: "sk_guessed", address }));
  expect(new Set(admitted)).toEqual(new Set([401]));
  await expectRefusal(refusal, "RATE_STRANGER");
  const unknown = `${house.secretKey.slice(0, -4)}AAAA`;
  for (const bearer of [unknown, env.ADMIN_KEY ?? ""]) {
    // Its neighbour in the same network is the same sender.
    expect((await ask("/v1/spaces", { bearer, address: "2001:db8::7:0:0:0:2" })).status).toBe(429);
  }
  expect((await ask("/v1/spaces", { bearer: unknown, address: "2001:db8:0:8::1" })).status).toBe(401);
  for (const bearer of [house.secretKey, mia.token]) {
    expect((await ask("/v1/spaces", { bearer, address })).status).toBe(200);
  }
});

test("[B3] [C15] public routes are counted by address, guessed sign-in codes as strangers", async () => {
  const ask = counting("RATE_PUBLIC");
  const { admitted, refusal } = await untilRefused(() => ask("/openapi.json", { address: "192.0.2.9" }));
  expect(new Set(admitted)).toEqual(new Set([200]));
  await expectRefusal(refusal, "RATE_PUBLIC");
  expect((await ask("/healthz", { address: "192.0.2.10" })).status).toBe(200);

  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ code: `si_${ids.mint("wsp")}_${"A".repeat(43)}` });
  const guessing = counting("RATE_STRANGER");
  const guessed = await untilRefused(() =>
    guessing("/v1/session", { method: "POST", body, headers, address: "192.0.2.11" }),
  );
  expect(new Set(guessed.admitted)).toEqual(new Set([401]));
  await expectRefusal(guessed.refusal, "RATE_STRANGER");
});

test("[B3] an expired token does not count as a wrong credential", async () => {
  const house = await openHouse();
  const mia = await house.person("Mia");
  const expired = await house.token(mia.id, 60);
  const ask = counting("RATE_STRANGER", {
    limit: () => Promise.reject(new Error("counted as a stranger")),
  });
  vi.setSystemTime(Date.now() + 120_000);
  try {
    expect(await problemIn(await ask("/v1/spaces", { bearer: expired }))).toMatchObject({ code: "token_expired" });
  } finally {
    vi.useRealTimers();
  }
});

test("a limiter that fails or is switched off refuses nobody", async () => {
  const house = await openHouse();
  const failing = counting("RATE_KEY", { limit: () => Promise.reject(new Error("out of reach")) });
  expect((await failing("/v1/spaces", { bearer: house.secretKey })).status).toBe(200);
  for (let times = 0; times < 12; times += 1) {
    expect((await call("/v1/spaces", { bearer: house.secretKey })).status).toBe(200);
  }
});

test("every route documents 429 and Retry-After", () => {
  for (const operation of operations) {
    expect(operation.responses["429"], operation.name).toMatchObject({
      description: expect.stringContaining("`rate_limited`"),
      headers: { "Retry-After": { schema: { type: "integer" } } },
    });
  }
  expect(Object.keys(apiDocument.components.schemas)).toContain("Problem");
});
