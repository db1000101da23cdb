import fc from "fast-check";
import { hostileJson, hostileText, type Json } from "./hostile.ts";

/** Fields whose name says more than their schema: values that mean something there, and such that should not. */

/** How a template names a secret. */
const aSecret = `${"$"}{secret.a-name}`;

const time: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom(
    "2 hours",
    "in 3 days and 1 minute",
    "1 fortnight",
    "99999999999999999999 years",
    "0.0000001 ns",
    "-1 day",
    "1e9 days",
    "a while",
  ),
  hostileText,
);

const field = fc.constantFrom(
  "*",
  "*/5",
  "0",
  "59",
  "60",
  "1-5",
  "5-1",
  "L",
  "31",
  "MON",
  "1#2",
  "*/0",
  "?",
  "0,0",
  "1W",
);
const cron: fc.Arbitrary<Json> = fc.oneof(
  fc.array(field, { minLength: 4, maxLength: 6 }).map((fields) => fields.join(" ")),
  fc.constantFrom("0 9 * * 1-5", "0 0 30 2 *", "0 0 29 2 *", "@daily", "* * * * * *", "0 0 L * *", "0 0 1 1 * 2999"),
  hostileText,
);

const zone: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom("UTC", "Asia/Riyadh", "Pacific/Apia", "asia/riyadh", "+25:00", "Etc/GMT+12", "Mars/Base", "EST5EDT"),
  hostileText,
);

const instant: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom(
    "2027-02-18T15:00:00Z",
    "2027-03-28T02:30:00",
    "2027-02-30T00:00:00Z",
    "2027-01-01T24:00:00Z",
    "9999-12-31T23:59:59Z",
    "2027-01-01T00:00",
    "+275760-09-13T00:00:00Z",
    "0000-01-01T00:00:00Z",
  ),
  hostileText,
);

/** Nowhere that answers: loopback's discard port, names that do not exist, and what must not be asked. */
const url: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom(
    "http://127.0.0.1:9/x",
    "http://127.0.0.1:9/{{input.id}}?q={{input.q}}",
    `https://a.invalid/${aSecret}`,
    "https://169.254.169.254/latest",
    "http://[::1]:9/",
    "https://user:pass@a.invalid/",
    "https://{{input.host}}/",
    "file:///etc/passwd",
    "https://a.invalid/{{input.}}",
    "https://a.invalid/{{",
    "//a.invalid",
    "https://0x7f.1/",
  ),
  hostileText,
);

const pattern = fc.constantFrom(
  "^a+$",
  "(a+)+$",
  "(a|a)*b",
  "[",
  "\\p{L}{2,}",
  "(?<n>a)\\k<n>",
  "^(?=.*x)(?!y)",
  "(".repeat(300),
);

/** Schemas that are none, that refer to themselves, that never end, that hold everything. */
const jsonSchema: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(
    { type: "object", properties: { id: { type: "integer" } } },
    { type: "object", properties: JSON.parse('{"__proto__":{"type":"string"}}'), required: ["constructor"] },
    { type: "object", $ref: "#" },
    { type: "object", allOf: [{ $ref: "#/$defs/a" }], $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } },
    { type: "object", properties: { next: { $ref: "#" } } },
    { type: "object", $ref: "https://a.invalid/schema.json" },
    { type: "object", $ref: "#/%" },
    { type: "object", $ref: "#/__proto__/x" },
    { type: "object", $id: "x", $anchor: "y" },
    { type: ["object", "null"] },
    { type: "object", minProperties: 1e308, maxProperties: -1 },
    { type: "object", enum: [] },
    { type: "object", format: "regex", unevaluatedProperties: false, if: true, else: false },
    { type: "object", properties: { a: { multipleOf: 5e-324 } } },
    { type: "object", properties: { a: { const: JSON.parse('{"__proto__":1}') } } },
  ),
  pattern.map((one): Json => ({ type: "object", properties: { a: { type: "string", pattern: one } } })),
  pattern.map((one): Json => ({ type: "object", patternProperties: { [one]: true } })),
  fc
    .array(fc.constantFrom("anyOf", "not", "items", "properties", "$defs", "if", "prefixItems", "contains"), {
      maxLength: 80,
    })
    .map((keywords) =>
      keywords.reduce<Json>((held, keyword) => ({ type: "object", [keyword]: held }), { type: "object" }),
    ),
  fc
    .dictionary(
      fc.constantFrom("type", "properties", "required", "$ref", "items", "allOf", "$defs", "pattern"),
      hostileJson,
    )
    .map((held): Json => ({ type: "object", ...held })),
);

const template: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom(
    "{{event}}: {{payload}}",
    "{{payload.a.0.b}}",
    "{{payload.__proto__.constructor.name}}",
    "{{ payload . x }}",
    "{{payload.}}",
    "{{{{payload}}}}",
    "{{",
    "{{payload}}".repeat(60),
  ),
  hostileText,
);

const secret: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom("a-name", "whsec_AAAA", `whsec_${"A".repeat(44)}`, "a secret of enough letters", "x"),
  hostileText,
);

const header = fc.constantFrom<Json>("x-token", "Authorization", "x-id", "content-type", "cookie", "a b", "", "host");

const provider = { rehearsal: { provider: "rehearsal", deltasPerSecond: 0 } };
const model: fc.Arbitrary<Json> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Json>(provider.rehearsal) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Json>(
      { provider: "openai-compatible", name: "m", baseUrl: "http://127.0.0.1:9/v1" },
      { provider: "openai-compatible", name: "m", baseUrl: "https://10.0.0.1/v1", apiKeySecret: "a-name" },
      { provider: "workers-ai", name: "@cf/x/y" },
      { alias: "__proto__" },
      { alias: "constructor", temperature: 2 },
      { provider: "rehearsal", alias: "x" },
    ),
  },
);

/** Names of agents are given once in a workspace. */
const name: fc.Arbitrary<Json> = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 31 }).map((number): Json => `N ${number}`),
  fc.constantFrom("Mona", "a-name", "get_weather", "send_message", "mcp__x"),
  hostileText,
);

const headers: fc.Arbitrary<Json> = fc.dictionary(
  fc.constantFrom("x-a", "Authorization", "Host", "Content-Length", "a b", "__proto__", "x-{{input.a}}"),
  fc.oneof(fc.constantFrom(`Bearer ${aSecret}`, "{{input.a}}", "a\r\nb: c", `${"$"}{secret.}`, "ü"), hostileText),
  { maxKeys: 3 },
);

const tool = fc.constantFrom<Json>("tool_a", "tool_b", "tool_c", "send_message", "skip", "__proto__", "no_such_tool");

export const named: Record<string, fc.Arbitrary<Json>> = Object.assign(Object.create(null), {
  runAfter: time,
  cron,
  timezone: zone,
  scheduledAt: instant,
  url,
  baseUrl: url,
  inputSchema: jsonSchema,
  schema: jsonSchema,
  template,
  secret,
  header,
  idHeader: header,
  eventHeader: header,
  headers,
  model,
  name,
  tool,
  secretName: fc.constant("a-name"),
});
