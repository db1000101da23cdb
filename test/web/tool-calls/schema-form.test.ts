import { expect, test } from "vitest";
import { fieldsOf, formResult } from "../../../src/web/tool-calls/schema-form.ts";

const journey = {
  type: "object",
  required: ["to", "on", "people", "class"],
  properties: {
    to: { type: "string", title: "Where to", minLength: 2 },
    on: { type: "string", format: "date" },
    people: { type: "integer", minimum: 1, maximum: 9 },
    class: { enum: ["first", "second"], default: "second" },
    meals: { type: "array", items: { enum: ["lunch", "dinner"] } },
    insured: { type: "boolean", default: true },
    budget: { type: ["number", "null"], description: "In euros" },
    contact: {
      type: "object",
      required: ["mail"],
      properties: { mail: { type: "string", format: "email" }, names: { type: "array", items: { type: "string" } } },
    },
  },
};

const fields = fieldsOf(journey);

test("the properties of a schema become fields in its order, labelled with their parents", () => {
  expect(fields.map(({ label, kind, isRequired }) => [label, kind, isRequired])).toEqual([
    ["Where to", "text", true],
    ["On", "date", true],
    ["People", "number", true],
    ["Class", "one-of", true],
    ["Meals", "some-of", false],
    ["Insured", "yes-no", false],
    ["Budget", "number", false],
    ["Contact · Mail", "text", false],
    ["Contact · Names", "lines", false],
  ]);
  expect(fields.find(({ label }) => label === "Budget")?.hint).toBe("In euros");
});

test("a filled form becomes a value of the schema, without its empty fields", () => {
  const drafts = { to: " Ulm ", on: "2026-12-01", people: "2", meals: ["1"], "contact.names": "Ann\n\nBob " };
  expect(formResult(fields, drafts)).toEqual({
    result: {
      to: "Ulm",
      on: "2026-12-01",
      people: 2,
      class: "second",
      meals: ["dinner"],
      insured: true,
      contact: { names: ["Ann", "Bob"] },
    },
  });
});

test("each field of a form tells its own problem", () => {
  const drafts = { to: "U", people: "1.5", class: "", budget: "much", "contact.mail": "ann" };
  expect(formResult(fields, drafts)).toEqual({
    problems: {
      to: "At least 2 characters, please.",
      on: "Please fill this in.",
      people: "Please enter a whole number.",
      class: "Please fill this in.",
      budget: "Please enter a number.",
      "contact.mail": "Please enter an e-mail address.",
    },
  });
  expect(formResult(fields, { ...drafts, people: "10" })).toMatchObject({ problems: { people: "At most 9, please." } });
});

test("a schema of a bare value makes one field, and a missing schema a text field", () => {
  expect(formResult(fieldsOf({ type: "integer" }), { "": "7" })).toEqual({ result: 7 });
  expect(formResult(fieldsOf(undefined), { "": "yes, please" })).toEqual({ result: "yes, please" });
  expect(formResult(fieldsOf({ enum: [1, null] }), { "": "1" })).toEqual({ result: null });
  const cases = { oneOf: [{ const: "b", title: "Blue" }, { const: "r" }] };
  expect(fieldsOf(cases)[0]).toMatchObject({ kind: "one-of", options: [{ label: "Blue (b)" }, { label: "r" }] });
});

test("a value that no field can show is asked as JSON, and its syntax is checked", () => {
  const table = fieldsOf({ type: "array", items: { type: "object" } });
  expect(table[0]?.kind).toBe("json");
  expect(formResult(table, { "": '[{"a": 1}]' })).toEqual({ result: [{ a: 1 }] });
  expect(formResult(table, { "": "[" })).toEqual({ problems: { "": "Please enter JSON." } });
});

test("a form property named __proto__ changes no prototype", () => {
  const hostile = fieldsOf(JSON.parse('{"properties": {"__proto__": {"properties": {"admin": {"type": "string"}}}}}'));
  const filled = formResult(hostile, { "__proto__.admin": "yes" });
  expect(JSON.stringify(filled)).toBe('{"result":{"__proto__":{"admin":"yes"}}}');
  expect(Object.hasOwn(Object.prototype, "admin")).toBe(false);
});

test("an invalid schema makes one text field", () => {
  const odd = { toString: null };
  const inLists = { type: "array", items: { type: "string" }, default: [odd] };
  const invalid = [null, "text", [], { type: 7 }, { properties: [] }, { format: odd }, { maxLength: odd }, inLists];
  for (const schema of invalid) expect(fieldsOf(schema)).toHaveLength(1);
});

test("[C1] what a form's schema says shows what it answers, and what nobody sees", () => {
  const cases = [
    { const: -5, title: "5" },
    { const: "a\u200B", title: "a", description: "b\u200B" },
    { const: "toGo", title: "To go" },
  ];
  const [first] = fieldsOf({ oneOf: cases });
  expect(first?.options).toMatchObject([
    { label: "5 (-5)", value: -5 },
    { label: "a (a\\u{200B})", value: "a\u200B", hint: "b\\u{200B}" },
    { label: "To go", value: "toGo" },
  ]);
  const [field] = fieldsOf({ properties: { a: { title: "N\u200Bo", description: "x\u202E", enum: ["c\u200B"] } } });
  expect(field).toMatchObject({ label: "N\\u{200B}o", hint: "x\\u{202E}", options: [{ label: "c\\u{200B}" }] });
});

test("[C1] a default that its date field cannot show is not sent", () => {
  const initialOf = (format: string, value: unknown) =>
    fieldsOf({ type: "string", format, default: value })[0]?.initial;
  const hidden = {
    date: ["Friday", "2026-02-30", "2026-12-01T09:00:00Z", "01.12.2026", "0000-12-01", 20261201, null],
    time: ["noon", "9:00", "24:00", "09:60", "09:00:00Z", 9],
    "date-time": [
      "soon",
      "5",
      "2026-13-01T09:00",
      "+012026-12-01T09:00",
      "0000-12-01T09:00:00Z",
      "-271821-04-20T00:00:00Z",
      "9999-12-31T23:59:59-23:00",
    ],
  };
  for (const [format, values] of Object.entries(hidden)) {
    for (const value of values) expect([value, initialOf(format, value)]).toEqual([value, ""]);
  }
  expect(initialOf("date", "2026-12-01")).toBe("2026-12-01");
  expect(initialOf("time", "09:00")).toBe("09:00");
  expect(initialOf("time", "09:00:30")).toBe("09:00:30");
});

test("[C1] the default of a time with a zone is shown in the person's own, and means the same", () => {
  const fields = fieldsOf({ type: "string", format: "date-time", default: "2026-12-15T09:00:30+01:00" });
  expect(fields[0]?.initial).toMatch(/^2026-12-1[45]T\d\d:\d\d:30$/);
  expect(formResult(fields, {})).toEqual({ result: "2026-12-15T08:00:30.000Z" });
});

test("[C1] a text's default shows whole, in several lines where need be, or is not offered", () => {
  const fieldOf = (value: string) => fieldsOf({ type: "string", default: value })[0];
  expect(fieldOf("lunch at noon")).toMatchObject({ initial: "lunch at noon", isLong: false });
  for (const long of [
    "yes\nand pay 900",
    "yes\rno",
    `no${"\t".repeat(10)}900`,
    `yes${" ".repeat(60)}and pay 900`,
    "W".repeat(16),
    "yes\u2028".repeat(20),
  ]) {
    expect(fieldOf(long)).toMatchObject({ initial: long, isLong: true });
  }
  expect(fieldsOf({ type: "number", default: `${"0".repeat(60)}900` })[0]?.isLong).toBe(true);
  for (const type of ["string", "number"]) expect(fieldsOf({ type, default: "1\u200B2" })[0]?.initial).toBe("");
  const names = { type: "array", items: { type: "string" }, default: ["Ann", "Bob\u{E0041}"] };
  expect(fieldsOf(names)[0]?.initial).toBe("");
});
