import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { ShownFields, useReading } from "../../../src/web/tool-calls/shown-fields.tsx";
import { titleOf, toolTitle } from "../../../src/web/tool-calls/titles.ts";
import { ValueView } from "../../../src/web/tool-calls/value-view.tsx";

/** The markup of a value, without the attributes that only style it. */
const shown = (value: unknown): string =>
  renderToStaticMarkup(<ValueView value={value} />).replaceAll(/ (class|dir|scope|tabindex|data-\w+)="[^"]*"/g, "");

test.each([
  ["fetchWeather", "Fetch weather"],
  ["deploy_app", "Deploy app"],
  ["getURLOfPage", "Get URL of page"],
  ["send-e-mail", "Send e mail"],
  ["x", "X"],
  ["", ""],
])("the name %s is shown as %j", (name, title) => {
  expect(titleOf(name)).toBe(title);
});

test("the title of an MCP tool names its server", () => {
  expect(toolTitle("github__create_issue")).toEqual({ title: "Create issue", server: "github" });
  expect(toolTitle("create_issue")).toEqual({ title: "Create issue", server: null });
});

test("an object is shown as fields, with nested objects and empty values", () => {
  const field = (label: string, value: string): string => `<div><dt>${label}</dt><dd>${value}</dd></div>`;
  const by = `<dl>${field("Id", "<span>7</span>")}</dl>`;
  const [name, nothing, no] = ["billing", "–", "no"].map((text) => `<span>${text}</span>`);
  expect(shown({ appName: "billing", by: { id: 7 }, note: "", sure: false })).toBe(
    `<dl>${field("App name", `${name}`)}${field("By", by)}${field("Note", `${nothing}`)}${field("Sure", `${no}`)}</dl>`,
  );
});

test("a list of flat records becomes a table of all keys; any other stays a list", () => {
  const cells = (html: string): string[] => [...html.matchAll(/<t[hd]>(.*?)<\/t/g)].map(([, text = ""]) => text);
  expect(cells(shown([{ id: 1 }, { id: 2, by: "Sara" }]).replaceAll(/<\/?span>/g, ""))).toEqual([
    "Id",
    "By",
    "1",
    "–",
    "2",
    "Sara",
  ]);
  expect(shown([{ id: 1 }, "two"])).toMatch(/^<ul>/);
  expect(shown([{ id: { deep: 1 } }, { id: { deep: 2 } }])).toMatch(/^<ul>/);
});

test("a long text is folded, a web address is a link, other schemes stay text", () => {
  expect(shown("line\n".repeat(9))).toMatch(/^<details>/);
  expect(shown("https://example.com/a")).toMatch(/^<a href="https:\/\/example.com\/a" target="_blank" rel="noopener/);
  expect(shown("javascript:alert(1)")).toBe("<span>javascript:alert(1)</span>");
  expect(shown("<b>bold</b>")).toBe("<span>&lt;b&gt;bold&lt;/b&gt;</span>");
});

test("a deep or wide value is bounded, and counts what is left out", () => {
  expect(shown(Array.from({ length: 80 }, (_, index) => index))).toMatch(/^<ul>.*<p>and 30 more<\/p>$/);
  const deep = JSON.parse(`${'{"a":'.repeat(40)}1${"}".repeat(40)}`);
  expect(shown(deep).length).toBeLessThan(2000);
});

test("[C1] characters that nobody sees show as escapes", () => {
  expect(shown({ "no\u200Bte": "a\u202Eb" })).toContain("No\\u{200B}te</dt><dd><span>a\\u{202E}b");
  expect(shown("\u0645\u06CC\u200C\u0631\u0648\u0645")).toContain("\u0645\u06CC\u200C\u0631\u0648\u0645");
  expect(shown([{ "x\u200B": 1 }, { "x\u200B": 2 }])).toContain("X\\u{200B}</th>");
});

/** What an approval shows of these texts, and how many of them are still to be unfolded. */
const Approval = ({ texts }: { texts: string[] }) => {
  const shown = texts.map((text, index) => ({ path: `input.a${index}`, text, hidden: 0 }));
  const reading = useReading({ kind: "approval", quorum: 1, answers: [], expiresAt: "", shown });
  return (
    <>
      <ShownFields reading={reading} />
      <output>{reading.unread}</output>
    </>
  );
};

test("[C1] each text that must be unfolded before an approval can be, also a blank one", () => {
  const texts = ["x".repeat(400), " ".repeat(400), "\n".repeat(6), "short", " "];
  const html = renderToStaticMarkup(<Approval texts={texts} />);
  expect([html.match(/<details/g)?.length, html.match(/<output>(\d+)/)?.[1]]).toEqual([3, "3"]);
});
