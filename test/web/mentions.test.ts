import type { Paragraph, PhrasingContent } from "mdast";
import { describe, expect, test } from "vitest";
import { completeMention, matchingNames, mentionQueryAt } from "../../src/web/composer/mention-query.ts";
import { remarkMentions } from "../../src/web/timeline/remark-mentions.ts";

const queryIn = (textWithCaret: string) => mentionQueryAt(textWithCaret.replace("|", ""), textWithCaret.indexOf("|"));

describe("completing a mention", () => {
  test("it begins with an @ at the beginning of a word", () => {
    expect(queryIn("@no|")).toEqual({ start: 0, text: "no" });
    expect(queryIn("hello (@|")).toEqual({ start: 7, text: "" });
    expect(queryIn("ask @Sara L| now")).toEqual({ start: 4, text: "Sara L" });
  });

  test("it leaves mail addresses and finished words alone", () => {
    expect(queryIn("mail me@example|")).toBeNull();
    expect(queryIn("@ nobody|")).toBeNull();
    expect(queryIn("@Nova\nnext line|")).toBeNull();
    expect(queryIn("no at all|")).toBeNull();
  });

  test("it finds names by their beginning, then by a later word", () => {
    const people = ["Liam Nova", "Nova", "Noor", "Sara"].map((name) => ({ name }));
    expect(matchingNames(people, "no").map(({ name }) => name)).toEqual(["Nova", "Noor", "Liam Nova"]);
  });

  test("it inserts the name and puts the caret behind it", () => {
    const text = "ask @no please";
    expect(completeMention(text, { start: 4, text: "no" }, 7, "Nova")).toEqual({ text: "ask @Nova please", caret: 10 });
    expect(completeMention("@n", { start: 0, text: "n" }, 2, "Nova")).toEqual({ text: "@Nova ", caret: 6 });
  });
});

describe("mentions in a text", () => {
  const words = (node: PhrasingContent): string => {
    if (node.type === "text") return node.value;
    return "children" in node ? `[${node.children.map(words).join("")}]` : "";
  };
  /** Every printable character of ASCII. */
  const every = String.fromCharCode(...Array.from({ length: 94 }, (_, at) => 33 + at));
  const marked = (text: string): string => {
    const paragraph: Paragraph = { type: "paragraph", children: [{ type: "text", value: text }] };
    remarkMentions({ names: ["Sara", "Sara Lindqvist", "C++ (bot)", every, "-./"] })({
      type: "root",
      children: [paragraph],
    });
    return paragraph.children.map(words).join("");
  };

  test("names are marked in any case, the longest first", () => {
    expect(marked("hi @Sara Lindqvist, and @sara!")).toBe("hi [@Sara Lindqvist], and [@sara]!");
  });

  test("names inside other words are not marked", () => {
    expect(marked("@Sarah, x@Sara")).toBe("@Sarah, x@Sara");
  });

  test("a name may hold characters that are special in a pattern", () => {
    expect(marked("ask @C++ (bot) now")).toBe("ask [@C++ (bot)] now");
    expect(marked(`ask @${every}, @-./ now`)).toBe(`ask [@${every}], [@-./] now`);
  });
});
