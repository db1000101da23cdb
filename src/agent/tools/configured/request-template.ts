import type { HttpTemplate } from "../../../protocol/tool.ts";
import { ColloquyError, type Issue } from "../../../shared/errors.ts";
import { checkOutgoing } from "../../../shared/outgoing.ts";
import { place } from "../../../shared/secret-places.ts";
import { invalidInput } from "../input-issues.ts";

/**
 * An HTTP request with places for values: `{{input.x.y}}` and `${secret.NAME}`. It is checked when it is written down.
 * A text of its body that is one place and nothing else becomes the value itself.
 *
 * Invariants
 * 1. Scheme, host and port are fixed when the template is written: no input changes where a request goes.
 * 2. An input fills its own segment or value and nothing else: it is percent-encoded, and `.`, `..` and nothing at all
 *    are refused as segments.
 * 3. Secrets do not stand in the path of the URL: it is logged by every server on its way.
 * 4. A text that looks like a place and is none is refused, so that no slip is sent out as it stands.
 */
type Template = Pick<HttpTemplate, "url" | "headers"> & { method?: string; body?: unknown };

export type Part =
  | { kind: "text"; text: string }
  | { kind: "input"; path: string[] }
  | { kind: "secret"; name: string }
  | { kind: "slip"; message: string };

/** A text, divided at its places. */
export const partsOf = (text: string): Part[] => {
  const parts: Part[] = [];
  let from = 0;
  for (const match of text.matchAll(place)) {
    const [found, path, secret] = match;
    if (match.index > from) parts.push({ kind: "text", text: text.slice(from, match.index) });
    from = match.index + found.length;
    if (secret !== undefined) parts.push({ kind: "secret", name: secret });
    else if (path !== undefined) parts.push({ kind: "input", path: path.split(".").slice(1) });
    else {
      const near = JSON.stringify(text.slice(match.index, match.index + 40));
      parts.push({ kind: "slip", message: `must hold only {{input.…}} and \${secret.NAME} as places: ${near}` });
    }
  }
  if (from < text.length) parts.push({ kind: "text", text: text.slice(from) });
  return parts;
};

const slipsIn = (text: string): string[] => partsOf(text).flatMap((part) => (part.kind === "slip" ? part.message : []));
const hasPlaces = (text: string): boolean => text.search(place) >= 0;

const maxHeaders = 32;
/** UTF-8 of a body, before it is filled in. */
export const maxBodyTemplateBytes = 16 * 1024;

/** `.` and `..` in every way of writing them that a URL parser follows. */
const isDots = (segment: string): boolean => /^(?:\.|%2e){1,2}$/i.test(segment);
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Headers of the connection, and those that say who asks: the runtime sets them. */
const ownHeaders =
  /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept-encoding|date|via|proxy-.*|cf-.*|x-forwarded-.*|sec-.*|colloquy-.*)$/i;
/** A header's value is printable ASCII. */
const isHeaderValue = (value: string): boolean => /^[\x20-\x7e]*$/.test(value);

const partsOfUrl = (url: string) => {
  const [, authority, path = "", query] = /^(https?:\/\/[^/?#\\]*)([^?]*)(?:\?(.*))?$/is.exec(url) ?? [];
  const pairs = query === undefined ? [] : query.split("&").map((pair) => pair.split(/=(.*)/s, 2));
  return {
    authority,
    segments: (path === "" ? "/" : path).slice(1).split("/"),
    query: pairs.map(([name = "", value = ""]) => ({ name, value })),
  };
};

/** A parser drops or turns parts of some URLs. They are refused, so that invariants 1 and 2 hold. */
const urlProblems = (url: string, options: { allowLoopback: boolean }): string[] => {
  if (/[\p{Cc}\s]/u.test(url.replace(/\{\{[^}]*\}\}|\$\{[^}]*\}/g, "")))
    return ["must hold no blanks: write them as %20"];
  if (url.includes("\\")) return ["must hold no backslash"];
  if (url.includes("#")) return ["must have no fragment (#…): it is not sent"];
  if (!url.isWellFormed()) return ["must be well-formed Unicode"];
  const { authority, segments, query } = partsOfUrl(url);
  if (authority === undefined) return ["must begin with https://"];
  if (hasPlaces(authority)) return ["must hold no place in its scheme, host or port: they are fixed"];
  const verdict = checkOutgoing(authority, options);
  if (!verdict.ok) return [`cannot be used: ${verdict.reason}`];
  const problems = [...segments, ...query.map(({ value }) => value)].flatMap(slipsIn);
  if (segments.some(isDots)) problems.push('must hold no "." or ".." in its path');
  if (segments.flatMap(partsOf).some(({ kind }) => kind === "secret")) {
    problems.push("must hold secrets in its query only, not in its path");
  }
  if (query.some(({ name }) => hasPlaces(name))) {
    problems.push("must hold no place in a name of its query, only in values");
  }
  return problems;
};

export const headerIssues = (headers: Record<string, string>): Issue[] => {
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  const issues = Object.entries(headers).flatMap(([name, text], index): Issue[] => {
    const texts = partsOf(text).filter((part) => part.kind === "text");
    const messages = [
      ...(headerName.test(name) ? [] : ["must be a header's name"]),
      ...(ownHeaders.test(name) ? ["is not a header that a tool may set"] : []),
      ...(names.indexOf(name.toLowerCase()) < index ? ["is there twice"] : []),
      ...slipsIn(text),
      ...(texts.every((part) => isHeaderValue(part.text)) ? [] : ["must be one line of printable ASCII"]),
    ];
    return messages.map((message) => ({ path: `headers.${name}`, message }));
  });
  if (names.length <= maxHeaders) return issues;
  return [{ path: "headers", message: `must have at most ${maxHeaders} (maxHeaders)` }, ...issues];
};

const bodyIssues = (body: unknown, path: string): Issue[] => {
  if (typeof body === "string") return slipsIn(body).map((message) => ({ path, message }));
  if (typeof body !== "object" || body === null) return [];
  return Object.entries(body).flatMap(([name, value]) => [
    ...(hasPlaces(name) ? [{ path, message: "must hold no place in a name, only in values" }] : []),
    ...bodyIssues(value, `${path}.${name}`),
  ]);
};

/** Paths of the issues count from the template. `allowLoopback`: in development only. */
export const templateIssues = (
  { url, method, headers, body }: Template,
  options: { allowLoopback: boolean },
): Issue[] => {
  const issues = [...urlProblems(url, options).map((message) => ({ path: "url", message })), ...headerIssues(headers)];
  if (body !== undefined && method === "GET") issues.push({ path: "body", message: "must be left out of a GET" });
  if (new TextEncoder().encode(JSON.stringify(body) ?? "").length > maxBodyTemplateBytes) {
    issues.push({ path: "body", message: `must be at most ${maxBodyTemplateBytes} bytes (maxBodyTemplateBytes)` });
  }
  return [...issues, ...bodyIssues(body, "body")];
};

/** The workspace's secrets of these names, without those that it has not. */
export const unsealSecrets = async (names: string[], unsealSecret: (name: string) => Promise<string | undefined>) => {
  const opened = names.map(async (name) => [name, (await unsealSecret(name))?.trim() ?? ""] as const);
  return new Map((await Promise.all(opened)).filter(([, value]) => value !== ""));
};

type Values = { input: unknown; secrets: ReadonlyMap<string, string> };

/** The value at a path of the input, own properties only; undefined where there is none. */
const valueAt = (input: unknown, path: string[]): unknown =>
  path.reduce<unknown>((held, name) => {
    const own = typeof held === "object" && held !== null ? Object.entries(held) : [];
    return own.find(([each]) => each === name)?.[1];
  }, input);

const invalid = (path: string[], message: string): ColloquyError =>
  invalidInput([{ path: ["input", ...path].join("."), message }]);

const misconfigured = (message: string): ColloquyError => new ColloquyError("tool_misconfigured", message);

/** The path of the input that a text is the place of, and nothing else. */
const onlyInput = (text: string): string[] | undefined => {
  const [only, ...others] = partsOf(text);
  return only?.kind === "input" && others.length === 0 ? only.path : undefined;
};

/** Writes what fills a place. */
type Write = (value: string, place: Part) => string;

const encoded: Write = (text) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

const inHeader =
  (name: string): Write =>
  (value, place) => {
    if (isHeaderValue(value)) return value;
    const where = `cannot stand in the header ${name}`;
    throw place.kind === "secret"
      ? misconfigured(`the secret ${JSON.stringify(place.name)} ${where}: it is not one line of printable ASCII`)
      : invalid(place.kind === "input" ? place.path : [], `${where}: it must be one line of printable ASCII`);
  };

/**
 * Fills in a template that has no issues. The request may hold secrets: it is never stored, logged or shown. Throws
 * `tool_input_invalid` for an input that does not fit its place, and `tool_misconfigured` for a secret that is not there;
 * neither repeats a secret. A value that is absent leaves out the parameter, header or property that it would have been.
 */
export const renderRequest = ({ url: template, headers, body }: Template, { input, secrets }: Values) => {
  /** An input as text; `plain`: objects and lists are refused, where they could not be read back. */
  const textOf = (path: string[], plain: boolean): string => {
    const value = valueAt(input, path) ?? "";
    if (typeof value === "object" && plain) throw invalid(path, "must be a text, a number or true or false");
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (!text.isWellFormed()) throw invalid(path, "must be well-formed Unicode");
    return text;
  };

  const filled = (text: string, plain: boolean, write: Write): string =>
    partsOf(text)
      .map((part) => {
        if (part.kind === "text") return part.text;
        if (part.kind === "input") return write(textOf(part.path, plain), part);
        const secret = part.kind === "secret" ? secrets.get(part.name) : "";
        if (secret !== undefined) return write(secret, part);
        const name = part.kind === "secret" && JSON.stringify(part.name);
        throw misconfigured(`the workspace has no secret ${name}: the workspace's owner has to write it`);
      })
      .join("");

  const isThere = (text: string): boolean => {
    const path = onlyInput(text);
    return path === undefined || (valueAt(input, path) ?? null) !== null;
  };

  const segment = (text: string): string => {
    const value = filled(text, true, encoded);
    const first = partsOf(text).find((part) => part.kind === "input");
    if (first && value === "") throw invalid(first.path, "must not be empty: it stands in the path of a URL");
    if (first && isDots(value)) throw invalid(first.path, 'must not be "." or "..": it stands in the path of a URL');
    return value;
  };

  const url = (): string => {
    const { authority = "", segments, query } = partsOfUrl(template);
    const { origin } = new URL(authority);
    const pairs = query
      .filter(({ value }) => isThere(value))
      .map(({ name, value }) => (value === "" ? name : `${name}=${filled(value, false, encoded)}`));
    const search = pairs.length === 0 ? "" : `?${pairs.join("&")}`;
    const made = new URL(`${origin}/${segments.map(segment).join("/")}${search}`);
    // The invariants, held to once more: nothing is asked where this does not hold.
    if (made.origin !== origin || made.pathname.split("/").length !== segments.length + 1 || made.hash !== "") {
      throw misconfigured("the tool's URL cannot be filled in with this input");
    }
    return made.href;
  };

  /** Undefined where the input has no such value: JSON leaves out a property that is undefined. */
  const json = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(json);
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, json(held)]));
    }
    if (typeof value !== "string") return value;
    const path = onlyInput(value);
    return path ? valueAt(input, path) : filled(value, false, (text) => text);
  };

  return {
    headers: Object.entries(headers)
      .filter(([, text]) => isThere(text))
      .map(([name, text]): [string, string] => [name, filled(text, true, inHeader(name)).trim()]),
    body: JSON.stringify(json(body)),
    url: url(),
  };
};
