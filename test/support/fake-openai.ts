import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";
import { fakeEmbeddings } from "./fake-embeddings.ts";

/**
 * A server on loopback that speaks OpenAI's `/v1/chat/completions`, streamed or not, by script; and its embeddings.
 *
 * A step is taken per request: from the queue of the request's model, else from the queue of all, else by `answer`.
 * Over HTTP: `POST /script {model?, steps}` adds steps, `GET /requests` shows what came, `DELETE /script` forgets both.
 * It never keeps a process alive. As a program (`node test/support/fake-openai.ts`) it prints `{"url"}` and ends with its stdin.
 */
const FakeToolCall = z.strictObject({
  name: z.string(),
  /** The arguments as they are streamed; joined they need not be JSON. An object is sent as JSON in one delta. */
  arguments: z.union([z.array(z.string()), z.record(z.string(), z.json())]),
  id: z.string().optional(),
});

export const FakeStep = z.strictObject({
  text: z.union([z.string(), z.array(z.string())]).optional(),
  toolCalls: z.array(FakeToolCall).optional(),
  finishReason: z.string().optional(),
  /** null: no usage is told. */
  usage: z.strictObject({ prompt_tokens: z.int(), completion_tokens: z.int() }).nullable().optional(),
  /** Anything but 200 answers `body` at once. */
  status: z.int().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.json().optional(),
  /** After so many chunks: the connection is cut, nothing more comes, a broken line or an error is sent. */
  cutAfter: z.int().optional(),
  stallAfter: z.int().optional(),
  /** After so many chunks nothing comes until `release`. */
  holdAfter: z.int().optional(),
  garbageAfter: z.int().optional(),
  errorAfter: z.strictObject({ chunks: z.int(), error: z.json() }).optional(),
  delayMs: z.int().optional(),
});
export type FakeStep = z.infer<typeof FakeStep>;

const ScriptRequest = z.strictObject({ model: z.string().optional(), steps: z.array(FakeStep) });
const ChatRequest = z.looseObject({
  model: z.string(),
  messages: z.array(z.unknown()),
  stream: z.boolean().optional(),
});

export type FakeRequest = {
  model: string;
  authorization: string | undefined;
  body: z.infer<typeof ChatRequest>;
  /** Whether the client hung up before the answer was whole. */
  aborted: boolean;
};

export type FakeOpenAi = {
  /** With `/v1` at its end: an agent's `baseUrl`. */
  baseUrl: string;
  requests: FakeRequest[];
  script(steps: FakeStep[], model?: string): void;
  /** Lets all go on that are held. */
  release(): void;
  stop(): Promise<void>;
};

const openAiError = (message: string, type: string, code: string | null = null) => ({
  error: { message, type, param: null, code },
});

/** Refusals as OpenAI words them. */
export const failures = {
  rateLimited: (retryAfter: string): FakeStep => ({
    status: 429,
    headers: { "retry-after": retryAfter },
    body: openAiError("Rate limit reached for requests", "requests", "rate_limit_exceeded"),
  }),
  unauthorized: (key: string): FakeStep => ({
    status: 401,
    body: openAiError(`Incorrect API key provided: ${key}.`, "invalid_request_error", "invalid_api_key"),
  }),
  serverError: { status: 500, body: openAiError("The server had an error", "server_error") },
  contextOverflow: {
    status: 400,
    body: openAiError(
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
      "invalid_request_error",
      "context_length_exceeded",
    ),
  },
  badJson: { status: 200, headers: { "content-type": "application/json" }, body: "not json" },
} satisfies Record<string, FakeStep | ((text: string) => FakeStep)>;

const readBody = async (request: IncomingMessage): Promise<unknown> => {
  let text = "";
  try {
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const sendJson = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body ?? {}));
};

const textDeltas = (step: FakeStep): string[] => (typeof step.text === "string" ? [step.text] : (step.text ?? []));

const argumentDeltas = (call: z.infer<typeof FakeToolCall>): string[] =>
  Array.isArray(call.arguments) ? call.arguments : [JSON.stringify(call.arguments)];

const callId = (call: z.infer<typeof FakeToolCall>, index: number): string => call.id ?? `call_fake_${index}`;

const finishReason = (step: FakeStep): string => step.finishReason ?? (step.toolCalls?.length ? "tool_calls" : "stop");

const usageOf = (step: FakeStep) => {
  const usage = step.usage === undefined ? { prompt_tokens: 100, completion_tokens: 10 } : step.usage;
  return usage && { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
};

/** A streamed answer's chunks, in OpenAI's order. */
const chunksOf = (step: FakeStep, model: string): unknown[] => {
  const frame = (delta: unknown, reason: string | null = null) => ({
    id: "chatcmpl-fake",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model,
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  const chunks: unknown[] = textDeltas(step).map((content) => frame({ role: "assistant", content }));
  for (const [index, call] of (step.toolCalls ?? []).entries()) {
    const [first = "", ...rest] = argumentDeltas(call);
    const start = { index, id: callId(call, index), type: "function", function: { name: call.name, arguments: first } };
    chunks.push(frame({ tool_calls: [start] }));
    for (const delta of rest) chunks.push(frame({ tool_calls: [{ index, function: { arguments: delta } }] }));
  }
  chunks.push(frame({}, finishReason(step)));
  const usage = usageOf(step);
  if (usage) chunks.push({ ...frame({}), choices: [], usage });
  return chunks;
};

const whole = (step: FakeStep, model: string): unknown => ({
  id: "chatcmpl-fake",
  object: "chat.completion",
  created: 1_700_000_000,
  model,
  choices: [
    {
      index: 0,
      finish_reason: finishReason(step),
      message: {
        role: "assistant",
        content: textDeltas(step).join("") || null,
        ...(step.toolCalls && {
          tool_calls: step.toolCalls.map((call, index) => ({
            id: callId(call, index),
            type: "function",
            function: { name: call.name, arguments: argumentDeltas(call).join("") },
          })),
        }),
      },
    },
  ],
  usage: usageOf(step),
});

const stream = async (
  step: FakeStep,
  model: string,
  response: ServerResponse,
  released: () => Promise<void>,
): Promise<void> => {
  response.writeHead(200, { "content-type": "text/event-stream", ...step.headers });
  response.flushHeaders();
  const send = (data: string): void => {
    response.write(`data: ${data}\n\n`);
  };
  const chunks = chunksOf(step, model);
  for (let index = 0; index <= chunks.length; index += 1) {
    if (response.destroyed) return;
    if (step.cutAfter === index) return void response.destroy();
    if (step.stallAfter === index) return;
    if (step.holdAfter === index) await released();
    if (step.garbageAfter === index) send('{"choices": [');
    if (step.errorAfter?.chunks === index) send(JSON.stringify({ error: step.errorAfter.error }));
    if (step.delayMs) await wait(step.delayMs);
    if (index < chunks.length) send(JSON.stringify(chunks[index]));
  }
  send("[DONE]");
  response.end();
};

export const startFakeOpenAi = async (
  answer: (request: FakeRequest) => FakeStep | undefined = () => undefined,
): Promise<FakeOpenAi> => {
  const requests: FakeRequest[] = [];
  const forAll: FakeStep[] = [];
  const byModel = new Map<string, FakeStep[]>();
  const held: (() => void)[] = [];
  const released = (): Promise<void> => new Promise((goOn) => held.push(goOn));
  const script = (steps: FakeStep[], model?: string): void => {
    if (model === undefined) forAll.push(...steps);
    else byModel.set(model, [...(byModel.get(model) ?? []), ...steps]);
  };
  const complete = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parsed = ChatRequest.safeParse(await readBody(request));
    if (!parsed.success) return sendJson(response, 400, openAiError("Malformed request", "invalid_request_error"));
    const { model, stream: streamed } = parsed.data;
    const seen: FakeRequest = {
      model,
      authorization: request.headers.authorization,
      body: parsed.data,
      aborted: false,
    };
    requests.push(seen);
    response.once("close", () => {
      seen.aborted = !response.writableEnded;
    });
    const step = byModel.get(model)?.shift() ?? forAll.shift() ?? answer(seen);
    if (!step) return sendJson(response, 500, openAiError("The fake server has no step left", "server_error"));
    if (step.status !== undefined) return sendJson(response, step.status, step.body, step.headers);
    if (streamed) return stream(step, model, response, released);
    return sendJson(response, 200, whole(step, model), step.headers);
  };
  const server = createServer(async (request, response) => {
    const route = `${request.method} ${request.url}`;
    if (route === "POST /v1/chat/completions") return complete(request, response);
    if (route === "POST /v1/embeddings") {
      const { status, answer: embeddings, headers } = fakeEmbeddings(await readBody(request));
      return sendJson(response, status, embeddings, headers);
    }
    if (route === "GET /requests") return sendJson(response, 200, requests);
    if (route === "POST /script") {
      const parsed = ScriptRequest.safeParse(await readBody(request));
      if (!parsed.success) return sendJson(response, 400, { issues: parsed.error.issues });
      script(parsed.data.steps, parsed.data.model);
      return sendJson(response, 200, {});
    }
    if (route === "DELETE /script") {
      requests.length = 0;
      forAll.length = 0;
      byModel.clear();
      return sendJson(response, 200, {});
    }
    return sendJson(response, 404, openAiError(`There is no ${route}`, "invalid_request_error"));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  server.unref();
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the fake server has no port");
  return {
    baseUrl: `http://127.0.0.1:${address.port}/v1`,
    requests,
    script,
    release: () => {
      for (const goOn of held.splice(0)) goOn();
    },
    stop: () =>
      new Promise((stopped) => {
        server.close(() => stopped());
        server.closeAllConnections();
      }),
  };
};

if (process.argv[1] !== undefined && import.meta.url === new URL(`file://${process.argv[1]}`).href) {
  const fake = await startFakeOpenAi();
  process.stdout.write(`${JSON.stringify({ url: fake.baseUrl })}\n`);
  process.stdin.resume().once("end", () => fake.stop());
}
