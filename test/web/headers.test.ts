import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** The rules of the page's `_headers`: the lines without a space before them are paths, the others their headers. */
const rules = readFileSync(new URL("../../src/web/public/_headers", import.meta.url), "utf8")
  .trim()
  .split("\n");
const headers = Object.fromEntries(rules.slice(1).map((line) => line.trim().toLowerCase().split(/:\s+/, 2)));

test("[C14] the page runs its own scripts, speaks to its own origin, and shows in no frame", () => {
  const policy = headers["content-security-policy"]?.split("; ").map((each: string) => each.split(" "));
  expect(Object.fromEntries(policy?.map(([name, ...sources]: string[]) => [name, sources.join(" ")]))).toEqual({
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
  });
});

test("[C15] all of the page comes with https for a year, no referrer and no guessed type", () => {
  expect(rules.filter((line) => !line.startsWith("  "))).toEqual(["/*"]);
  const { "content-security-policy": _, ...others } = headers;
  expect(others).toEqual({
    "strict-transport-security": "max-age=31536000",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
});
