import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { addressOf, rateWindowSeconds } from "../../src/auth/rates.ts";

const root = join(import.meta.dirname, "../..");
const read = (name: string): string => readFileSync(join(root, name), "utf8");

const configured = [
  ...read("wrangler.toml").matchAll(
    /\[\[ratelimits\]\]\nname = "(\w+)"\nnamespace_id = "(\d+)"\nsimple = \{ limit = (\d+), period = (\d+) \}/g,
  ),
].map(([, name = "", namespace = "", limit = "", period = ""]) => ({ name, namespace, limit, period: Number(period) }));

test("[B3] every rate has a binding of its own, whose window is what Retry-After says", () => {
  const names = ["RATE_KEY", "RATE_ENTITY", "RATE_HOOK", "RATE_PUBLIC", "RATE_STRANGER"];
  expect(configured.map(({ name }) => name)).toEqual(names);
  expect(new Set(configured.map(({ namespace }) => namespace)).size).toBe(configured.length);
  expect(new Set(configured.map(({ period }) => period))).toEqual(new Set([rateWindowSeconds]));
});

test("the documented rates are the configured ones", () => {
  const documented = [...read("docs/configuration.md").matchAll(/^\| `(RATE_\w+)` +\| (\d+)/gm)];
  expect(documented.map(([, name, limit]) => ({ name, limit }))).toEqual(
    configured.map(({ name, limit }) => ({ name, limit })),
  );
});

test("an address is one sender; an IPv6 network is one sender in any notation", () => {
  const of = (address: string): string =>
    addressOf(new Request("https://colloquy.test", { headers: { "cf-connecting-ip": address } }));
  expect(of("192.0.2.7")).toBe("192.0.2.7");
  for (const written of ["2001:db8:0:7::1", "2001:0DB8:0000:0007:ffff::2", "2001:db8::7:0:0:0:3"]) {
    expect(of(written)).toBe("2001:db8:0:7");
  }
  expect(of("::1")).toBe("0:0:0:0");
  expect(of("2001:db8:0:8::1")).not.toBe("2001:db8:0:7");
  expect(addressOf(new Request("https://colloquy.test"))).toBe("unknown");
});
