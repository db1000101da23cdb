import { streamText } from "ai";
import { estimateTokenCount } from "tokenx";
import type { ModelConfig } from "../protocol/model-config.ts";
import { ColloquyError } from "../shared/errors.ts";
import { billedTokens } from "./billed-tokens.ts";
import { failureOfFinish, isRefusal } from "./failure.ts";
import type { ModelDeps } from "./model-spec.ts";
import { resolveModel } from "./models.ts";

/** A question to a model that needs no tools and no history: a router's, a summariser's. */
export type ModelQuestion = ModelDeps & {
  config: ModelConfig;
  prompt: { system: string; user: string };
  /** The answer's limit where the config sets none. */
  maxOutputTokens: number;
  /** A longer answer fails as nonsense. `name` is the name of this bound. */
  maxCharacters: { name: string; characters: number };
  signal: AbortSignal;
  /** Reserves the call's tokens in the budget, or throws. Returns a function that replaces them by the billed ones. */
  reserve: (tokens: number) => (billed: number) => void;
};

/**
 * One model call: the question's text in, the answer's text out. Throws what the provider, the network or the signal
 * threw; a call that was cut off stays billed as it was reserved, one that the provider refused is not billed.
 */
export const askModel = async (question: ModelQuestion): Promise<string> => {
  const { config, prompt, signal, maxCharacters } = question;
  const { model, adapt } = await resolveModel(config, question);
  signal.throwIfAborted();
  const maxOutputTokens = config.maxOutputTokens ?? question.maxOutputTokens;
  const inputTokens = estimateTokenCount(prompt.system) + estimateTokenCount(prompt.user);
  const settle = question.reserve(inputTokens + maxOutputTokens);
  const { temperature } = config;
  /** The SDK keeps a copy of the stream, which goes on when ours is left: what is left has to be aborted. */
  const left = new AbortController();
  const result = streamText({
    model,
    instructions: prompt.system,
    messages: adapt([{ role: "user", content: prompt.user }]),
    maxRetries: 0,
    maxOutputTokens,
    ...(temperature === undefined ? {} : { temperature }),
    abortSignal: AbortSignal.any([signal, left.signal]),
    // Errors come as parts of the stream; the default would log them with what they hold.
    onError: () => undefined,
  });
  let text = "";
  try {
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") text += part.text;
      else if (part.type === "error") {
        if (isRefusal(part.error)) settle(0);
        throw part.error;
      } else if (part.type === "abort")
        throw signal.reason ?? new ColloquyError("model_stalled", "The model went silent");
      else if (part.type === "finish-step") {
        settle(
          (billedTokens(part.usage.inputTokens) || inputTokens) +
            (billedTokens(part.usage.outputTokens) || estimateTokenCount(text)),
        );
        const refused = text === "" ? failureOfFinish(part.finishReason) : undefined;
        if (refused) throw new ColloquyError(refused.code, refused.message);
      }
      if (text.length > maxCharacters.characters) {
        const bound = `${maxCharacters.characters} characters (${maxCharacters.name})`;
        throw new ColloquyError("model_nonsense", `The model said more than ${bound}`);
      }
    }
  } finally {
    left.abort();
  }
  return text;
};
