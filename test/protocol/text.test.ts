import { describe, expect, test } from "vitest";
import { MessageText, Name } from "../../src/protocol/text.ts";

describe("a name", () => {
  test.each(["Mona", "منى", "می‌خواهم", "👩‍👩‍👧", "❤️", "O'Brien", "a".repeat(64), "😀".repeat(64)])("$0", (name) => {
    expect(Name.parse(` ${name} `)).toBe(name);
  });

  test.each([
    ["blank", "  \t "],
    ["zero-width only", "\u200b\u200d\ufeff"],
    ["fillers only", "\u3164\u115f\u2800"],
    ["with an object's place", "Mona\ufffc"],
    ["a tag only", "\u{e0041}"],
    ["two lines", "a\nb"],
    ["a line separator", "a\u2028b"],
    ["NUL", "a\u0000b"],
    ["turned around", "a\u202eb"],
    ["an isolate", "a\u2066b"],
    ["half a character", "a\ud83d"],
    ["too long", "😀".repeat(65)],
  ])("[S4] is not %s", (_, name) => {
    expect(Name.safeParse(name).success).toBe(false);
  });
});

describe("[B3] a message's text is bounded in bytes of UTF-8", () => {
  test.each(["a", "é", "€", "😀"])("of %s", (character) => {
    const most = character.repeat(32_768 / new TextEncoder().encode(character).length);
    const full = most + "a".repeat(32_768 - new TextEncoder().encode(most).length);
    expect(MessageText.safeParse(full).success).toBe(true);
    const over = MessageText.safeParse(`${full}a`);
    expect(over.error?.issues[0]).toMatchObject({
      params: { code: "text_too_long" },
      message: expect.stringContaining("(maxTextBytes)"),
    });
  });
});
