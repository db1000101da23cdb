/** Terms of one query that are looked for; what comes after them is left out. */
const maxQueryTerms = 32;

/** The characters that the tokenizer `unicode61` takes for parts of a word. */
const ofWord = /[\p{L}\p{N}\p{Co}]/u;

/** Words that say nothing of what is looked for; they count where a query has no others. */
const common = new Set(
  `a about am an and any are as at be been being but by can could did do does for from had has have he her him his how
  i if in into is it its me my near no not of on or our ours she should so some than that the their them then there
  these they this those to us was we were what when where which who whom whose why will with would you your`.split(
    /\s+/,
  ),
);

type Term = { text: string; prefix: boolean; phrase: boolean };

const quoted = ({ text, prefix }: Term): string => `"${text}"${prefix ? "*" : ""}`;

const termsIn = (text: string): Term[] => {
  const terms: Term[] = [];
  for (const [, phrase, star, piece = ""] of text
    .replaceAll("\0", " ")
    .matchAll(/"([^"]*)"(\*?)|([^\s"()[\]{}<>:;,!?/\\|=+&^~]+)/g)) {
    const isPhrase = phrase !== undefined;
    const written = phrase ?? piece;
    const prefix = isPhrase ? star === "*" : /[\p{L}\p{N}\p{Co}]\*+$/u.test(written);
    const bare = written.replace(/\*+$/, "").replace(/['’]s$/iu, "");
    if (ofWord.test(bare)) terms.push({ text: bare, prefix, phrase: isPhrase });
  }
  return terms;
};

const isCommon = ({ text, prefix, phrase }: Term): boolean =>
  !prefix && !phrase && common.has(text.toLowerCase().replace(/^[^\p{L}\p{N}]+|['’].*$|[^\p{L}\p{N}]+$/gu, ""));

/**
 * Any text as an expression that FTS5 takes: words of which any may match, `"phrases"` which all must, and `pref*`.
 * Nothing else that FTS5 knows as syntax is syntax here: whatever is not a letter or a digit only parts words. Null where
 * the text holds nothing to look for. `words` are those of the text, for the excerpt. `isExact`: there is a phrase, which must
 * be in what is found.
 */
export const matchOf = (text: string): { expression: string | null; words: string[]; isExact: boolean } => {
  const all = termsIn(text);
  const telling = all.filter((term) => !isCommon(term));
  const chosen = new Map((telling.length > 0 ? telling : all).map((term) => [quoted(term).toLowerCase(), term]));
  const terms = [...chosen.values()].slice(0, maxQueryTerms);
  if (terms.length === 0) return { expression: null, words: [], isExact: false };
  const phrases = terms.filter(({ phrase }) => phrase).map(quoted);
  const words = terms.filter(({ phrase }) => !phrase).map(quoted);
  const [first] = phrases;
  // Words beside a phrase may be missing; they raise the rank where they match.
  const rest = first === undefined ? words : words.length > 0 ? [`(${[...words, first].join(" OR ")})`] : [];
  const expression = first === undefined ? rest.join(" OR ") : [...phrases, ...rest].join(" AND ");
  return { expression, words: terms.map((term) => term.text), isExact: first !== undefined };
};
