import { exports } from "cloudflare:workers";
import fc from "fast-check";
import { signed } from "../support/webhook-sender.ts";
import { broken, hostileJson, hostileText, type Json, mutated } from "./hostile.ts";
import { hookBodies, type Stage } from "./stage.ts";

/** What comes to a hook's address: proven or not, of any body. */
export type FuzzedDelivery = {
  /** Which of the stage's hooks it comes to. */
  hook: number;
  id: string;
  body: string;
  type: string | undefined;
  event: string | undefined;
  how: "signed" | "signed late" | "another secret" | "another body" | "unsigned" | "another scheme" | "junk";
  junk: string;
};

const payload: fc.Arbitrary<Json> = fc.constantFrom<Json>(
  { type: "alarm.raised", a: [{ b: "door" }], action: "opened" },
  { type: 7, a: { 0: { b: null } } },
  { event: "x", payload: { nested: [1, [2, [3]]] } },
);

const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 300,
});

export const delivery: fc.Arbitrary<FuzzedDelivery> = fc.record({
  hook: fc.nat({ max: hookBodies.length - 1 }),
  id: fc.oneof(
    fc.nat().map((number) => `d-${number}`),
    fc.constantFrom("same", "same", "", "a.b", "__proto__", "x".repeat(300)),
    visible,
  ),
  body: fc.oneof(
    { weight: 4, arbitrary: mutated(payload).map((value) => JSON.stringify(value)) },
    { weight: 3, arbitrary: hostileJson.map((value) => JSON.stringify(value)) },
    { weight: 2, arbitrary: broken(payload) },
    {
      weight: 2,
      arbitrary: mutated(payload).map((value) => `payload=${encodeURIComponent(JSON.stringify(value).toWellFormed())}`),
    },
    { weight: 1, arbitrary: hostileText },
    {
      weight: 1,
      arbitrary: fc.constantFrom("a=1&a=2&__proto__=3&b[]=4", "payload=%", "%00=%ff", "x".repeat(70_000), ""),
    },
  ),
  type: fc.constantFrom(
    "application/json",
    "application/json",
    "application/x-www-form-urlencoded",
    "text/plain",
    "application/cloudevents+json; charset=utf-8",
    "multipart/form-data",
    ";;;",
    undefined,
  ),
  event: fc.oneof(fc.constantFrom(undefined, "issues", "push", "ping", "issues.opened", "__proto__"), visible),
  how: fc.constantFrom(
    "signed",
    "signed",
    "signed",
    "signed",
    "signed late",
    "another secret",
    "another body",
    "unsigned",
    "another scheme",
    "junk",
  ),
  junk: visible,
});

const signatures = ["webhook-signature", "x-hub-signature-256", "x-webhook-secret", "authorization"];

const headersOf = ({ hook, id, body, how, junk }: FuzzedDelivery, secret: string): Record<string, string> => {
  const { scheme, header } = hookBodies[hook] ?? { scheme: "header" };
  const own = how === "another secret" ? `whsec_${Buffer.from(junk.padEnd(32, "x")).toString("base64")}` : secret;
  if (how === "unsigned") return {};
  if (how === "another scheme") return signed[scheme === "github" ? "header" : "github"](own, id, body).headers;
  const at = how === "signed late" ? Date.now() - 3_600_000 : Date.now();
  const kind = scheme === "standard" || scheme === "github" ? scheme : "header";
  const { headers } = signed[kind](own, id, how === "another body" ? `${body} ` : body, at);
  if (header !== undefined) headers[header.toLowerCase()] = `Bearer ${own}`;
  if (how === "junk")
    for (const name of signatures) if (headers[name] !== undefined) headers[name] = `v1,sha256=${junk}`;
  return headers;
};

/** Sends it as it is; undefined where no client could. */
export const deliverFuzzed = async (sent: FuzzedDelivery, stage: Stage): Promise<Response | undefined> => {
  const { marks } = stage;
  const headers: Record<string, string> = {
    ...headersOf(sent, marks[`secret${sent.hook}`] ?? ""),
    ...(sent.event === undefined ? {} : { "x-github-event": sent.event, "x-event": sent.event }),
  };
  delete headers["content-type"];
  if (sent.type !== undefined) headers["content-type"] = sent.type;
  let made: Request;
  try {
    const address = `https://colloquy.test/v1/hooks/${marks[`hook${sent.hook}`]}`;
    made = new Request(address, { method: "POST", headers, body: new TextEncoder().encode(sent.body) });
  } catch {
    return undefined;
  }
  return exports.default.fetch(made);
};
