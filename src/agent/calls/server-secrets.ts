import type { ToolConfig } from "../../protocol/tool.ts";
import { createRedactor, type Redactor } from "../tools/configured/redact.ts";
import { parseTemplate, type RequestTemplate, secretNames } from "../tools/configured/template.ts";
import type { CallRow } from "./call-row.ts";
import type { CallServices } from "./call-services.ts";

type Execution = NonNullable<Extract<ToolConfig, { executionType: "external" }>["execution"]>;

/** The request that sends a call to its server; undefined where it cannot be made. */
export const serverTemplate = (
  services: Pick<CallServices, "env">,
  execution: Execution,
): RequestTemplate | undefined => {
  const { secret: _, ...http } = execution;
  const parsed = parseTemplate(
    { ...http, method: "POST" },
    { allowLoopback: services.env.ENVIRONMENT === "development" },
  );
  return parsed.ok ? parsed.template : undefined;
};

/** The secrets that such a request holds or is signed with, by name; empty where the workspace has none. */
export const serverSecrets = async (
  services: CallServices,
  execution: Execution,
  template: RequestTemplate,
): Promise<Map<string, string>> => {
  const names = [execution.secret, ...secretNames(template).all];
  const opened = names.map(async (name) => [name, (await services.identity.openSecret(name))?.trim() ?? ""] as const);
  return new Map(await Promise.all(opened));
};

/** Takes out of a server's answer what it was sent (S3). */
export const serverRedactor = async (services: CallServices, { tool }: Pick<CallRow, "tool">): Promise<Redactor> => {
  const execution = tool.executionType === "external" ? tool.execution : undefined;
  const template = execution && serverTemplate(services, execution);
  return createRedactor(execution && template ? (await serverSecrets(services, execution, template)).values() : []);
};
