import { RE2JS, RE2JSException } from "re2js";
import { inOneBudget, isAffordable } from "./check-budget.ts";
import { ColloquyError } from "./errors.ts";

/**
 * Patterns that somebody else wrote, run by RE2: the time is linear in the text, whatever the pattern (B3). A pattern is
 * one of ECMAScript with the `u` flag, as in JSON Schema, and matches what it matches there. RE2 has no lookaround, no
 * backreferences and no inline flags, and repeats at most 1,000 times.
 */
/** The most that the compiled patterns hold together, as sizes of their programs. */
const maxCachedSteps = 200_000;
/** The most instructions of a pattern, counted before it is compiled: `{1,1000}` repeats what stands before it. */
export const maxPatternSize = 10_000;

/** Escapes, whole; the beginning of a group with flags; else one character. */
const tokens =
  /\\u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})|\\[pP]\{[^}]*\}|\\.|\(\?(?=[a-z-])|[\s\S]/gu;

/** The characters of `\s` and of `\S`, for a class: RE2 knows those of ASCII only. */
const spaces = String.raw`\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`;
const others = String.raw`\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`;

const unsupported = (reason: string): ColloquyError =>
  new ColloquyError("invalid_request", `has what RE2 does not: ${reason}`);

const codePointOf = (high: string, low: string): number =>
  String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)).codePointAt(0) ?? 0;

/** An ECMAScript pattern in the syntax of RE2, as far as the two differ beyond what `translateRegExp` knows. */
const translated = (source: string): string => {
  let inClass = false;
  return source.replace(tokens, (token: string, high?: string, low?: string) => {
    if (high !== undefined && low !== undefined) return `\\x{${codePointOf(high, low).toString(16)}}`;
    if (token.startsWith("\\k")) throw unsupported("a backreference");
    switch (token) {
      case "[":
        if (inClass) return "\\[";
        inClass = true;
        return token;
      case "]":
        inClass = false;
        return token;
      case "(?":
        if (!inClass) throw unsupported("a group with flags");
        return token;
      case ".":
        return inClass ? token : String.raw`[^\n\r\x{2028}\x{2029}]`;
      case "\\s":
        return inClass ? spaces : `[${spaces}]`;
      case "\\S":
        return inClass ? others : `[${others}]`;
      case "\\b":
        return inClass ? "\\x08" : token;
      default:
        return token.replace(/^(\\[pP]\{)(?:Script|sc|General_Category|gc)=/, "$1");
    }
  });
};

const compile = (source: string): RE2JS => {
  requireSmallPatterns([source]);
  try {
    return RE2JS.compile(RE2JS.translateRegExp(translated(source)));
  } catch (error) {
    throw error instanceof RE2JSException ? unsupported(error.message.replace(/^error parsing regexp: /, "")) : error;
  }
};

const atoms = /\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\.|\{\d+(?:,\d*)?\}|[\s\S]/gu;
/** A class of Unicode takes as much to compile as so many characters. */
const classWeight = 8;

/** About how many instructions a pattern has when it is compiled; never far below. */
export const patternSize = (source: string): number => {
  const outer: number[] = [];
  let sum = 0;
  let last = 0;
  let inClass = false;
  for (const [atom] of source.matchAll(atoms)) {
    // The text that it quotes would be counted as syntax.
    if (atom === "\\Q") {
      throw new ColloquyError("invalid_request", "holds \\Q: put a backslash before each character instead");
    }
    const weight = /^\\p/i.test(atom) ? classWeight : 1;
    if (inClass) {
      inClass = atom !== "]";
      if (weight > 1) [sum, last] = [sum + weight, last + weight];
    } else if (atom === "(") {
      outer.push(sum);
      [sum, last] = [0, 0];
    } else if (atom === ")") {
      last = sum;
      sum += outer.pop() ?? 0;
    } else if (atom.startsWith("{") && atom.length > 1) {
      const times = Math.max(1, ...(atom.match(/\d+/g) ?? []).map(Number));
      sum += last * (times - 1);
      last *= times;
    } else {
      inClass = atom === "[";
      last = weight;
      sum += weight;
    }
  }
  return outer.reduce((whole, part) => whole + part, sum);
};

/** Throws `invalid_request` for patterns that would take long to compile, one after the other. */
export const requireSmallPatterns = (sources: string[]): void => {
  if (sources.reduce((sum, source) => sum + patternSize(source), 0) <= maxPatternSize) return;
  const most = `at most ${maxPatternSize} characters, counted as often as they repeat (maxPatternSize)`;
  const message = sources.length === 1 ? `is too large: ${most}` : `patterns are too large: together ${most}`;
  throw new ColloquyError("invalid_request", message);
};

const compiled = new Map<string, RE2JS>();
let cachedSteps = 0;
/** Each test costs these steps, beside those of its text. */
const testSteps = 16;

/** Stands in for `RegExp` where a library compiles such patterns and only tests by them. */
export class LinearPattern extends RegExp {
  /** Throws `invalid_request` where RE2 does not have the pattern, or the check has cost too much. */
  override test(text: string): boolean {
    const { source } = this;
    const known = compiled.get(source);
    const pattern = known ?? compile(source);
    if (!known) {
      if (cachedSteps > maxCachedSteps) {
        compiled.clear();
        cachedSteps = 0;
      }
      compiled.set(source, pattern);
      cachedSteps += pattern.programSize();
    }
    if (isAffordable("maxPatternSteps", testSteps + pattern.programSize() * text.length)) return pattern.test(text);
    throw new ColloquyError(
      "invalid_request",
      `its patterns are too large for a value of this length: shorten them, or the texts (maxPatternSteps)`,
    );
  }
}

/** Does one check, which is synchronous, with RE2 in place of `RegExp`: the validator takes no engine of our choice. */
export const withLinearPatterns = <T>(check: () => T): T => {
  const native = globalThis.RegExp;
  Object.assign(globalThis, { RegExp: LinearPattern });
  try {
    return inOneBudget(check);
  } finally {
    Object.assign(globalThis, { RegExp: native });
  }
};
