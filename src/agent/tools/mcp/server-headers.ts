import type { McpServer } from "../../../protocol/tool.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { type Part, partsOf } from "../configured/request-template.ts";

const sendable = /^[\t\x20-\x7e]*$/;

export type ServerHeaders = {
  headers: Record<string, string>;
  /** The values of the secrets in them: nothing that the server answers may show them. */
  secrets: string[];
};

const misconfigured = (header: string, reason: string): ColloquyError =>
  new ColloquyError("tool_misconfigured", `headers.${header} ${reason}`);

/** A server's headers with its secrets in them. Throws `tool_misconfigured` for what cannot be sent. */
export const serverHeaders = async (
  { headers: templates }: Pick<McpServer, "headers">,
  openSecret: (name: string) => Promise<string | undefined>,
): Promise<ServerHeaders> => {
  const headers: Record<string, string> = {};
  const secrets = new Set<string>();
  for (const [header, template] of Object.entries(templates)) {
    const rendered = async (part: Part): Promise<string> => {
      if (part.kind === "text") return part.text;
      if (part.kind === "slip") throw misconfigured(header, part.message);
      if (part.kind === "input") throw misconfigured(header, "cannot hold {{input.…}}: it is sent with every request");
      const value = (await openSecret(part.name))?.trim();
      if (!value) {
        const remedy = `set it with PUT /v1/workspace/secrets/${part.name}`;
        throw misconfigured(header, `names the secret "${part.name}", and the workspace has no such secret: ${remedy}`);
      }
      secrets.add(value);
      return value;
    };
    const value = (await Promise.all(partsOf(template).map(rendered))).join("");
    if (!sendable.test(value)) throw misconfigured(header, "would hold what a header cannot: use printable ASCII");
    headers[header] = value;
  }
  return { headers, secrets: [...secrets] };
};
