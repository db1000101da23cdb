/**
 * Characters that nobody sees: Unicode's default ignorable ones (zero width, joiners, bidi controls, tags, variation
 * selectors, fillers). Also marks of interlinear notes and hieroglyphs, the blank of Braille, what stands for an object, a
 * note without a head, the filler of Khitan, and controls other than tab and line breaks. Emoji are made with some of
 * them; there they stay as they are.
 */
export const unseen = String.raw`[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800\uFFF9-\uFFFC\u{13430}-\u{13455}\u{16FE4}\u{1D159}[\p{Cc}--[\t\n\r]]]`;

const anyUnseen = new RegExp(unseen, "v");

/** A whole emoji, and one selector of how it is drawn. What may begin one is asked first: the list of emoji is long. */
const emoji = String.raw`[0-9#*]\uFE0F\u20E3|(?=[\p{Emoji}--[0-9#*]])(?:\p{RGI_Emoji}|\p{Emoji})(?:(?<!\uFE0F)[\uFE0E\uFE0F])?`;

const unseenOrEmoji = new RegExp(`(${unseen})|${emoji}`, "gv");

const escaped = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16).toUpperCase()}}`;

/** The text with its invisible characters as escapes, such as `\u{200B}`. */
export const escapeInvisible = (text: string): string =>
  anyUnseen.test(text)
    ? text.replace(unseenOrEmoji, (found, character?: string) => (character === undefined ? found : escaped(character)))
    : text;

/** How many invisible characters the text holds. */
export const countInvisible = (text: string): number => {
  if (!anyUnseen.test(text)) return 0;
  let count = 0;
  for (const [, character] of text.matchAll(unseenOrEmoji)) count += character === undefined ? 0 : 1;
  return count;
};
