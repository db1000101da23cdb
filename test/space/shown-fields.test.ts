import { expect, test } from "vitest";
import { maxShownFields, maxToolInputBytes } from "../../src/space/bounds.ts";
import { shownFields } from "../../src/space/tool-calls/shown-fields.ts";

const shown = (input: unknown) => shownFields({ name: "sendEmail", input }).slice(1);
const texts = (input: unknown) => shown(input).map(({ path, text }) => `${path} = ${text}`);

test("[C1] every value is listed under its own path, in order, whatever it is called", () => {
  const input = { message: "m", options: [{ label: "ok" }, 2], prompt: true, schema: null, question: "", multiple: {} };
  expect(texts({ ...input, list: [] })).toEqual([
    "input.message = m",
    "input.options[0].label = ok",
    "input.options[1] = 2",
    "input.prompt = true",
    "input.schema = null",
    "input.question = ",
    "input.multiple = {}",
    "input.list = []",
  ]);
});

test("[C1] tool and target stand first, and no field of the input can pass for them", () => {
  const input = { tool: "x", target: "y", request: "z", "a b": 1, "c.d": 2 };
  const request = { url: "https://mail.example/send", body: { cc: "boss@mail.example", input: "i" } };
  const all = shownFields({ name: "sendEmail", target: "POST https://mail.example", request, input });
  expect(all.map(({ path }) => path)).toEqual([
    ...["tool", "target", "request.url", "request.body.cc", "request.body.input"],
    ...["input.tool", "input.target", "input.request", 'input["a b"]', 'input["c.d"]'],
  ]);
});

test("[C1] an input that is no object, or empty, is shown as it is", () => {
  for (const [input, text] of [
    [null, "null"],
    [7, "7"],
    ["", ""],
    [{}, "{}"],
    [[], "[]"],
  ] as const) {
    expect(shown(input)).toEqual([{ path: "input", text, hidden: 0 }]);
  }
});

test("[C1] a text that reads like another value of JSON is told from it", () => {
  const given = shown([false, "false", 7, "7", "[]", "null", '"7"', "7 a"]).map(({ text }) => text);
  expect(given).toEqual(["false", '"false"', "7", '"7"', '"[]"', '"null"', '"\\"7\\""', "7 a"]);
});

test("[C1] invisible characters are escaped and counted, in values and in names", () => {
  const tags = [..."pay"].map((letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("");
  expect(shown({ to: `ann@x.example${tags}`, "a\u200Bb": "\u202Egpj.exe" })).toEqual([
    { path: "input.to", text: "ann@x.example\\u{E0070}\\u{E0061}\\u{E0079}", hidden: 3 },
    { path: 'input["a\\u{200B}b"]', text: "\\u{202E}gpj.exe", hidden: 2 },
  ]);
  expect(shown({ to: "Ann 👩‍💻" })).toEqual([{ path: "input.to", text: "Ann 👩‍💻", hidden: 0 }]);
});

test("[B3] [C1] what has too many fields stands as JSON, whole, and stays within bounds", () => {
  const many = Array.from({ length: maxShownFields + 1 }, (_, index) => index);
  expect(texts({ message: "m", options: many })).toEqual([
    "input.message = m",
    `input.options = ${JSON.stringify(many)}`,
  ]);
  const wide = Object.fromEntries(many.map((index) => [`k${index}`, index]));
  expect(shown(wide)).toEqual([{ path: "input", text: JSON.stringify(wide), hidden: 0 }]);
  const request = { url: "https://mail.example/", body: many };
  expect(shownFields({ name: "sendEmail", request, input: 1 }).map(({ path }) => path)).toEqual([
    ...["tool", "request.url", "request.body", "input"],
  ]);
  const deep = { a: { b: { c: { d: { e: { f: { g: { h: { i: "end" } } } } } } } } };
  expect(texts(deep)).toEqual(['input.a.b.c.d.e.f.g.h = {"i":"end"}']);
  const longKey = "k".repeat(maxToolInputBytes / 2);
  const hostile = { [longKey]: Array.from({ length: 190 }, () => "\u200B".repeat(50)) };
  expect(JSON.stringify(shown(hostile)).length).toBeLessThan(5 * JSON.stringify(hostile).length);
  const fields = shown({ [longKey]: [1, 2] });
  expect(fields).toEqual([{ path: `input.${longKey}`, text: "[1,2]", hidden: 0 }]);
});
