import * as z from "zod";
import { routes } from "../../src/routes/app.ts";
import { type ApiOperation, documentApi } from "../../src/routes/openapi.ts";

/** Every operation of the API, as its own document tells it: what tables of tests go over. */
export type Operation = ApiOperation & { method: string; path: string; name: string };

export const apiDocument = documentApi(routes);

export const operations: Operation[] = Object.entries(apiDocument.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    ...operation,
    method: method.toUpperCase(),
    path,
    name: `${method.toUpperCase()} ${path}`,
  })),
);

export const guarded = operations.filter((operation) => operation.security.length > 0);

const schemes = (operation: Operation): string[] => operation.security.flatMap((scheme) => Object.keys(scheme));
export const isForOperator = (operation: Operation): boolean => schemes(operation).includes("operatorKey");
export const takesEntities = (operation: Operation): boolean => schemes(operation).includes("entityToken");

/** What a guest's program asks, with the body of each. A speech is a stream, whose key stands in the query. */
const guestPath = "POST /v1/agents/{agentId}/";
export const guestBodies: Record<string, object | undefined> = {
  [`${guestPath}claims`]: {},
  [`${guestPath}runs/{runId}/calls`]: { name: "skip", key: "k" },
  [`${guestPath}runs/{runId}/speech`]: undefined,
  [`${guestPath}runs/{runId}/complete`]: {},
  [`${guestPath}runs/{runId}/skip`]: {},
  [`${guestPath}runs/{runId}/fail`]: { error: "no" },
  [`${guestPath}runs/{runId}/renew`]: {},
};
const guestSocket = "GET /v1/agents/{agentId}/runtime";
const guestTools = "GET /v1/agents/{agentId}/toolset";
/** Of an agent that thinks here. */
export const guestRows = <Row extends object>(
  row: (of: { body?: () => unknown; query?: string }) => Row,
): Record<string, Row> => ({
  ...Object.fromEntries(
    Object.entries(guestBodies).map(([name, body]) => [name, row(body ? { body: () => body } : { query: "key=k" })]),
  ),
  [guestSocket]: row({}),
  [guestTools]: row({}),
});

/** The path with its parameters filled in. */
export const fill = (path: string, values: Record<string, string>): string =>
  path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => values[name] ?? "a-name");

export const Problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.string(),
  detail: z.string().min(1),
  issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

/** The problem document that an answer is; fails where it is none. */
export const problemIn = async (response: Response): Promise<z.infer<typeof Problem>> => {
  const text = await response.text();
  if (response.headers.get("content-type") !== "application/problem+json") {
    throw new Error(`${response.status} is no problem document: ${text}`);
  }
  const problem = Problem.parse(JSON.parse(text));
  if (problem.status !== response.status)
    throw new Error(`the document says ${problem.status}, not ${response.status}`);
  return problem;
};
