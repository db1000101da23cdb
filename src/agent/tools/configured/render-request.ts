import { ColloquyError } from "../../../shared/errors.ts";
import { type Part, valueAt } from "./placeholders.ts";
import { type BodyTemplate, isHeaderValue, type RequestTemplate } from "./template.ts";
import { isDots } from "./url-template.ts";

/** A request that is ready to be sent. It may hold secrets: it is never stored, logged or shown. */
export type RenderedRequest = {
  method: string;
  url: string;
  headers: [string, string][];
  body: string | undefined;
};

export type Values = { input: unknown; secrets: ReadonlyMap<string, string> };

const nameOf = (path: string[]): string => ["input", ...path].join(".");

const invalid = (path: string[], message: string): ColloquyError =>
  new ColloquyError("tool_input_invalid", `${nameOf(path)}: ${message}`, {
    issues: [{ path: path.join("."), message }],
  });

const secretOf = (name: string, { secrets }: Values): string => {
  const value = secrets.get(name);
  if (value !== undefined) return value;
  throw new ColloquyError(
    "tool_misconfigured",
    `the workspace has no secret ${JSON.stringify(name)}: the workspace's owner has to write it`,
  );
};

/** An input as text; `plain`: objects and lists are refused, where they could not be read back. */
const textOf = (path: string[], values: Values, plain: boolean): string => {
  const value = valueAt(values.input, path);
  if (value === undefined || value === null) return "";
  if (typeof value === "object" && plain) throw invalid(path, "must be a text, a number or true or false");
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (!text.isWellFormed()) throw invalid(path, "must be well-formed Unicode");
  return text;
};

const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

const isAbsent = (parts: Part[], values: Values): boolean => {
  const [only, ...others] = parts;
  return only?.kind === "input" && others.length === 0 && (valueAt(values.input, only.path) ?? null) === null;
};

const filled = (parts: Part[], values: Values, plain: boolean, write: (text: string) => string): string =>
  parts
    .map((part) => {
      if (part.kind === "text") return part.text;
      return write(part.kind === "secret" ? secretOf(part.name, values) : textOf(part.path, values, plain));
    })
    .join("");

const segmentOf = (parts: Part[], values: Values): string => {
  const segment = filled(parts, values, true, encoded);
  const first = parts.find((part) => part.kind === "input");
  if (first?.kind !== "input") return segment;
  if (segment === "") throw invalid(first.path, "must not be empty: it stands in the path of a URL");
  if (isDots(segment)) throw invalid(first.path, 'must not be "." or "..": it stands in the path of a URL');
  return segment;
};

const urlOf = ({ origin, segments, query }: RequestTemplate["url"], values: Values): string => {
  const path = segments.map((segment) => segmentOf(segment, values)).join("/");
  const pairs = query
    .filter(({ value }) => !isAbsent(value, values))
    .map(({ name, value }) => (value.length === 0 ? name : `${name}=${filled(value, values, false, encoded)}`));
  const url = new URL(`${origin}/${path}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`);
  // The template's own invariants, held to once more: nothing below may be reached where this does not hold.
  if (url.origin !== origin || url.pathname.split("/").length !== segments.length + 1 || url.hash !== "") {
    throw new ColloquyError("tool_misconfigured", "the tool's URL cannot be filled in with this input");
  }
  return url.href;
};

const headersOf = (headers: RequestTemplate["headers"], values: Values): [string, string][] =>
  headers
    .filter(({ value }) => !isAbsent(value, values))
    .map(({ name, value }) => [
      name,
      filled(value, values, true, (text) => {
        if (isHeaderValue(text)) return text;
        const place = value.find((part) => part.kind === "secret" && values.secrets.get(part.name) === text);
        if (place?.kind === "secret") {
          throw new ColloquyError(
            "tool_misconfigured",
            `the secret ${JSON.stringify(place.name)} cannot stand in the header ${name}: it is not one line of printable ASCII`,
          );
        }
        throw new ColloquyError(
          "tool_input_invalid",
          `the input cannot stand in the header ${name}: it must be one line of printable ASCII`,
        );
      }).trim(),
    ]);

const absent = Symbol("absent");

const bodyOf = (body: BodyTemplate, values: Values): unknown => {
  switch (body.kind) {
    case "value":
      return body.value;
    case "text": {
      const [only, ...others] = body.parts;
      if (only?.kind !== "input" || others.length > 0) return filled(body.parts, values, false, (text) => text);
      const value = valueAt(values.input, only.path);
      return value === undefined ? absent : value;
    }
    case "list":
      return body.items.map((item) => bodyOf(item, values)).map((item) => (item === absent ? null : item));
    case "object": {
      const entries = body.entries.map(([name, value]): [string, unknown] => [name, bodyOf(value, values)]);
      return Object.fromEntries(entries.filter(([, value]) => value !== absent));
    }
  }
};

/**
 * Fills a template in. Throws `tool_input_invalid` for an input that does not fit its place, and `tool_misconfigured`
 * for a secret that is not there; neither repeats a secret. A value that is absent leaves out the parameter, header
 * or property that it would have been.
 */
export const renderRequest = (template: RequestTemplate, values: Values): RenderedRequest => {
  const headers = headersOf(template.headers, values);
  const value = template.body === undefined ? absent : bodyOf(template.body, values);
  return {
    method: template.method,
    url: urlOf(template.url, values),
    headers,
    body: value === absent ? undefined : JSON.stringify(value),
  };
};
