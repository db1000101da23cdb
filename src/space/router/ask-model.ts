import { APICallError, streamText } from "ai";
import { estimateTokenCount } from "tokenx";
import { open } from "../../auth/sealing.ts";
import { failureOfFinish } from "../../models/failure.ts";
import { resolveModel } from "../../models/models.ts";
import type { RouterConfig } from "../../protocol/space.ts";
import type { Env } from "../../shared/env.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { maxRouterAnswerCharacters, routerOutputTokens } from "../bounds.ts";

export type ModelQuestion = {
  env: Env;
  workspaceId: string;
  config: RouterConfig;
  prompt: { system: string; user: string };
  signal: AbortSignal;
  /** Takes what the call may cost out of the budget, or throws; answers what puts the billed tokens in its place. */
  reserve: (tokens: number) => (billed: number) => void;
};

const openSecret = async ({ env, workspaceId, signal }: ModelQuestion, name: string): Promise<string | undefined> => {
  const sealed = unwrap(await env.WORKSPACE.getByName(workspaceId).sealedSecrets())[name];
  signal.throwIfAborted();
  return sealed === undefined ? undefined : open(env.SIGNING_SECRET, workspaceId, name, sealed);
};

/** The provider turned the request down before it generated anything: nothing is billed. */
const isRefusal = (error: unknown): boolean => APICallError.isInstance(error) && (error.statusCode ?? 0) >= 400;

/** What was billed; our estimate where the provider told none, or nothing that can be. */
const billedOf = (told: number | undefined, estimated: number): number =>
  told !== undefined && Number.isFinite(told) && told > 0 ? Math.ceil(told) : estimated;

/**
 * One model call: the question's text in, the answer's text out. Throws what the provider, the network or the signal
 * threw; a call that was cut off stays billed as it was reserved, one that the provider refused is not billed.
 */
export const askModel = async (question: ModelQuestion): Promise<string> => {
  const { env, config, prompt, signal } = question;
  const { model, adapt } = await resolveModel(config.model, { env, openSecret: (name) => openSecret(question, name) });
  signal.throwIfAborted();
  const maxOutputTokens = config.model.maxOutputTokens ?? routerOutputTokens;
  const inputTokens = estimateTokenCount(prompt.system) + estimateTokenCount(prompt.user);
  const settle = question.reserve(inputTokens + maxOutputTokens);
  const { temperature } = config.model;
  const result = streamText({
    model,
    instructions: prompt.system,
    messages: adapt([{ role: "user", content: prompt.user }]),
    maxRetries: 0,
    maxOutputTokens,
    ...(temperature === undefined ? {} : { temperature }),
    abortSignal: signal,
    // Errors come as parts of the stream; the default would log them with what they hold.
    onError: () => undefined,
  });
  let text = "";
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") text += part.text;
    else if (part.type === "error") {
      if (isRefusal(part.error)) settle(0);
      throw part.error;
    } else if (part.type === "abort")
      throw signal.reason ?? new ColloquyError("model_stalled", "The model went silent");
    else if (part.type === "finish-step") {
      settle(
        billedOf(part.usage.inputTokens, inputTokens) + billedOf(part.usage.outputTokens, estimateTokenCount(text)),
      );
      const refused = text === "" ? failureOfFinish(part.finishReason) : undefined;
      if (refused) throw new ColloquyError(refused.code, refused.message);
    }
    if (text.length > maxRouterAnswerCharacters) {
      throw new ColloquyError(
        "model_nonsense",
        `The router's model said more than ${maxRouterAnswerCharacters} characters (maxRouterAnswerCharacters)`,
      );
    }
  }
  return text;
};
