import { estimateTokenCount } from "tokenx";
import type { ModelConfig } from "../protocol/model-config.ts";
import { ColloquyError } from "../shared/errors.ts";
import { billedTokens } from "./billed-tokens.ts";
import { failureOfFinish, isRefusal } from "./failure.ts";
import type { ModelDeps } from "./model-spec.ts";
import { resolveModel } from "./models.ts";
import { streamModel } from "./stream-model.ts";

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
  reserve: (tokens: number) => ((billed: number) => void) | Promise<(billed: number) => void>;
};

/**
 * One model call: the question's text in, the answer's text out. Throws what the provider, the network or the signal
 * threw. A call that was cut off stays billed as reserved. One that the provider refused is not billed.
 */
export const askModel = async (question: ModelQuestion): Promise<string> => {
  const { config, prompt, signal, maxCharacters } = question;
  const { model, adapt } = await resolveModel(config, question);
  signal.throwIfAborted();
  const maxOutputTokens = config.maxOutputTokens ?? question.maxOutputTokens;
  const inputTokens = estimateTokenCount(prompt.system) + estimateTokenCount(prompt.user);
  const settle = await question.reserve(inputTokens + maxOutputTokens);
  let text = "";
  try {
    const messages = adapt([{ role: "user", content: prompt.user }]);
    const asked = { model, instructions: prompt.system, messages, maxOutputTokens, temperature: config.temperature };
    for await (const part of streamModel({ ...asked, signal })) {
      if (part.type === "text-delta") text += part.text;
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
  } catch (error) {
    if (isRefusal(error)) settle(0);
    throw error;
  }
  return text;
};
