/** A place in a text that may break off anywhere. `isOver`: nothing after it can be read. */
type Reader = { readonly text: string; at: number; isOver: boolean };

type Read = { value: unknown } | null;

const maxDepth = 64;

/** What a JSON text that is still being written says so far; undefined where it says nothing yet. Never throws. */
export const parsePartialJson = (text: string): unknown => readValue({ text, at: 0, isOver: false }, maxDepth)?.value;

const skipBlanks = (reader: Reader): string => {
  while (/\s/.test(reader.text[reader.at] ?? "")) reader.at += 1;
  const next = reader.text[reader.at];
  if (next === undefined) reader.isOver = true;
  return next ?? "";
};

const giveUp = (reader: Reader): null => {
  reader.isOver = true;
  return null;
};

const readValue = (reader: Reader, depth: number): Read => {
  const next = skipBlanks(reader);
  if (depth === 0 || next === "") return giveUp(reader);
  if (next === '"') return { value: readString(reader) };
  if (next === "{") return { value: readObject(reader, depth) };
  if (next === "[") return { value: readArray(reader, depth) };
  return readScalar(reader);
};

/** The index after a character of a string, its escape whole; -1 where it breaks off. */
const afterCharacter = (text: string, at: number): number => {
  if (text[at] !== "\\") return at + 1;
  const length = text[at + 1] === "u" ? 6 : 2;
  return at + length > text.length ? -1 : at + length;
};

/** The string that begins here, as far as it goes; half of a character is not shown. */
const readString = (reader: Reader): string => {
  const { text } = reader;
  const from = reader.at + 1;
  let at = from;
  while (at < text.length && text[at] !== '"') {
    const after = afterCharacter(text, at);
    if (after < 0) break;
    at = after;
  }
  const isWhole = text[at] === '"';
  reader.at = at + 1;
  if (!isWhole) reader.isOver = true;
  const raw = text.slice(from, at);
  const shown = unescaped(raw);
  return isWhole ? shown : shown.replace(/[\ud800-\udbff]$/, "");
};

const unescaped = (raw: string): string => {
  try {
    return String(JSON.parse(`"${raw}"`));
  } catch {
    return raw; // a line break or an escape that JSON does not know: shown as it was written
  }
};

const readScalar = (reader: Reader): Read => {
  const [word = ""] = /^[^\s,:\]}]*/.exec(reader.text.slice(reader.at, reader.at + 64)) ?? [];
  reader.at += word.length;
  const isWhole = reader.at < reader.text.length;
  if (!isWhole) reader.isOver = true;
  if (word === "null") return { value: null };
  if (word === "true" || word === "false") return { value: word === "true" };
  const number = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/.exec(word)?.[0];
  if (number === undefined || (isWhole && number !== word)) return giveUp(reader);
  return { value: Number(number) };
};

const readArray = (reader: Reader, depth: number): unknown[] => {
  const items: unknown[] = [];
  reader.at += 1;
  while (!reader.isOver) {
    const next = skipBlanks(reader);
    if (next === "]") {
      reader.at += 1;
      return items;
    }
    if (next === ",") {
      reader.at += 1;
      continue;
    }
    const item = readValue(reader, depth - 1);
    if (item) items.push(item.value);
  }
  return items;
};

/** Built by entries, so that a key of `__proto__` is a key like any other. */
const readObject = (reader: Reader, depth: number): Record<string, unknown> => {
  const entries: [string, unknown][] = [];
  reader.at += 1;
  while (!reader.isOver) {
    const next = skipBlanks(reader);
    if (next === "}") {
      reader.at += 1;
      break;
    }
    if (next === ",") {
      reader.at += 1;
      continue;
    }
    if (next !== '"') giveUp(reader);
    const key = reader.isOver ? "" : readString(reader);
    if (reader.isOver || skipBlanks(reader) !== ":") {
      giveUp(reader);
      break;
    }
    reader.at += 1;
    const value = readValue(reader, depth - 1);
    if (value) entries.push([key, value.value]);
  }
  return Object.fromEntries(entries);
};
