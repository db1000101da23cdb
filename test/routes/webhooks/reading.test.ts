import fc from "fast-check";
import { expect, test } from "vitest";
import { CreateHook, type HookSettings } from "../../../src/protocol/hook.ts";
import { isWanted, readingOf, render } from "../../../src/routes/webhook-payload.ts";

const payload = {
  action: "opened",
  issue: { number: 1347, title: "Found a bug", body: null, labels: [{ name: "bug" }, { name: "p1" }] },
  "odd key": { "x-y": true },
};

test.each([
  ["{{event}}: {{payload.issue.title}}", "issues.opened: Found a bug"],
  ["#{{ payload.issue.number }} {{payload.issue.labels.1.name}} of {{payload.issue.labels.length}}", "#1347 p1 of 2"],
  ["{{payload.issue.labels}}", '[{"name":"bug"},{"name":"p1"}]'],
  ["[{{payload.issue.body}}][{{payload.nothing.at.all}}][{{payload.issue.title.length}}]", "[][][]"],
  ["{{payload.constructor}}{{payload.__proto__}}{{payload.issue.labels.at}}", ""],
  ["no placeholder { } {x}", "no placeholder { } {x}"],
])("the template $0 picks the values that it names", (template, text) => {
  expect(render(template, "issues.opened", payload)).toBe(text);
});

test("a payload is never read as a template", () => {
  expect(render("{{payload.a}}{{payload.b}}", undefined, { a: "{{payload.b}}", b: "$& $1" })).toBe(
    "{{payload.b}}$& $1",
  );
});

test("[B3] a long value and a long text are cut with a note, never within a character", () => {
  const long = render("{{payload.a}}|{{payload.b}}", undefined, { a: "😀".repeat(4000), b: "end" });
  expect(long).toMatch(/😀… \(cut: 8000 characters in all\)\|end$/u);
  expect(long.isWellFormed()).toBe(true);
  const odd = render("{{payload.a}}", undefined, { a: `x${"😀".repeat(4000)}` });
  expect(odd.isWellFormed()).toBe(true);
  const whole = render("{{payload.a}}".repeat(50), undefined, { a: "x".repeat(4000) });
  expect(whole).toMatch(/x… \(cut: 200000 characters in all\)$/);
  expect(whole.length).toBeLessThan(10_100);
});

test("[B3] with a template every delivery fits an event", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", size: "large" }), (text) => {
      const held = readingOf(
        { template: "{{payload}}".repeat(9) } as HookSettings,
        text,
        text.repeat(500).toWellFormed(),
      );
      return new TextEncoder().encode(JSON.stringify(held)).length <= 64 * 1024;
    }),
    { numRuns: 50 },
  );
  const control = readingOf(
    { template: "{{payload}}{{payload}}{{payload}}" } as HookSettings,
    "\u0001".repeat(999),
    "\u0001".repeat(9999),
  );
  expect(new TextEncoder().encode(JSON.stringify(control)).length).toBeLessThan(64 * 1024);
});

test("the agent reads the event's type beside the text or the payload", () => {
  const settings = {} as HookSettings;
  expect(readingOf(settings, "push", payload)).toEqual({ event: "push", payload });
  expect(readingOf(settings, undefined, "text")).toEqual({ payload: "text" });
  expect(readingOf({ ...settings, template: "{{event}}!" }, "push", payload)).toEqual({ event: "push", text: "push!" });
});

test("a choice of events stands for itself and for all below it", () => {
  expect(isWanted(undefined, undefined)).toBe(true);
  expect(isWanted(["issues"], "issues.opened")).toBe(true);
  expect(isWanted(["issues.opened"], "issues.opened")).toBe(true);
  expect(isWanted(["issues.opened"], "issues")).toBe(false);
  expect(isWanted(["issue"], "issues")).toBe(false);
  expect(isWanted(["push"], undefined)).toBe(false);
});

test("[S4] a template that holds anything else in braces, or too much, is refused", () => {
  const isTaken = (template: string) => CreateHook.safeParse({ scheme: "github", name: "x", template }).success;
  for (const good of ["{{payload}}", "{{ event }}", "{{payload.a-b.0.c_d}}", "{single}"])
    expect(isTaken(good), good).toBe(true);
  const bad = ["", "{{input.a}}", "{{payload.}}", "{{payload..a}}", "{{payload.a", "{{payloads}}", "{{a}} {{payload}}"];
  for (const template of [...bad, "x".repeat(4001), "{{event}}".repeat(51), "\ud800"]) {
    expect(isTaken(template), template.slice(0, 20)).toBe(false);
  }
});
