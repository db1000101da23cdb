const marker = "[redacted]";
/** Stand in for the marker where a secret would still be seen beside it; one that no secret holds a part of. */
const plainMarkers = ["█", "▓", "▒", "░", "■", "□"];
/** A core of base64 shorter than this says little and is everywhere. */
const minBase64Core = 6;
/** A text in which removals keep joining parts to a secret is left out whole: only an attacker writes one. */
const maxRounds = 8;

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
const eitherCase = (hex: string): string =>
  hex.replace(/[a-f]/gi, (each) => `[${each.toLowerCase()}${each.toUpperCase()}]`);
const hexOf = (code: number, digits: number): string => eitherCase(code.toString(16).padStart(digits, "0"));

/** How a character is written in JSON, in JSON within JSON, and in HTML. */
const escapes: Record<string, string> = {
  '"': '\\\\{1,7}"|&quot;',
  "/": "\\\\{1,3}\\/",
  "\n": "\\\\{1,3}n",
  "\r": "\\\\{1,3}r",
  "\t": "\\\\{1,3}t",
  "\b": "\\\\{1,3}b",
  "\f": "\\\\{1,3}f",
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "'": "&#39;|&#x27;",
};

const utf8 = (text: string): number[] => [...new TextEncoder().encode(text)];

const row = "(?<!\\\\)\\\\+(?!\\\\)(?:u005[cC])?";

/**
 * Matches backslashes in a row, in each way to write them, and more of them. A row in a text is taken whole, with those
 * that escape what follows. Could it be divided, the ways to do so would be exponentially many.
 */
const backslashes = (count: number): string => `(?:${row}|%(?:25)?5[cC]){1,${count}}`;
/** Those of an escape stand in the row before it already. */
const leadingBackslashes = /^\\\\\{\d,\d\}/;

/** A character in all of its forms, as a pattern. */
const formsOf = (character: string, afterRow: boolean): string => {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  const forms = [
    escapes[character]?.split("|") ?? [],
    escaped(character),
    utf8(character)
      .map((byte) => `%(?:25)?${hexOf(byte, 2)}`)
      .join(""),
    units.map((unit) => `\\\\{1,3}u${hexOf(unit, 4)}`).join(""),
    character === " " ? "\\+" : [],
  ];
  const each = forms.flat();
  const bare = afterRow ? each.map((form) => form.replace(leadingBackslashes, "")) : [];
  return `(?:${[...new Set([...each, ...bare])].join("|")})`;
};

/** The part of a secret's base64 that does not depend on its neighbours, for each place where it may begin. */
const base64Cores = (secret: string): string[] =>
  [0, 1, 2].flatMap((offset) => {
    const bytes = [...Array.from({ length: offset }, () => 0), ...utf8(secret)];
    const text = btoa(String.fromCharCode(...bytes));
    const core = text.slice(Math.ceil((offset * 8) / 6), Math.floor((bytes.length * 8) / 6));
    return core.length < minBase64Core ? [] : [core, core.replaceAll("+", "-").replaceAll("/", "_")];
  });

/** A long secret is looked for piece by piece: a pattern of thousands of characters takes an engine seconds. */
const pieces = /.{128}(?=.{128})|.+/gsu;

/** A pattern for each of its characters. */
const partsOf = (piece: string): string[] =>
  (piece.match(/\\+|[^\\]/gu) ?? []).map((part, at, parts) => {
    if (part.startsWith("\\")) return backslashes(part.length);
    return formsOf(part, parts[at - 1]?.startsWith("\\") === true);
  });

/** `beginning`: where it may match. */
type Pattern = { whole: RegExp; beginning: RegExp; length: number };

const beginningParts = 3;

const patternsOf = (secret: string): Pattern[] => {
  const forms = (secret.match(pieces) ?? []).map(partsOf);
  const cores = base64Cores(secret).map((core) => [...core].map(escaped));
  const all = new Map([...forms, ...cores].map((parts) => [parts.join(""), parts]));
  return Array.from(all, ([whole, parts]) => ({
    whole: new RegExp(whole, "g"),
    beginning: new RegExp(parts.slice(0, beginningParts).join(""), "g"),
    length: parts.length,
  }));
};

/**
 * The most that a look through one answer may cost, in characters that a pattern passes over. Its server holds up
 * everybody in this isolate meanwhile (C13). Of a longer answer nothing is shown.
 */
const maxRedactionSteps = 100_000_000;
/** The cost to begin with a text, and with each character of a pattern where a text begins as it does. */
const textSteps = 16;
const tryingSteps = 8;
/** Characters of the secrets of one call: beyond that no pattern is made of them. */
const maxRedactedCharacters = 64 * 1024;
const unread =
  "[not shown: to look for the secrets in it would take too long (maxRedactionSteps); ask for less at once]";

const stepsIn = (text: string, patterns: Pattern[]): number => {
  const passing = 2 * patterns.length * (text.length + textSteps);
  if (passing > maxRedactionSteps) return passing;
  const trying = patterns.reduce((sum, { beginning, length }) => {
    const found = text.match(beginning)?.length ?? 0;
    return sum + found * beginningParts * length * tryingSteps;
  }, 0);
  return passing + trying;
};

/** Where a pattern matches, overlaps included: from, and up to. */
const spansOf = (pattern: RegExp, text: string): [number, number][] => {
  const spans: [number, number][] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    spans.push([match.index, match.index + match[0].length]);
    pattern.lastIndex = match.index + 1;
  }
  return spans;
};

/** The most that one character takes in any form: `\\\uXXXX` for each unit. */
const longestForm = 9;

export type Redactor = ReturnType<typeof createRedactor>;

/**
 * Takes the secrets that a call used out of what came back. The remote end may have sent them as they are,
 * percent-encoded, escaped as in JSON, in any mixture of these, or inside base64.
 */
export const createRedactor = (secrets: Iterable<string>) => {
  const used = [...new Set(secrets)].filter((secret) => secret !== "").sort((one, other) => other.length - one.length);
  const isTooMuch = used.reduce((sum, { length }) => sum + length, 0) > maxRedactedCharacters;
  const patterns = isTooMuch ? [] : used.flatMap(patternsOf);
  const unseen = used.some((secret) => unread.includes(secret)) ? "" : unread;
  const budget = isTooMuch ? -1 : maxRedactionSteps;
  let left = budget;
  /** Whether what is left of the answer's budget allows to look through it. */
  const spend = (text: string): boolean => {
    left -= stepsIn(text, patterns);
    return left >= 0;
  };
  const holds = (text: string): boolean => patterns.some(({ whole }) => text.search(whole) >= 0);
  /** Matches may overlap, as the pieces of a secret that repeats itself do: what any of them covers goes. */
  const without = (text: string, mark: string): string => {
    const spans = patterns.flatMap(({ whole }) => spansOf(whole, text)).sort(([one], [other]) => one - other);
    let result = "";
    let hiddenTo = -1;
    for (const [from, to] of spans) {
      if (from > hiddenTo) result += text.slice(Math.max(0, hiddenTo), from) + mark;
      hiddenTo = Math.max(hiddenTo, to);
    }
    return result + text.slice(Math.max(0, hiddenTo));
  };
  const plain = plainMarkers.find((mark) => !used.some((secret) => secret.includes(mark))) ?? "";

  const clean = (text: string): string => {
    if (!spend(text)) return unseen;
    if (!holds(text)) return text;
    const marked = without(text, marker);
    if (!spend(marked)) return unseen;
    if (!holds(marked)) return marked;
    // The marker's own letters complete a secret: one that has none, and shrinks what is left, ends.
    let result = text;
    for (let round = 0; holds(result); round += 1) {
      result = round < maxRounds && spend(result) ? without(result, plain) : "";
    }
    return result;
  };
  const longest = longestForm * (used[0]?.length ?? 0);

  const cleaned = (value: unknown): unknown => {
    if (left < 0) return null;
    if (typeof value === "string") return clean(value);
    if (typeof value === "number") return holds(String(value)) ? clean(String(value)) : value;
    if (Array.isArray(value)) return value.map(cleaned);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, held]) => [clean(name), cleaned(held)]));
  };

  /** Every text, name and number in it. */
  const json = (value: unknown): unknown => {
    left = budget;
    const result = cleaned(value);
    return left < 0 ? unseen : result;
  };

  /** `cut`: more would have followed, so the end may be half of a secret; it is left out. */
  const text = (whole: string, { cut = false } = {}): string => {
    left = budget;
    const result = clean(whole);
    return cut && left >= 0 ? result.slice(0, Math.max(0, result.length - longest)) : result;
  };
  /** Also a text that is too long to be looked through. */
  const isIn = (whole: string): boolean => text(whole) !== whole;
  return { isIn, json, text };
};
