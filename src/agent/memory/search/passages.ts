/** A passage is indexed as one: long texts are several, so that a hit shows the place, and a vector means something. */
const passageCharacters = 2000;
/** What two neighbours share, so that a phrase at their border is in one of them. */
const overlapCharacters = 100;

/** Where to cut before `end`: at a paragraph, a sentence or a word, if there is one in the last quarter. */
const cutBefore = (text: string, from: number, end: number): number => {
  const earliest = from + Math.floor((end - from) * 0.75);
  for (const border of ["\n\n", "\n", ". ", " "]) {
    const at = text.lastIndexOf(border, end - border.length);
    if (at >= earliest) return at + border.length;
  }
  return /[\udc00-\udfff]/.test(text[end] ?? "") ? end - 1 : end;
};

/** A text in passages of at most 2,000 characters, in order; none of a blank one. */
export const passagesOf = (text: string): string[] => {
  if (text.trim() === "") return [];
  const passages: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = from + passageCharacters;
    if (end >= text.length) return [...passages, text.slice(from)];
    const cut = cutBefore(text, from, end);
    passages.push(text.slice(from, cut));
    const back = cut - overlapCharacters;
    const word = text.indexOf(" ", back);
    from = word !== -1 && word < cut ? word + 1 : cut;
  }
  return passages;
};
