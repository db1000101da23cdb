import type { ToolConfig } from "../../../protocol/tool.ts";
import { partsOf } from "./request-template.ts";

/**
 * The parts of a request that the tool's config adds to the input, for the people who approve it. Places stand as they
 * are written, so that secrets show by name. A plain text that seems to be a credential shows as its length alone:
 * every member of the space reads the card.
 */
const secretive = /auth(?!or(?!iz))|cookie|token|secret(?!ar)|passw|credential|signature|api-?_?key|^key$|^sig$/i;
/** In a part of a path, what nobody knows by heart, as in addresses of webhooks. */
const issued = /(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{12,}|[\da-f]{8}(?:-[\da-f]{4}){3}/i;
/** What stands before a secret, as in `Bearer ${secret.KEY}`. */
const scheme = /^[A-Za-z]{1,10} $/;

const unshown = (text: string): string => `[${text.length} characters, not shown]`;

const asWritten = (text: string, hides: (literal: string) => boolean): string =>
  partsOf(text)
    .map((part) => {
      if (part.kind === "input") return `{{${["input", ...part.path].join(".")}}}`;
      if (part.kind === "secret") return `\${secret.${part.name}}`;
      return part.kind === "text" && !hides(part.text) ? part.text : unshown(part.kind === "text" ? part.text : "");
    })
    .join("");

const shownText = (text: string, isSecretive: boolean): string =>
  asWritten(text, (literal) => isSecretive && !scheme.test(literal));

const shownUrl = (url: string): string => {
  const [, origin = "", path = "", query = ""] = /^(https?:\/\/[^/?#]*)([^?]*)(.*)$/is.exec(url) ?? [];
  const segments = path.split("/").map((segment) => asWritten(segment, (literal) => issued.test(literal)));
  const shownQuery = query.replace(
    /([?&])([^=&]*)=([^&]*)/g,
    (_, sign: string, name: string, value: string) => `${sign}${name}=${shownText(value, secretive.test(name))}`,
  );
  return origin + segments.join("/") + shownQuery;
};

const shownBody = (value: unknown, isSecretive = false): unknown => {
  if (typeof value === "string") return shownText(value, isSecretive);
  if (Array.isArray(value)) return value.map((each) => shownBody(each, isSecretive));
  if (typeof value !== "object" || value === null) return value;
  const shown = Object.entries(value).map(([name, held]) => [
    name,
    shownBody(held, isSecretive || secretive.test(name)),
  ]);
  return Object.fromEntries(shown);
};

/** Undefined where nothing is sent anywhere by the config. */
export const shownRequest = (tool: ToolConfig): Record<string, unknown> | undefined => {
  if (tool.executionType === "internal" || tool.executionType === "space" || !tool.execution) return undefined;
  const { url, headers } = tool.execution;
  const { body } = "body" in tool.execution ? tool.execution : {};
  return {
    url: shownUrl(url),
    ...(Object.keys(headers).length > 0 && { headers: shownBody(headers) }),
    ...(body !== undefined && { body: shownBody(body) }),
  };
};
