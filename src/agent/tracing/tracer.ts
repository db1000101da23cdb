import { z } from "zod";
import type { Env } from "../../env/env.ts";
import { identifyModel } from "../../models/identify-model.ts";
import type { Usage } from "../../protocol/run.ts";
import type { Clock } from "../../shared/clock.ts";
import { log } from "../../shared/log.ts";
import { maxBufferedSpans, maxSpanContentCharacters, spanExportTimeoutMs } from "../bounds.ts";
import type { Composed } from "../context/sections.ts";
import type { AgentRow } from "../identity.ts";
import type { CallRequest } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { inputMessages, otlpOf, outputMessages, type Span, spanIdOf, textPart, traceIdOf } from "./otlp.ts";

/** The facts of a step's span. `came`: the generation, or the code of its failure. */
export type TracedStep = {
  index: number;
  startedAt: number;
  model: { provider: string; name: string };
  maxOutputTokens: number;
  composed: Composed;
  came: { text: string; calls: CallRequest[]; usage: Usage; finishReason: string } | { error: string };
};

export type TracedCall = { step: number; startedAt: number; call: CallRequest; value: unknown; error: boolean };

const Failed = z.object({ error: z.object({ code: z.string() }) });

/**
 * Sends the operator's collector a span for each run, step and tool call: OTLP over HTTP, as JSON. Without an endpoint
 * it does nothing. Attributes have the names of OpenTelemetry's conventions for generative AI, which still move
 * (https://opentelemetry.io/docs/specs/semconv/gen-ai/). Others are `colloquy.*`.
 *
 * Invariants
 * 1. Nobody waits for it, and its failures stop nothing: spans that cannot be sent are lost, and the log says how many.
 * 2. At most `maxBufferedSpans` wait, and one request is under way.
 * 3. Texts, prompts and inputs are left out unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `true`.
 */
export type Tracer = ReturnType<typeof createTracer>;

export const createTracer = (
  env: Env,
  clock: Clock,
  agent: () => AgentRow,
  background: (work: Promise<unknown>) => void,
) => {
  const waiting: Span[] = [];
  let lost = 0;
  let sending = false;
  const isOn = (): boolean => Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT);

  const add = (run: RunRow, span: Omit<Span, "traceId">): void => {
    if (waiting.length >= maxBufferedSpans) {
      lost += 1;
      return;
    }
    const { id, workspaceId, config } = agent();
    const common = {
      "gen_ai.agent.id": id,
      "gen_ai.agent.name": config.name,
      "colloquy.workspace.id": workspaceId,
      "colloquy.run.id": run.id,
    };
    waiting.push({ ...span, traceId: traceIdOf(run.id), attributes: { ...common, ...span.attributes } });
  };

  const content = (value: unknown): string | undefined => {
    if (env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT !== "true") return undefined;
    return (JSON.stringify(value) ?? "null").slice(0, maxSpanContentCharacters);
  };

  /** Why it failed, or nothing. */
  const post = async (spans: Span[]): Promise<string | undefined> => {
    const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS = "", OTEL_SERVICE_NAME = "colloquy" } = env;
    const headers = headersOf(OTEL_EXPORTER_OTLP_HEADERS);
    if (!headers) return "OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value";
    headers.set("content-type", "application/json");
    try {
      const answer = await fetch(`${OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, "")}/v1/traces`, {
        method: "POST",
        headers,
        body: JSON.stringify(otlpOf(OTEL_SERVICE_NAME, spans)),
        redirect: "manual",
        signal: AbortSignal.timeout(spanExportTimeoutMs),
      });
      await answer.body?.cancel();
      return answer.ok ? undefined : `the collector answered ${answer.status}`;
    } catch (error) {
      return String(error);
    }
  };

  const send = async (): Promise<void> => {
    while (waiting.length > 0) {
      const spans = waiting.splice(0);
      const missed = lost;
      lost = 0;
      const failure = await post(spans);
      const unsent = failure === undefined ? 0 : spans.length;
      if (missed + unsent > 0) log.warn("spans.lost", { spans: missed + unsent, why: failure ?? "maxBufferedSpans" });
    }
    sending = false;
  };

  return {
    run(run: RunRow): void {
      if (!isOn()) return;
      const { name, model } = agent().config;
      const asked = identifyModel(model, env);
      add(run, {
        spanId: spanIdOf(run.id),
        name: `invoke_agent ${name}`,
        kind: "internal",
        startedAt: run.startedAt,
        endedAt: run.completedAt ?? clock.now(),
        failed: run.error !== null,
        attributes: {
          "gen_ai.operation.name": "invoke_agent",
          "gen_ai.provider.name": asked.family,
          "gen_ai.request.model": asked.name,
          "colloquy.run.status": run.status,
          "colloquy.space.ids": run.spaceIds,
          "error.type": run.error?.code,
        },
      });
    },

    step(run: RunRow, { index, startedAt, model, maxOutputTokens, composed, came }: TracedStep): void {
      if (!isOn()) return;
      const failed = "error" in came;
      add(run, {
        // A failed step is generated again: only the generation that is kept has the step's own id.
        spanId: failed ? spanIdOf(run.id, index, startedAt, came.error) : spanIdOf(run.id, index),
        parentSpanId: spanIdOf(run.id),
        name: `chat ${model.name}`,
        kind: "client",
        startedAt,
        endedAt: clock.now(),
        failed,
        attributes: {
          "gen_ai.operation.name": "chat",
          "gen_ai.provider.name": model.provider,
          "gen_ai.request.model": model.name,
          "gen_ai.request.stream": true,
          "gen_ai.request.max_tokens": maxOutputTokens,
          "gen_ai.request.temperature": agent().config.model.temperature,
          "colloquy.step": index,
          "gen_ai.system_instructions": content([textPart(composed.instructions)]),
          "gen_ai.input.messages": content(inputMessages(composed.messages)),
          ...(failed
            ? { "error.type": came.error }
            : {
                "gen_ai.response.finish_reasons": [came.finishReason],
                "gen_ai.usage.input_tokens": came.usage.inputTokens,
                "gen_ai.usage.output_tokens": came.usage.outputTokens,
                "colloquy.usage.estimated": came.usage.estimated,
                "gen_ai.output.messages": content(outputMessages(came)),
              }),
        },
      });
    },

    /** A call has its result, at once or when somebody has answered. */
    call(run: RunRow, { step, startedAt, call, value, error }: TracedCall): void {
      if (!isOn()) return;
      add(run, {
        spanId: spanIdOf(run.id, call.callId),
        parentSpanId: spanIdOf(run.id, step),
        name: `execute_tool ${call.toolName}`,
        kind: "internal",
        startedAt,
        endedAt: clock.now(),
        failed: error,
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": call.toolName,
          "gen_ai.tool.type": "function",
          "gen_ai.tool.call.id": call.callId,
          "colloquy.step": step,
          "error.type": error ? (Failed.safeParse(value).data?.error.code ?? "tool_failed") : undefined,
          "gen_ai.tool.call.arguments": content(call.input),
          "gen_ai.tool.call.result": content(value),
        },
      });
    },

    flush(): void {
      if (sending || waiting.length === 0) return;
      sending = true;
      background(send());
    },
  };
};

/**
 * `name=value,name=value`, values percent-encoded, as OpenTelemetry writes headers in a variable. Undefined where they
 * are malformed: they are secrets, so nothing says how.
 */
const headersOf = (text: string): Headers | undefined => {
  const headers = new Headers();
  try {
    for (const pair of text.split(",").filter((each) => each.trim() !== "")) {
      const [name = "", ...value] = pair.split("=");
      headers.set(name.trim(), decodeURIComponent(value.join("=").trim()));
    }
    return headers;
  } catch {
    return undefined;
  }
};
