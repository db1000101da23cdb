/** How much of a text a hit shows, in characters, and how many of them come before what was found. */
export const excerptCharacters = 240;
const leadCharacters = 50;
/** How much further an excerpt may go to end with a whole word. */
const tailCharacters = 20;
/** A word is found where its beginning stands, since words are looked for by their stem. */
const stemShare = 0.7;
const fewestStemCharacters = 3;

const stemOf = (word: string): string =>
  word.slice(0, Math.max(Math.min(word.length, fewestStemCharacters), Math.ceil(word.length * stemShare)));

/** Each place where one of the words begins, with that word. */
const placesOf = (text: string, words: string[]): { at: number; word: string }[] =>
  words.flatMap((word) => {
    const places: { at: number; word: string }[] = [];
    const stem = stemOf(word);
    for (let at = text.indexOf(stem); at !== -1 && places.length < 20; at = text.indexOf(stem, at + 1)) {
      if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) places.push({ at, word });
    }
    return places;
  });

/** The place whose excerpt holds the most of the words, a rare one counting for more; the first of those. */
const bestPlace = (text: string, words: string[], reach: number): number => {
  const places = placesOf(text, words).toSorted((one, other) => one.at - other.at);
  const weight = (word: string): number => 1 / places.filter((place) => place.word === word).length;
  const weights = new Map([...new Set(words)].map((word) => [word, weight(word)]));
  let best = { at: 0, found: 0 };
  for (const { at } of places) {
    const near = new Set(places.flatMap((other) => (other.at >= at && other.at < at + reach ? [other.word] : [])));
    const found = [...near].reduce((sum, word) => sum + (weights.get(word) ?? 0), 0);
    if (found > best.found) best = { at, found };
  }
  return best.at;
};

const isInsidePair = (text: string, at: number): boolean =>
  /[\udc00-\udfff]/.test(text[at] ?? "") && /[\ud800-\udbff]/.test(text[at - 1] ?? "");

/** About `length` characters of a text around the first place that holds most of `words`, with `...` where it was cut. */
export const excerptOf = (content: string, words: string[], length = excerptCharacters): string => {
  if (content.length <= length) return content;
  // Not all letters keep their length in lower case; places in a text that changes would be wrong.
  const lower = content.toLowerCase();
  const text = lower.length === content.length ? lower : content;
  const found = bestPlace(
    text,
    words.map((word) => word.toLowerCase()),
    length - leadCharacters,
  );
  let start = Math.max(0, Math.min(found - leadCharacters, content.length - length));
  let end = Math.min(content.length, start + length);
  const wordEnd = content.slice(end, end + tailCharacters).search(/\s/);
  if (wordEnd >= 0) end += wordEnd;
  if (isInsidePair(content, start)) start -= 1;
  if (isInsidePair(content, end)) end += 1;
  return `${start > 0 ? "..." : ""}${content.slice(start, end)}${end < content.length ? "..." : ""}`;
};
