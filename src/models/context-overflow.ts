/** How the known providers say that an input is too long for the model. */
const overflowPatterns = [
  /context_length_exceeded|exceed_context_size/i, // OpenAI and those like it; llama.cpp
  /(?:maximum|max) (?:context|prompt|model) length/i, // OpenAI, Mistral, vLLM, xAI, OpenRouter
  /context (?:window|size|limit|length)\b.{0,40}\b(?:exceed|limit|full)|exceed\w*.{0,60}\bcontext (?:window|size|limit|length)/i, // Workers AI, llama.cpp, Ollama, Anthropic
  /prompt is too long|input is too long/i, // Anthropic, Bedrock
  /input token count.{0,60}exceeds/i, // Gemini
  /reduce the length of the (?:messages|prompt|input)/i, // Groq, OpenAI
  /request too large for model/i, // Groq
  /tokens? \+ .?max_(?:new_)?tokens.? must be <=/i, // Together, TGI
];

/** Statuses that have been seen with it; inside a stream there is none. */
const overflowStatuses = new Set<number | undefined>([undefined, 200, 400, 413, 422, 500]);

/** Whether a provider's refusal means that the input is too long. 413 alone says it too. */
export const isContextOverflow = (status: number | undefined, said: string): boolean =>
  status === 413 || (overflowStatuses.has(status) && overflowPatterns.some((pattern) => pattern.test(said)));
