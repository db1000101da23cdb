import { errorCodes } from "../../shared/errors.ts";
import { quote, quoteJson, quoteLines, visible } from "../../shared/quote.ts";
import { isFieldName, leastStretch } from "../../shared/stretches.ts";
import { createQuotedWords, inner } from "./quoted-words.ts";

/**
 * Finds words of others in what an agent keeps, in each form there: as they are, quoted, escaped, behind bars, on one
 * line, cut. Pure.
 *
 * Rules
 * 1. Every stretch of at least `leastStretch` characters that a text and the old words share is removed. It stays if
 *    the new words hold each part of it of that length. A shorter beginning that an ellipsis cuts is removed too.
 * 2. Shorter words are removed whole and quoted, in rows that name their message and on lines that name their sender.
 * 3. What another person or a service said stands in its space, and stays here too: nobody takes it out by repeating it.
 * 4. An escape is never cut in two: a quoted text stays one. Ids and names of kinds are never touched.
 * 5. What was written before words were said has them for a reason of its own. They stay there.
 */
/** Beginnings of words are found by so many characters, one after another. */
const gramLength = 8;

export type Words = {
  was: string[];
  /** When each was said; left out, at any time. */
  saidAt?: number[] | undefined;
  /** What stands there now; undefined where nothing does. */
  now?: string | undefined;
  senderNames?: string[] | undefined;
  /** The words are names: a value that is one, under a key for a name, goes wherever it stands. */
  areNames?: boolean | undefined;
  /** The parts of its messages' ids that the ids of their events have too. */
  idParts?: string[] | undefined;
  /** The words are of messages: those of others' messages stay. */
  isMessage?: boolean | undefined;
};

const quotedText = String.raw`"(?:[^"\\]|\\.)*"`;
const bySomebody = String.raw`${quotedText} \((?:human|service), id: ent_\w+`;
/** A line that tells a message of a person or a service, in an inbox behind what it answers, and in a history. */
const messageLine = new RegExp(
  String.raw`^(\s*(?:\[answer to \w+ ${quotedText}\] )*)(?:\[${quotedText}, spc_\w+\] ${bySomebody}, (msg_\w+)|\[(msg_\w+)\] \[[^\]]*\] ${bySomebody}\): )`,
);

/** A message of a person or a service, as events and results hold it. */
const isMessageOfSomebody = (value: object): boolean => {
  const { id, sender, senderType }: { id?: unknown; sender?: { type?: unknown } | null; senderType?: unknown } = value;
  const type = senderType ?? sender?.type;
  return typeof id === "string" && id.startsWith("msg_") && (type === "human" || type === "service");
};

/** A text one level deeper, if it is another there: in a JSON string, ours or anybody's. */
const deeper = (text: string): string[] =>
  /^[ !#-[\]-~]*$/.test(text) ? [] : [inner(text), quoteJson(text).slice(1, -1)];

/** Each way in which a text may stand in another, from the most usual on. */
const formsOf = (text: string): string[] => {
  const plain = [text, visible(text), text.trim().replace(/\s+/g, " "), quoteLines(text)];
  const once = plain.flatMap(deeper);
  return [...new Set([...plain, ...once, ...once.flatMap(deeper)])].filter((form) => form.trim() !== "");
};

/** How long an escape at the end of a text is that is not whole. */
const openEscape = (text: string): number => {
  // A pattern would try each of a long row of them.
  let slashes = 0;
  while (text[text.length - 1 - slashes] === "\\") slashes += 1;
  if (slashes % 2 === 1) return 1;
  const [unfinished = ""] = /(?<!\\)(?:\\\\)*\\u(?:[\da-fA-F]{0,3}|\{[\da-fA-F]*)$/.exec(text) ?? [];
  return unfinished.length;
};

/** How many characters from `at` on belong to an escape that begins before it. */
const escapeRest = (text: string, at: number): number => {
  const open = openEscape(text.slice(Math.max(0, at - 16), at));
  if (open === 0) return 0;
  const [rest = ""] = /^(?:\\(?:u\{[\da-fA-F]*\}|u[\da-fA-F]{4}|.))/s.exec(text.slice(at - open)) ?? [];
  return Math.max(0, rest.length - open);
};

const isLow = (text: string, at: number): boolean => /^[\udc00-\udfff]/.test(text.charAt(at));

type Span = { from: number; to: number };

/** A stretch of a form that was said at `since`, by which others that hold it are found. */
type Gram = { form: string; at: number; since: number };

/** Every `gramLength`th stretch of so many characters, and where it stands: each stretch of twice as many holds one. */
const gramsOf = (forms: Iterable<Pick<Gram, "form" | "since">>): Map<string, Gram[]> => {
  const grams = new Map<string, Gram[]>();
  for (const { form, since } of forms) {
    for (let at = 0; at + gramLength <= form.length; at += gramLength) {
      const gram = form.slice(at, at + gramLength);
      const places = grams.get(gram) ?? [];
      if (places.length === 0) grams.set(gram, places);
      // A text that says the same again and again has few that differ. Those of two times are kept, the earlier first.
      if (places.length < 8 && places.at(-4)?.since !== since) places.push({ form, at, since });
    }
  }
  return grams;
};

/** The longest stretch around a gram at `from` that the text and its form share, no part of it before `floor`. */
const sharedAt = (text: string, from: number, { form, at }: Gram, floor: number): Span => {
  let before = 0;
  while (before < Math.min(from - floor, at) && text[from - before - 1] === form[at - before - 1]) before += 1;
  let after = gramLength;
  while (from + after < text.length && at + after < form.length && text[from + after] === form[at + after]) after += 1;
  return { from: from - before, to: from + after };
};

/** The span without halves of escapes and characters at its ends. */
const whole = (text: string, { from, to }: Span): Span => {
  const start = from + escapeRest(text, from) + Number(isLow(text, from));
  const end = to - openEscape(text.slice(start, to));
  return { from: start, to: end - Number(isLow(text, end)) };
};

const replaced = (text: string, spans: Span[], mark: string): string => {
  let [made, at] = ["", 0];
  for (const { from, to } of spans.toSorted((one, other) => one.from - other.from)) {
    // A span that touches the one before is merged with it.
    if (from > at || at === 0) made += text.slice(at, from) + mark;
    at = Math.max(at, to);
  }
  return made + text.slice(at);
};

const isOurId = (value: string): boolean => /^[a-z]{2,4}_[\dA-Z]{20}[\w:]*$/.test(value);

const looksListed = (value: string): boolean => /^[a-z]+(?:[_-][a-z]+)*$/.test(value);

/** An id of ours, or a word of a list of ours. */
const isOurs = (value: string): boolean => isOurId(value) || looksListed(value);

const codes = new Set<string>(errorCodes);

/** Values under these keys tell what something is. So keys of others are named too: a long value has to look like ours. */
const isFixed = (key: string, value: string): boolean => {
  if (/^(?:toolCallId|toolName|inputHash)$/.test(key)) return !/\s/.test(value);
  if (!/(?:^|\b|[a-z])(?:ids?|Ids?|type|role|kind|toolName|status|code)$/.test(key)) return false;
  if (value.length < leastStretch) return !/\s/.test(value);
  // An agent makes ids of words. A code may be a passphrase.
  if (/ids?$/i.test(key)) return isOurId(value);
  return /code$/.test(key) ? codes.has(value) : isOurs(value);
};

/** Keys of names: of what has one, and of those who approved, or are awaited. */
const namesUnder = /(?:name|sharedFrom)$|^(?:by|waitingFor|timedOut|gone|apart|sealed|late|left)$/i;

const partLength = 26;

/** Whether a text holds one of these parts of ids. An id is read in parts, so that many parts take no longer than few. */
const finderOf = (parts: string[]): ((raw: string) => boolean) => {
  const isWhole = (part: string): boolean => part.length === partLength && /^[\dA-Z]+$/.test(part);
  const known = new Set(parts.filter(isWhole));
  const others = parts.filter((part) => !isWhole(part));
  return (raw) => {
    for (const [run] of raw.matchAll(/[\dA-Z]{26,}/g)) {
      for (let at = 0; at + partLength <= run.length; at += partLength) {
        if (known.has(run.slice(at, at + partLength))) return true;
      }
    }
    return others.some((part) => raw.includes(part));
  };
};

/**
 * Takes old words out. `named`: the row of the text names their message. `writtenAt`: when the text was written, in milliseconds
 * since the epoch; now, if left out.
 */
export type Scrub = {
  /** The same text where it holds none. */
  text(text: string, named?: boolean, writtenAt?: number): string;
  /** The same value where it holds none. */
  value<Value>(value: Value, named?: boolean, writtenAt?: number): Value;
  /** Whether a row names the message. */
  names(raw: string): boolean;
  /** Whether a value may hold old words, by its JSON: else it need not be read. */
  mayHold(json: string): boolean;
};

/** Times and ids are no words of anybody: they say what something is in rows that have nothing to do with these. */
const isTechnical = (each: string): boolean => /^(?:\d{4}-\d\d-\d\dT[\d:.]+Z|[a-z]{2,4}_[\dA-Z]{34,60})$/.test(each);

export const createScrub = ({
  was: words,
  saidAt = [],
  now,
  senderNames = [],
  areNames = false,
  idParts = [],
  isMessage = false,
}: Words): Scrub => {
  const was = words
    .map((each, index) => ({ each, since: saidAt[index] ?? 0 }))
    .filter(({ each }) => !isTechnical(each))
    .toSorted((one, other) => one.since - other.since);
  const mark = now === undefined ? "[deleted]" : "[edited]";
  const kept = now === undefined ? [] : formsOf(now);
  const forms = was.flatMap(({ each, since }) => formsOf(each).map((form) => ({ form, since })));
  const long = forms.filter(({ form }) => form.length >= leastStretch);
  const isShort = (each: string): boolean => each.length < leastStretch && each.trim() !== "" && each !== now;
  // Of equal words the first, which is the earliest, wins.
  const latestFirst = was.filter(({ each }) => isShort(each)).toReversed();
  const short = new Map(latestFirst.map(({ each, since }) => [each, since]));
  const quotedShort = createQuotedWords(short, mark);
  const sender = senderNames.map(quote).flatMap((name) => [name, inner(name)]);

  const grams = gramsOf(long);
  const keptGrams = gramsOf(kept.map((form) => ({ form, since: 0 })));
  /** The same one level deeper, as a column holds them. */
  const deepest = gramsOf([...new Set(long.flatMap(({ form }) => deeper(form)))].map((form) => ({ form, since: 0 })));
  /** The beginnings of those grams by their first two characters: most places of a text are passed over by it. */
  const first = new Uint8Array(65_536);
  const place = (code: number, next: number): number => (code * 31 + next) & 0xffff;
  for (const gram of [...grams.keys(), ...deepest.keys()]) first[place(gram.charCodeAt(0), gram.charCodeAt(1))] = 1;

  /** Up to where the new words hold what stands from a place on; nothing where that is less than `leastStretch`. */
  const keptTo = (text: string, from: number): number | undefined => {
    for (let at = from; at <= from + gramLength; at += 1) {
      for (const gram of keptGrams.get(text.slice(at, at + gramLength)) ?? []) {
        const shared = sharedAt(text, at, gram, from);
        if (shared.from === from && shared.to - from >= leastStretch) return shared.to;
      }
    }
    return undefined;
  };

  /** Whether the new words hold each part of a stretch that is long enough. */
  const isKept = (text: string, { from, to }: Span): boolean => {
    if (to - from < leastStretch) return kept.some((each) => each.includes(text.slice(from, to)));
    for (let at = from; at + leastStretch <= to; ) {
      const end = keptTo(text, at);
      if (end === undefined) return false;
      at = end - leastStretch + 1;
    }
    return true;
  };

  /**
   * Takes time that grows with the text, whatever it and the words repeat. It looks again only at as much of the text
   * as a stretch that goes on behind may need.
   */
  const stretches = (text: string, writtenAt: number): Span[] => {
    const spans: Span[] = [];
    let floor = 0;
    for (let at = 0; at + gramLength <= text.length; at += 1) {
      if (first[place(text.charCodeAt(at), text.charCodeAt(at + 1))] === 0) continue;
      const found = (grams.get(text.slice(at, at + gramLength)) ?? [])
        .filter(({ since }) => since <= writtenAt)
        .map((gram) => ({ ...sharedAt(text, at, gram, floor), isBeginning: gram.at === 0 }))
        .filter(({ from, to, isBeginning }) => to - from >= leastStretch || (isBeginning && text[to] === "…"))
        .toSorted((one, other) => other.to - other.from - (one.to - one.from));
      const longest = found.find((span) => !isKept(text, span));
      if (longest) spans.push(whole(text, longest));
      const end = longest?.to ?? Math.max(0, ...found.map(({ to }) => to));
      if (end === 0) continue;
      floor = Math.max(floor, end - leastStretch + 1);
      at = Math.max(at, longest ? end - gramLength : end - leastStretch);
    }
    return spans;
  };

  const namesIn = finderOf(idParts);
  /** Where in a line another's message begins; beyond its end where none does. */
  const othersAt = (line: string): number => {
    const found = isMessage ? messageLine.exec(line) : null;
    return !found || namesIn(found[2] ?? found[3] ?? "") ? line.length + 1 : (found[1] ?? "").length;
  };

  /** The spans without what lies in others' messages. A line is looked at a few times, however many spans it has. */
  const outsideOfOthers = (text: string, spans: Span[]): Span[] => {
    let [from, to, others] = [0, -1, 0];
    return spans.flatMap((span) => {
      const left: Span[] = [];
      let start = span.from;
      for (let at = span.from; at < span.to; at = to + 1) {
        // The next span may begin within the end of the last.
        if (at > to || at < from) {
          from = text.lastIndexOf("\n", at - 1) + 1;
          const end = text.indexOf("\n", at);
          to = end === -1 ? text.length : end;
          others = from + othersAt(text.slice(from, to));
        }
        if (others > to || others >= span.to) continue;
        left.push({ from: start, to: others - Number(text[others - 1] === "\n") });
        start = to + 1;
      }
      return [...left, { from: start, to: span.to }].filter(({ from, to }) => from < to);
    });
  };

  const scrubText = (text: string, named = false, writtenAt = Number.POSITIVE_INFINITY): string => {
    const found = long.length === 0 ? [] : stretches(text, writtenAt);
    const spans = isMessage && found.length > 0 ? outsideOfOthers(text, found) : found;
    const left = spans.length === 0 ? text : replaced(text, spans, mark);
    if (short.size === 0 || !quotedShort.isIn(left, writtenAt)) return left;
    if (named && !isMessage) return quotedShort.without(left, writtenAt);
    const isTheirs = (line: string): boolean => named || sender.some((name) => line.includes(name));
    return left
      .split("\n")
      .map((line) => (isTheirs(line) && othersAt(line) > line.length ? quotedShort.without(line, writtenAt) : line))
      .join("\n");
  };

  const scrubValue = (value: unknown, named: boolean, writtenAt: number, key = ""): unknown => {
    if (typeof value === "string") {
      if (isFixed(key, value)) return value;
      const isName = areNames && namesUnder.test(key);
      const isIts = (named || isName) && short.has(value) && (short.get(value) ?? 0) <= writtenAt;
      return isIts ? mark : scrubText(value, named, writtenAt);
    }
    if (typeof value !== "object" || value === null) return value;
    const isTheirs = isMessageOfSomebody(value);
    const isIt = isTheirs && namesIn(String(Reflect.get(value, "id")));
    if (isMessage && isTheirs && !isIt) return value;
    // Once it was edited, a message has words that are later than itself.
    const heldAt = isIt ? Number.POSITIVE_INFINITY : writtenAt;
    let isSame = true;
    const changed = Object.entries(value).map(([name, held]): [string, unknown] => {
      const left = scrubValue(held, named, heldAt, Array.isArray(value) ? key : name);
      const label = Array.isArray(value) || isFieldName(name) || isOurs(name) ? name : scrubValue(name, named, heldAt);
      isSame &&= left === held && label === name;
      return [String(label), left];
    });
    if (isSame) return value;
    return Array.isArray(value) ? changed.map(([, held]) => held) : Object.fromEntries(changed);
  };

  return {
    text: scrubText,
    value: <Value>(value: Value, named = false, writtenAt = Number.POSITIVE_INFINITY) =>
      scrubValue(value, named, writtenAt) as Value,
    mayHold(json) {
      if (quotedShort.mayBeIn(json)) return true;
      for (let at = 0; at + gramLength <= json.length; at += 1) {
        if (first[place(json.charCodeAt(at), json.charCodeAt(at + 1))] === 0) continue;
        const gram = json.slice(at, at + gramLength);
        if (grams.has(gram) || deepest.has(gram)) return true;
      }
      return false;
    },
    names: namesIn,
  };
};
