import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { SecretUse } from "../protocol/secret.ts";
import { ColloquyError } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";
import { misconfigured } from "./identify-model.ts";
import type { ModelDeps, OpenAiCompatibleSpec } from "./model-spec.ts";

/** An address of the config that may be asked. Throws `model_misconfigured`. */
export const checkedBaseUrl = (baseUrl: string, deps: Pick<ModelDeps, "env">): string => {
  const checked = checkOutgoing(baseUrl, { allowLoopback: deps.env.ENVIRONMENT === "development" });
  if (checked.ok) return baseUrl;
  throw misconfigured(`The model's baseUrl cannot be used: ${checked.reason}.`);
};

/** The key in a secret of the workspace. Throws `model_misconfigured`, naming what to set. */
export const secretKey = async (
  name: string,
  use: SecretUse,
  deps: Pick<ModelDeps, "unsealSecret">,
): Promise<string> => {
  const value = (await deps.unsealSecret(name, use))?.trim();
  if (value && !/^[\x21-\x7e]+$/.test(value)) {
    throw misconfigured(
      `The secret "${name}" is no key that can be sent: it holds blanks or characters beyond ASCII. Write it again with PUT /v1/workspace/secrets/${name}.`,
    );
  }
  if (value) return value;
  throw misconfigured(
    `The model's apiKeySecret names "${name}", and the workspace has no such secret: set it with PUT /v1/workspace/secrets/${name}.`,
  );
};

/** The binding of Workers AI. `what` is the model that needs it. Throws `model_misconfigured`. */
export const workersAiBinding = (what: string, { env }: Pick<ModelDeps, "env">): Ai => {
  if (env.AI) return env.AI;
  throw misconfigured(
    `The ${what} needs the Workers AI binding, and this deployment has none: add [ai] binding = "AI" to wrangler.toml and run it with a Cloudflare account, or choose another provider.`,
  );
};

/** The most of a refusal's body that is read, in characters: enough for its message. */
const maxRefusalCharacters = 16_384;

/** Refuses a redirect: the next address was never checked, and would get the key. */
const refuseRedirect = (response: Response): Response => {
  // Browsers hide a redirect behind status 0; servers' runtimes show it.
  if (response.status !== 0 && (response.status < 300 || response.status >= 400)) return response;
  throw misconfigured(
    "The model's baseUrl redirects to another address, which is not followed: set baseUrl to the final address.",
  );
};

/** The beginning of a body. The rest is not read: who sends it may never end. */
const beginningOf = async ({ body }: Response): Promise<string> => {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of body ?? []) {
    text += decoder.decode(part, { stream: true });
    if (text.length >= maxRefusalCharacters) break;
  }
  return text.slice(0, maxRefusalCharacters);
};

/** The most that is read of an answer, in bytes: 100 vectors of 4,096 numbers fit. */
const maxWholeBytes = 16 * 1024 * 1024;
/** The same of one event of a stream: a step's whole text fits, each character of it an escape. */
const maxEventBytes = 2 * 1024 * 1024;

/** An answer that fails where it is too long: who sends it may never end, and it is kept until then. */
const bounded = (response: Response, most: number): Response => {
  if (!response.body) return response;
  const reader = response.body.getReader();
  let [bytes, isEmptyLine] = [0, true];
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const { done, value } = await reader.read();
    if (done) return controller.close();
    for (const byte of value) {
      bytes += 1;
      // An event ends with an empty line.
      if (byte === 10 && isEmptyLine && most === maxEventBytes) bytes = 0;
      if (byte !== 13) isEmptyLine = byte === 10;
    }
    if (bytes <= most) return controller.enqueue(value);
    reader.cancel().catch(() => undefined);
    throw new ColloquyError("model_nonsense", `The model's provider sent more than ${most} bytes at once.`);
  };
  const source = { pull, cancel: (reason: unknown) => reader.cancel(reason) };
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), response);
};

/** Removes the key from a refusal: some providers repeat it. */
const withoutKey = async (response: Response, apiKey: string | undefined): Promise<Response> => {
  const text = await beginningOf(response);
  return new Response(apiKey ? text.replaceAll(apiKey, "[redacted]") : text, response);
};

/** Refuses a web page: the address is wrong, and a retry would not help. */
const refusePage = (response: Response): Response => {
  if (!response.ok || !/^text\/html\b/i.test(response.headers.get("content-type") ?? "")) return response;
  const detail = "The model's baseUrl answers with a web page: set baseUrl to an address that speaks OpenAI's API.";
  throw new ColloquyError("model_nonsense", detail);
};

/** A server that speaks OpenAI's API. Its `fetch` follows no redirect and returns no key. */
export const openAiServer = (
  { baseUrl, apiKey }: Pick<OpenAiCompatibleSpec, "baseUrl" | "apiKey">,
  { fetch: send = globalThis.fetch }: Pick<ModelDeps, "fetch">,
) =>
  createOpenAICompatible({
    name: "openai-compatible",
    baseURL: baseUrl,
    includeUsage: true,
    fetch: async (input, init) => {
      const response = refusePage(refuseRedirect(await send(input, { ...init, redirect: "manual" })));
      const most = String(input).endsWith("/embeddings") ? maxWholeBytes : maxEventBytes;
      return response.ok ? bounded(response, most) : withoutKey(response, apiKey);
    },
    ...(apiKey === undefined ? {} : { apiKey }),
  });
