import type { Issue } from "../../../shared/errors.ts";
import { checkOutgoing } from "../../../shared/outgoing.ts";
import { hasPlaces, type Part, parsePlaceholders } from "./placeholders.ts";

/**
 * A URL with places in segments of its path and in values of its query.
 *
 * Invariants
 * 1. Scheme, host and port are fixed when the template is written: no input changes where a request goes.
 * 2. An input fills its own segment or value and nothing else: it is percent-encoded, and `.`, `..` and nothing at all
 *    are refused as segments.
 * 3. Secrets stand in the query only: a path is logged by every server on its way.
 */
export type UrlTemplate = {
  origin: string;
  segments: Part[][];
  query: { name: string; value: Part[] }[];
};

export type ParsedUrl = { ok: true; template: UrlTemplate } | { ok: false; issues: Issue[] };

const beginning = /^(https?:\/\/[^/?#\\]*)([^?]*)(?:\?(.*))?$/is;

/** `.` and `..` in every way of writing them that a URL parser follows. */
const dots = /^(?:\.|%2e){1,2}$/i;

export const isDots = (segment: string): boolean => dots.test(segment);

/** Whether the URL stays as it is written: what a parser would drop or turn is refused, so that invariants 1 and 2 hold. */
const oddity = (url: string): string | undefined => {
  if (/[\p{Cc}\s]/u.test(url.replace(/\{\{[^}]*\}\}|\$\{[^}]*\}/g, "")))
    return "must hold no blanks: write them as %20";
  if (url.includes("\\")) return "must hold no backslash";
  if (url.includes("#")) return "must have no fragment (#…): it is not sent";
  if (!url.isWellFormed()) return "must be well-formed Unicode";
  return undefined;
};

export const parseUrlTemplate = (url: string, { allowLoopback }: { allowLoopback: boolean }): ParsedUrl => {
  const refused = (message: string): ParsedUrl => ({ ok: false, issues: [{ path: "", message }] });
  const odd = oddity(url);
  if (odd !== undefined) return refused(odd);
  const [, authority, path = "", query] = beginning.exec(url) ?? [];
  if (authority === undefined) return refused("must begin with https://");
  if (hasPlaces(authority)) return refused("must hold no place in its scheme, host or port: they are fixed");
  const verdict = checkOutgoing(authority, { allowLoopback });
  if (!verdict.ok) return refused(`cannot be used: ${verdict.reason}`);

  const issues: Issue[] = [];
  const parse = (text: string, secrets: boolean): Part[] => {
    const parsed = parsePlaceholders(text);
    if (!parsed.ok) issues.push({ path: "", message: parsed.message });
    else if (!secrets && parsed.parts.some(({ kind }) => kind === "secret")) {
      issues.push({ path: "", message: "must hold secrets in its query only, not in its path" });
    } else return parsed.parts;
    return [];
  };
  const segments = (path === "" ? "/" : path).slice(1).split("/");
  if (segments.some(isDots)) issues.push({ path: "", message: 'must hold no "." or ".." in its path' });
  const pairs = query === undefined ? [] : query.split("&").map((pair) => pair.split(/=(.*)/s, 2));
  if (pairs.some(([name = ""]) => hasPlaces(name))) {
    issues.push({ path: "", message: "must hold no place in a name of its query, only in values" });
  }
  const template: UrlTemplate = {
    origin: verdict.url.origin,
    segments: segments.map((segment) => parse(segment, false)),
    query: pairs.map(([name = "", value]) => ({ name, value: parse(value ?? "", true) })),
  };
  return issues.length === 0 ? { ok: true, template } : { ok: false, issues };
};
