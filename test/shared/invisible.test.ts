import { describe, expect, it } from "vitest";
import { countInvisible, escapeInvisible } from "../../src/shared/invisible.ts";

describe("invisible characters", () => {
  it.each([
    ["a zero width space", "a\u200Bb", "a\\u{200B}b", 1],
    ["bidi controls", "\u202Etxt\u2069", "\\u{202E}txt\\u{2069}", 2],
    ["tags that spell words", "x\u{E0041}\u{E0042}", "x\\u{E0041}\\u{E0042}", 2],
    ["fillers and soft hyphens", "\u3164\u00AD\u180E", "\\u{3164}\\u{AD}\\u{180E}", 3],
    ["variation selectors after a letter", "a\uFE0F\u{E0100}", "a\\u{FE0F}\\u{E0100}", 2],
    ["joiners that join no emoji", "👩\u200D\u200D💻", "👩\\u{200D}\\u{200D}💻", 2],
    ["a second selector after an emoji", "☺\uFE0F\uFE0F", "☺\uFE0F\\u{FE0F}", 1],
    ["selectors that follow an emoji as data", "😀\u{E0142}\u{E0143}", "😀\\u{E0142}\\u{E0143}", 2],
    ["tags after a flag that are no known flag", "🏴\u{E0041}", "🏴\\u{E0041}", 1],
    ["control characters and interlinear marks", "a\u0007\u0085\uFFF9", "a\\u{7}\\u{85}\\u{FFF9}", 3],
    ["an object's place and symbols that draw nothing", "\uFFFC\u{1D159}\u{16FE4}", "\\u{FFFC}\\u{1D159}\\u{16FE4}", 3],
    ["the blank of Braille and marks that join hieroglyphs", "\u2800\u{13430}", "\\u{2800}\\u{13430}", 2],
  ])("shows and counts %s", (_, text, escaped, count) => {
    expect(escapeInvisible(text)).toBe(escaped);
    expect(countInvisible(text)).toBe(count);
  });

  it.each([
    ["plain text with tabs and line breaks", "a\tb\r\nc"],
    ["emoji of several people", "👨‍👩‍👧‍👦"],
    ["skin tones, flags and keycaps", "👍🏽🇩🇪1️⃣"],
    ["the flag of England", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"],
    ["emoji with a selector of how they are drawn", "❤️ ☺︎ ⌚️ 👁️‍🗨️"],
    ["letters of other scripts", "Ελληνικά 日本語 العربية हिन्दी"],
  ])("leaves %s", (_, text) => {
    expect(escapeInvisible(text)).toBe(text);
    expect(countInvisible(text)).toBe(0);
  });
});
