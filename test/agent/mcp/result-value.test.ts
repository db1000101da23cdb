import { expect, test } from "vitest";
import { maxMcpResultCharacters } from "../../../src/agent/bounds.ts";
import { createRedactor } from "../../../src/agent/tools/configured/redact.ts";
import { resultValue as read } from "../../../src/agent/tools/mcp/result-value.ts";

const resultValue = (raw: unknown) => read(raw, createRedactor([]));
const text = (words: string) => ({ type: "text", text: words });

test("text is read as text, and several parts as a list", () => {
  expect(resultValue({ content: [text("4")] })).toEqual({ value: "4" });
  expect(resultValue({ content: [text("4"), text("5")] })).toEqual({ value: ["4", "5"] });
  expect(resultValue({ content: [] })).toEqual({ value: [] });
});

test("structured content is taken as it is, and not its repetition as text", () => {
  const structuredContent = { temperature: 22.5 };
  expect(resultValue({ content: [text('{"temperature":22.5}')], structuredContent })).toEqual({
    value: structuredContent,
  });
});

test("pictures, sounds, links and files are described, not shown", () => {
  const data = "A".repeat(4000);
  const content = [
    { type: "image", data, mimeType: "image/png" },
    { type: "audio", data, mimeType: "audio/wav" },
    { type: "resource_link", uri: "file:///a.txt", name: "a" },
    { type: "resource", resource: { uri: "file:///b.txt", text: "b" } },
    { type: "resource", resource: { uri: "file:///c.bin", blob: data } },
    { type: "hologram", data },
  ];
  expect(resultValue({ content })).toEqual({
    value: [
      { type: "image", mimeType: "image/png", bytes: 3000, note: "not shown" },
      { type: "audio", mimeType: "audio/wav", bytes: 3000, note: "not shown" },
      { type: "resource_link", uri: "file:///a.txt", name: "a", mimeType: undefined },
      { type: "resource", uri: "file:///b.txt", mimeType: undefined, text: "b" },
      { type: "resource", uri: "file:///c.bin", mimeType: undefined, bytes: 3000, note: "not shown" },
      { type: "unknown", note: "content of a kind that is not known here; it is left out" },
    ],
  });
});

test("what the server calls an error is one, in its words", () => {
  expect(resultValue({ content: [text("no such city")], isError: true })).toEqual({ error: "no such city" });
});

test("[B3] an answer that is too long is cut with a note, as text", () => {
  const long = resultValue({ content: [text("x".repeat(maxMcpResultCharacters + 10))] });
  expect(long).toEqual({ value: expect.stringMatching(/x \[cut: 10 more characters \(maxMcpResultCharacters\)\]$/) });
  const wide = resultValue({ structuredContent: { rows: Array.from({ length: 10_000 }, () => "row") } });
  expect(wide).toEqual({ value: expect.stringMatching(/^\{"rows":\["row",.*\[cut: /) });
});

test.each([[null], [{ content: "4" }], ["4"], [{ content: [], isError: "yes" }]])(
  "[S4] %j is no result, and said to be none",
  (nonsense) => {
    expect(resultValue(nonsense)).toEqual({ nonsense: "it answered the call with what is no result" });
  },
);

test.each([3, 11, 20])("[S3] a secret that an answer's end cuts after %i characters shows none of it", (shown) => {
  const secret = "s3cret-and-long-enough";
  const words = `${"x".repeat(maxMcpResultCharacters - shown)}${secret}, and more`;
  const redactor = createRedactor([secret]);
  const structured = { content: [], structuredContent: { words: words.slice('{"words":"'.length) } };
  const answers = [{ content: [text(words)] }, { content: [text(words)], isError: true }, structured];
  for (const answer of answers) {
    const told = JSON.stringify(read(answer, redactor));
    expect(told).not.toContain(secret.slice(0, 3));
    expect(told).toContain("(maxMcpResultCharacters)");
  }
});
