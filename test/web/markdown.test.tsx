import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Markdown } from "../../src/web/timeline/markdown.tsx";

test.each([
  ["quotes", ">".repeat(20_000)],
  ["lists", "- ".repeat(1200)],
  ["numbered lists", "1. ".repeat(1200)],
  ["marks", `${"_".repeat(10_000)}a${"_".repeat(10_000)}`],
  ["images", `${"![".repeat(5000)}a${"](b)".repeat(5000)}`],
  ["cells", `${"|a".repeat(4000)}|\n${"|-".repeat(4000)}|\n${"a\n".repeat(8000)}a`],
  ["small tables", `${"|a".repeat(60)}|\n${"|-".repeat(60)}|\n${"a\n".repeat(50)}\n`.repeat(90).trim()],
  ["underlined headings", `${"a\n=\n".repeat(8000)}a`],
  ["quotes apart", `${"> a\n\n".repeat(6000)}a`],
  ["lists in lists", `${"- a\n  - b\n".repeat(3000)}a`],
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

test("[S4] a table, an outline and quotes of a usual length show as what they are", () => {
  const table = `| a | b_c | d |\n|---|:-:|---|\n${"| 1 | `x` | 3 |\n".repeat(300)}`;
  const text = [table, "- a\n  - b\n".repeat(200), "> quoted\n".repeat(300), "Head\n====\n"].join("\n");
  const shown = renderToStaticMarkup(<Markdown text={text} names={["Ann"]} />);
  expect(["<table>", "<ul>", "<blockquote>", "<h3>"].filter((tag) => !shown.includes(tag))).toEqual([]);
});
