import { describe, expect, it } from "vitest";
import { block } from "./block.ts";

const most = 200_000;
const replace = (old: string, next: string, mode: string) => ({ op: "replace_text", old, new: next, mode });

/** One edit may ask for far more than it says. It is refused before it is made. */
describe("[S4] an edit that would grow without end is refused at once, and changes nothing", () => {
  it.each([
    ["every letter by the longest text", replace("a", "b".repeat(most), "all")],
    ["a match by itself, often", replace("(a+)", "$1".repeat(most / 2), "regex")],
    ["twice as long, a hundred times", Array.from({ length: 100 }, () => replace("a", "aa", "all"))],
    ["a match twice, a hundred times", Array.from({ length: 100 }, () => replace("(?s)(.*)", "$1$1", "regex"))],
    ["the longest text, five times", Array.from({ length: 5 }, () => ({ op: "append_text", text: "y".repeat(most) }))],
  ])("%s", (_, operations) => {
    const text = block({ type: "text" }, { content: "a".repeat(10_000), charLimit: most });
    expect(() => text.edit(operations)).toThrow(/maxBlockCharacters|charLimit|too large/);
    expect(text.version()).toBe(1);
    expect(text.value()).toBe("a".repeat(10_000));
  });

  it("a list of more items than any holds", () => {
    const map = block({ type: "map", fields: [{ name: "tags", type: "list" }] }, { charLimit: most });
    const tags = Array.from({ length: 200_000 }, () => 1);
    expect(() => map.edit({ op: "set_field", field: "tags", value: tags })).toThrow("maxListItems");
    expect(() => block({ type: "list", maxItems: 1 }, { content: tags })).toThrow("maxListItems");
    expect(() => block({ type: "log" }, { content: tags.map(() => "") })).toThrow("maxLogEntries");
  });
});

describe("a large edit", () => {
  it("of many places takes time that grows with the text", () => {
    const text = block({ type: "text" }, { content: "ab\n".repeat(60_000), charLimit: most });
    text.edit(replace("a", "x", "all"));
    expect(text.value()).toBe("xb\n".repeat(60_000));
    text.edit({ op: "undo" });
    expect(text.value()).toBe("ab\n".repeat(60_000));
  });

  it("of many places keeps what another wrote between them", () => {
    const text = block({ type: "text" }, { content: "a b\n".repeat(2000), charLimit: most });
    text.edit({ op: "append_text", text: "the end" }, { author: "person" });
    text.edit(replace("a", "x", "all"), { on: 1 });
    expect(text.value()).toBe(`${"x b\n".repeat(2000)}the end`);
  });

  it("that is too large says how much was there before", () => {
    const text = block({ type: "text" }, { charLimit: most });
    text.edit({ op: "append_text", text: "y".repeat(most - 1) });
    expect(() => text.edit({ op: "append_text", text: "y".repeat(most) })).toThrow("and it holds 199999 now");
  });

  it("is told in few words", () => {
    const text = block({ type: "text" }, { content: "x".repeat(10_000), charLimit: most });
    const [result] = text.edit(replace("x".repeat(10_000), "🌍".repeat(1000), "first"));
    expect(result?.message.length).toBeLessThan(600);
    expect(result?.message.isWellFormed()).toBe(true);
  });

  it("by a patch whose hunks all stand elsewhere takes time that grows with the text", () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => `l${index}`);
    const text = block({ type: "text" }, { content: `new\n${lines.join("\n")}\n`, charLimit: most });
    const hunks = Array.from({ length: 6000 }, (_, index) => `@@ -${index * 3 + 1} +1 @@\n-l${index * 3}\n+m\n`);
    expect(text.edit({ op: "patch", patch: hunks.join("") })[0]?.message).toBe("Applied 6000 hunk(s) to block 'notes'");
    const expected = lines.map((line, index) => (index < 18_000 && index % 3 === 0 ? "m" : line));
    expect(text.value()).toBe(`new\n${expected.join("\n")}\n`);
  });
});
