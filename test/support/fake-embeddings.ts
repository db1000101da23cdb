import * as z from "zod";

/** What a fake server answers to OpenAI's `/v1/embeddings`: how often each letter stands in a text, and 7 tokens a text. */
const Request = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(z.string())]).transform((input) => [input].flat()),
  dimensions: z.int().optional(),
});

export const tokensPerText = 7;
export const busySeconds = 90;

const letters = (text: string, dimensions: number): number[] =>
  Array.from({ length: dimensions }, (_, index) => {
    const letter = String.fromCharCode(97 + (index % 26));
    return [...text.toLowerCase()].filter((each) => each === letter).length;
  });

/** By the model's name: `broken` fails, `untold` tells no tokens, `busy` asks to be left alone for `busySeconds` (`busy-7` for 7), `refusing` refuses, `short` leaves one out, `uneven` has vectors of two lengths. */
export const fakeEmbeddings = (
  body: unknown,
): { status: number; answer: unknown; headers?: Record<string, string> } => {
  const { model, input, dimensions = 26 } = Request.parse(body);
  const error = (message: string) => ({ error: { message, type: "server_error", param: null, code: null } });
  if (model === "broken") return { status: 500, answer: error("The server had an error") };
  const [busy, seconds = String(busySeconds)] = /^busy(?:-(\d+))?$/.exec(model) ?? [];
  if (busy) return { status: 429, answer: error("Too many requests"), headers: { "retry-after": seconds } };
  if (model === "refusing") return { status: 400, answer: error("The input is refused") };
  const data = input.map((text, index) => ({
    object: "embedding",
    index,
    embedding: letters(text, model === "uneven" && index > 0 ? dimensions + 1 : dimensions),
  }));
  const tokens = model === "untold" ? 0 : input.length * tokensPerText;
  return {
    status: 200,
    answer: {
      object: "list",
      model,
      data: model === "short" ? data.slice(1) : data,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    },
  };
};
