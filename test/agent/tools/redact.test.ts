import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRedactor } from "../../../src/agent/tools/configured/redact.ts";

const secret = 'p"a/s\\s+w&örd=1 x';
const { text } = createRedactor([secret]);
const asJson = (value: string): string => JSON.stringify(value).slice(1, -1);
const base64 = (value: string): string => Buffer.from(value).toString("base64");

describe("a redactor", () => {
  test.each<[string, string]>([
    ["as it is", secret],
    ["percent-encoded", encodeURIComponent(secret)],
    ["percent-encoded in lower case", encodeURIComponent(secret).replace(/%../g, (each) => each.toLowerCase())],
    ["percent-encoded throughout", [...Buffer.from(secret)].map((byte) => `%${byte.toString(16)}`).join("")],
    ["percent-encoded twice", encodeURIComponent(encodeURIComponent(secret))],
    ["as a form sends it", new URLSearchParams([["k", secret]]).toString().slice(2)],
    ["escaped as in JSON", asJson(secret)],
    ["escaped as in JSON in JSON", asJson(asJson(secret))],
    ["escaped with \\u", [...secret].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")],
    ["with PHP's slashes", asJson(secret).replaceAll("/", "\\/")],
    ["escaped as in HTML", secret.replace(/&/g, "&amp;").replace(/"/g, "&quot;")],
    ["in base64", base64(secret)],
    ["in base64 for URLs", Buffer.from(secret).toString("base64url")],
    ["in base64 after one character", base64(`u${secret}`)],
    ["in base64 after two characters", base64(`u:${secret}`)],
    ["in base64 between others", base64(`user:${secret}:more`)],
  ])("[S3] a secret %s is taken out", (_, form) => {
    const result = text(`before ${form} after`);
    expect(result).toContain("[redacted]");
    expect(result).not.toContain(form);
    expect(result).toMatch(/^before .* after$/);
  });

  test("[S3] texts, names and numbers of JSON are looked through, however deep", () => {
    const redactor = createRedactor(["hunter2", "4711"]);
    expect(redactor.json({ a: ["x hunter2", { hunter2: 1 }], n: 4711, m: 147112, ok: true, no: null })).toEqual({
      a: ["x [redacted]", { "[redacted]": 1 }],
      n: "[redacted]",
      m: "1[redacted]2",
      ok: true,
      no: null,
    });
  });

  test("[S3] half a secret at a cut is left out", () => {
    const redactor = createRedactor(["0123456789abcdef"]);
    const whole = `${"x".repeat(500)}0123456789abcdef`;
    for (let length = 500; length <= whole.length; length += 1) {
      expect(redactor.text(whole.slice(0, length), { cut: true })).not.toMatch(/[0-9a-f]/);
    }
  });

  test("[S3] a secret of 8 KiB is taken out, in every form, and takes no time", () => {
    const long = Array.from({ length: 8192 }, (_, index) => String.fromCharCode(33 + ((index * 7919) % 94))).join("");
    const redactor = createRedactor([long]);
    for (const form of [long, encodeURIComponent(long), asJson(long), base64(`:${long}`)]) {
      expect(redactor.text(`<${form}>`)).toMatch(/^<[\w=]*(\[redacted\])+[\w=]*>$/);
    }
  });

  test.each<[string, string[], string]>([
    ["backslashes in a row", [`${"\\".repeat(40)}x`], "\\".repeat(20_000)],
    ["backslashes written in other ways", [`${"\\".repeat(40)}x`], "%5c\\\\u005c".repeat(2_000)],
    ["backslashes between quotes", [`${'\\"'.repeat(40)}x`], '\\\\"'.repeat(5_000)],
    ["a secret that comes together again", ["ab", "[r", "█▓▒░■□"], `[r${"a".repeat(20_000)}${"b".repeat(20_000)}`],
  ])("[C13] no secret and answer hold others up: %s", (_, secrets, answer) => {
    const from = performance.now();
    const result = createRedactor(secrets).text(answer);
    expect(performance.now() - from).toBeLessThan(1_000);
    for (const each of secrets) expect(result).not.toContain(each);
  });

  test("what holds no secret stays as it is, also at a cut", () => {
    expect(text("plain")).toBe("plain");
    expect(createRedactor([]).text("plain", { cut: true })).toBe("plain");
  });

  test("[S3] no secret survives, whatever it is and wherever it stands", () => {
    const anySecret = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 20 }),
      fc.string({
        unit: fc.constantFrom("[", "]", "r", "e", "d", "█", "\\", '"', "%", "2", "5", "a", "+", "u"),
        minLength: 1,
        maxLength: 6,
      }),
    );
    const around = fc.string({
      unit: fc.oneof(
        fc.constantFrom("a", "\\", '"', "%", "[", "]", "e", "d"),
        fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      ),
    });
    fc.assert(
      fc.property(
        fc.array(anySecret, { minLength: 1, maxLength: 3 }),
        fc.array(around, { minLength: 4, maxLength: 4 }),
        (secrets, words) => {
          const redactor = createRedactor(secrets);
          const wellFormed = secrets.filter((each) => each.isWellFormed());
          const forms = [...secrets, ...wellFormed.map(encodeURIComponent), ...secrets.map(asJson)];
          const said = forms.map((form, at) => `${words[at % 4]}${form}`).join("") + words[3];
          const result = redactor.text(said);
          const leaves: string[] = [];
          JSON.stringify(redactor.json({ said, [said]: [said] }), (name, value) => {
            leaves.push(name, ...(typeof value === "string" ? [value] : []));
            return value;
          });
          for (const each of secrets) {
            expect(result).not.toContain(each);
            for (const leaf of leaves.filter((leaf) => !["", "0", "said"].includes(leaf)))
              expect(leaf).not.toContain(each);
          }
        },
      ),
      { numRuns: 1000 },
    );
  }, 60_000);

  test.each([
    ["the secrets' own letter", "a"],
    ["their base64", "YWFh"],
    ["their percent-encoding", "%61"],
  ])("[C13] an answer of nothing but %s is looked through in bounded time", (_, part) => {
    const secrets = Array.from({ length: 7 }, (_, index) =>
      Array.from({ length: 64 }, (_, piece) => `${"a".repeat(125)}${index}${piece + 10}`).join(""),
    );
    const redactor = createRedactor(secrets);
    const from = performance.now();
    const answer = redactor.text(part.repeat((1024 * 1024) / part.length));
    expect(performance.now() - from).toBeLessThan(2000);
    for (const each of secrets) expect(answer).not.toContain(each);
  });

  test("[C13] [S3] of so many secrets that no patterns are made of them, nothing is shown", () => {
    const secrets = Array.from({ length: 100 }, (_, index) => `${index} `.repeat(2000));
    const from = performance.now();
    const redactor = createRedactor(secrets);
    const shown = [redactor.text(secrets[0] ?? ""), redactor.json([1, { [secrets[1] ?? ""]: secrets[2] }])];
    expect(performance.now() - from).toBeLessThan(1000);
    expect(shown).toEqual([expect.stringContaining("maxRedactionSteps"), expect.stringContaining("maxRedactionSteps")]);
  });
});
