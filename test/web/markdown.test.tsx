import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Markdown } from "../../src/web/timeline/markdown.tsx";

test.each([
  ["quotes", ">".repeat(20_000)],
  ["lists", "- ".repeat(1200)],
  ["numbered lists", "1. ".repeat(1200)],
  ["marks", `${"_".repeat(10_000)}a${"_".repeat(10_000)}`],
  ["images", `${"![".repeat(5000)}a${"](b)".repeat(5000)}`],
])("[S4] a text of %s without end shows as it was written", (_, text) => {
  const shown = renderToStaticMarkup(<Markdown text={text} names={["Ann"]} />);
  expect(shown.replaceAll("&gt;", ">")).toContain(text);
});

test("[S4] a long list and a long line of dashes show as what they are", () => {
  const text = `${"- **name** of `a` thing\n".repeat(400)}\n${"-".repeat(100)}`;
  const shown = renderToStaticMarkup(<Markdown text={text} names={["Ann"]} />);
  expect(shown.match(/<li>/g)).toHaveLength(400);
  expect(shown).toContain("<hr/>");
});
