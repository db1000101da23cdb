/**
 * Context windows in tokens, the answer included, by the beginning of a model's name; the longest match counts. They are
 * what vendors publish for their own services. A model that is not listed has no limit here; `context.byModel` adds or
 * corrects one.
 */
const workersAi: Record<string, number> = {
  "@cf/meta/llama-3-8b-instruct": 7968,
  "@cf/meta/llama-3.1-8b-instruct": 7968,
  "@cf/meta/llama-3.1-8b-instruct-awq": 8192,
  "@cf/meta/llama-3.1-8b-instruct-fp8": 32_000,
  "@cf/meta/llama-3.1-8b-instruct-fast": 128_000,
  "@cf/meta/llama-3.1-70b-instruct": 24_000,
  "@cf/meta/llama-3.2-1b-instruct": 60_000,
  "@cf/meta/llama-3.2-3b-instruct": 80_000,
  "@cf/meta/llama-3.2-11b-vision-instruct": 128_000,
  "@cf/meta/llama-3.3-70b-instruct": 24_000,
  "@cf/meta/llama-4-scout-17b-16e-instruct": 131_000,
  "@cf/mistralai/mistral-small-3.1-24b-instruct": 128_000,
  "@cf/qwen/qwen2.5-coder-32b-instruct": 32_768,
  "@cf/qwen/qwq-32b": 24_000,
  "@cf/qwen/qwen3-30b-a3b": 32_768,
  "@cf/openai/gpt-oss": 128_000,
  "@cf/google/gemma-3-12b-it": 80_000,
  "@cf/deepseek-ai/deepseek-r1-distill-qwen-32b": 80_000,
  "@cf/ibm-granite/granite-4.0-h-micro": 131_000,
};

const hosted: Record<string, number> = {
  "gpt-3.5-turbo": 16_385,
  "gpt-4": 8192,
  "gpt-4-32k": 32_768,
  "gpt-4-turbo": 128_000,
  "gpt-4-1106": 128_000,
  "gpt-4-0125": 128_000,
  "gpt-4.1": 1_047_576,
  "gpt-4.5": 128_000,
  "gpt-4o": 128_000,
  "gpt-5": 400_000,
  "gpt-5-chat": 128_000,
  "gpt-oss": 131_072,
  o1: 200_000,
  "o1-mini": 128_000,
  o3: 200_000,
  "o4-mini": 200_000,
  "claude-": 200_000,
  "gemini-1.5-flash": 1_048_576,
  "gemini-1.5-pro": 2_097_152,
  "gemini-2": 1_048_576,
  "gemini-3": 1_048_576,
};

const longestPrefix = (windows: Record<string, number>, name: string): number | null => {
  const [longest] = Object.keys(windows)
    .filter((prefix) => name.startsWith(prefix))
    .toSorted((a, b) => b.length - a.length);
  return longest === undefined ? null : (windows[longest] ?? null);
};

/** The window of a model, or null where it is not known. A vendor's prefix (`openai/gpt-4o`) is ignored. */
export const contextWindowOf = (name: string): number | null =>
  name.startsWith("@") ? longestPrefix(workersAi, name) : longestPrefix(hosted, name.slice(name.lastIndexOf("/") + 1));
