import type { HttpTemplate } from "../../../protocol/tool.ts";
import type { Issue } from "../../../shared/errors.ts";
import { hasPlaces, type Part, parsePlaceholders } from "./placeholders.ts";
import { parseUrlTemplate, type UrlTemplate } from "./url-template.ts";

/** A body: JSON whose texts have places. A text that is one place and nothing else becomes the value itself. */
export type BodyTemplate =
  | { kind: "value"; value: null | boolean | number }
  | { kind: "text"; parts: Part[] }
  | { kind: "list"; items: BodyTemplate[] }
  | { kind: "object"; entries: [string, BodyTemplate][] };

/** An HTTP request, parsed when it is written down; `renderRequest` fills it in. */
export type RequestTemplate = {
  method: HttpTemplate["method"];
  url: UrlTemplate;
  headers: { name: string; value: Part[] }[];
  body: BodyTemplate | undefined;
};

export type ParsedTemplate = { ok: true; template: RequestTemplate } | { ok: false; issues: Issue[] };

const maxHeaders = 32;
/** UTF-8 of a body, before it is filled in. */
export const maxBodyTemplateBytes = 16 * 1024;

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** What belongs to the connection, or says who asks: the runtime's to set. */
const ownHeaders =
  /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept-encoding|date|via|proxy-.*|cf-.*|x-forwarded-.*|sec-.*)$/i;
/** What a header's value may hold: printable ASCII. */
export const isHeaderValue = (value: string): boolean => /^[\x20-\x7e]*$/.test(value);

const under = (path: string, more: string): string => (more === "" ? path : `${path}.${more}`);

const parseHeaders = (headers: Record<string, string>, issues: Issue[]): RequestTemplate["headers"] => {
  const entries = Object.entries(headers);
  if (entries.length > maxHeaders) {
    issues.push({ path: "headers", message: `must have at most ${maxHeaders} (maxHeaders)` });
  }
  const seen = new Set<string>();
  return entries.flatMap(([name, text]) => {
    const report = (message: string): void => void issues.push({ path: `headers.${name}`, message });
    if (!headerName.test(name)) report("must be a header's name");
    if (ownHeaders.test(name)) report("is not a header that a tool may set");
    if (seen.has(name.toLowerCase())) report("is there twice");
    seen.add(name.toLowerCase());
    const parsed = parsePlaceholders(text);
    if (!parsed.ok) {
      report(parsed.message);
      return [];
    }
    if (parsed.parts.some((part) => part.kind === "text" && !isHeaderValue(part.text))) {
      report("must be one line of printable ASCII");
    }
    return [{ name, value: parsed.parts }];
  });
};

const parseBody = (body: unknown, path: string, issues: Issue[]): BodyTemplate => {
  if (typeof body === "string") {
    const parsed = parsePlaceholders(body);
    if (parsed.ok) return { kind: "text", parts: parsed.parts };
    issues.push({ path, message: parsed.message });
    return { kind: "value", value: null };
  }
  if (typeof body === "boolean" || typeof body === "number") return { kind: "value", value: body };
  if (typeof body !== "object" || body === null) return { kind: "value", value: null };
  if (Array.isArray(body)) {
    return { kind: "list", items: body.map((item, index) => parseBody(item, under(path, `${index}`), issues)) };
  }
  return {
    kind: "object",
    entries: Object.entries(body).map(([name, value]) => {
      if (hasPlaces(name)) issues.push({ path, message: "must hold no place in a name, only in values" });
      return [name, parseBody(value, under(path, name), issues)];
    }),
  };
};

/** Paths of the issues count from the template. `allowLoopback`: in development only. */
export const parseTemplate = (
  { url, method, headers, body }: HttpTemplate,
  options: { allowLoopback: boolean },
): ParsedTemplate => {
  const issues: Issue[] = [];
  const parsedUrl = parseUrlTemplate(url, options);
  if (!parsedUrl.ok) issues.push(...parsedUrl.issues.map((issue) => ({ ...issue, path: "url" })));
  const parsedHeaders = parseHeaders(headers, issues);
  if (body !== undefined && method === "GET") issues.push({ path: "body", message: "must be left out of a GET" });
  if (new TextEncoder().encode(JSON.stringify(body) ?? "").length > maxBodyTemplateBytes) {
    issues.push({ path: "body", message: `must be at most ${maxBodyTemplateBytes} bytes (maxBodyTemplateBytes)` });
  }
  const parsedBody = body === undefined ? undefined : parseBody(body, "body", issues);
  if (!parsedUrl.ok || issues.length > 0) return { ok: false, issues };
  return { ok: true, template: { method, url: parsedUrl.template, headers: parsedHeaders, body: parsedBody } };
};

const partsOfBody = (body: BodyTemplate): Part[] => {
  switch (body.kind) {
    case "value":
      return [];
    case "text":
      return body.parts;
    case "list":
      return body.items.flatMap(partsOfBody);
    case "object":
      return body.entries.flatMap(([, value]) => partsOfBody(value));
  }
};

const secretsOf = (parts: Part[]): string[] => parts.flatMap((part) => (part.kind === "secret" ? [part.name] : []));

/** The secrets that a request needs, each once. `inBody`: those that stand in its body. */
export const secretNames = ({ url, headers, body }: RequestTemplate): { all: string[]; inBody: string[] } => {
  const inBody = body === undefined ? [] : secretsOf(partsOfBody(body));
  const elsewhere = [...url.query, ...headers].flatMap(({ value }) => secretsOf(value));
  return { all: [...new Set([...elsewhere, ...inBody])], inBody: [...new Set(inBody)] };
};
