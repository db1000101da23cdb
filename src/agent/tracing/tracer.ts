import { z } from "zod";
import type { Env } from "../../env.ts";
import { identifyModel } from "../../models/identify-model.ts";
import type { Clock } from "../../shared/clock.ts";
import { maxSpanContentCharacters } from "../bounds.ts";
import type { Composed } from "../context/sections.ts";
import type { AgentRow } from "../identity.ts";
import type { CallRequest } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { Exporter } from "./exporter.ts";
import {
  type AttributeValue,
  inputMessages,
  names,
  operations,
  outputMessages,
  type Span,
  spanIdOf,
  textPart,
  traceIdOf,
} from "./otlp.ts";

/** The facts of a step's span. `came`: the generation, or the code of its failure. */
export type TracedStep = {
  index: number;
  startedAt: number;
  model: { provider: string; name: string };
  maxOutputTokens: number;
  composed: Composed;
  came:
    | {
        text: string;
        calls: CallRequest[];
        usage: { inputTokens: number; outputTokens: number; estimated: boolean };
        finishReason: string;
      }
    | { error: string };
};

export type TracedCall = { step: number; startedAt: number; call: CallRequest; value: unknown; error: boolean };

/**
 * Sends the operator's collector a span for each run, step and tool call. Texts, prompts and inputs are left out
 * unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `true`. Without an endpoint it does nothing.
 */
export class Tracer {
  readonly #env: Env;
  readonly #clock: Clock;
  readonly #agent: () => AgentRow;
  readonly #exporter: Exporter;

  constructor(env: Env, clock: Clock, agent: () => AgentRow, background: (work: Promise<unknown>) => void) {
    this.#env = env;
    this.#clock = clock;
    this.#agent = agent;
    this.#exporter = new Exporter(env, background);
  }

  get isOn(): boolean {
    return this.#env.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined && this.#env.OTEL_EXPORTER_OTLP_ENDPOINT !== "";
  }

  /** The run has ended. */
  run(run: RunRow): void {
    if (!this.isOn) return;
    const { name, model } = this.#agent().config;
    const asked = identifyModel(model, this.#env);
    this.#add(run, {
      spanId: spanIdOf(run.id),
      name: `${operations.run} ${name}`,
      kind: "internal",
      startedAt: run.startedAt,
      endedAt: run.completedAt ?? this.#clock.now(),
      failed: run.error !== null,
      attributes: {
        [names.operation]: operations.run,
        [names.provider]: asked.family,
        [names.requestModel]: asked.name,
        [names.runStatus]: run.status,
        [names.spaceIds]: run.spaceIds,
        [names.errorType]: run.error?.code,
      },
    });
  }

  step(run: RunRow, { index, startedAt, model, maxOutputTokens, composed, came }: TracedStep): void {
    if (!this.isOn) return;
    const { config } = this.#agent();
    const failed = "error" in came;
    this.#add(run, {
      // A failed step is generated again: only the generation that is kept has the step's own id.
      spanId: failed ? spanIdOf(run.id, index, startedAt, came.error) : spanIdOf(run.id, index),
      parentSpanId: spanIdOf(run.id),
      name: `${operations.step} ${model.name}`,
      kind: "client",
      startedAt,
      endedAt: this.#clock.now(),
      failed,
      attributes: {
        [names.operation]: operations.step,
        [names.provider]: model.provider,
        [names.requestModel]: model.name,
        [names.stream]: true,
        [names.maxTokens]: maxOutputTokens,
        [names.temperature]: config.model.temperature,
        [names.step]: index,
        [names.instructions]: this.#content([textPart(composed.instructions)]),
        [names.inputMessages]: this.#content(inputMessages(composed.messages)),
        ...(failed
          ? { [names.errorType]: came.error }
          : {
              [names.finishReasons]: [came.finishReason],
              [names.inputTokens]: came.usage.inputTokens,
              [names.outputTokens]: came.usage.outputTokens,
              [names.tokensEstimated]: came.usage.estimated,
              [names.outputMessages]: this.#content(outputMessages(came)),
            }),
      },
    });
  }

  /** A call has its result, at once or when somebody has answered. */
  call(run: RunRow, { step, startedAt, call, value, error }: TracedCall): void {
    if (!this.isOn) return;
    this.#add(run, {
      spanId: spanIdOf(run.id, call.callId),
      parentSpanId: spanIdOf(run.id, step),
      name: `${operations.call} ${call.toolName}`,
      kind: "internal",
      startedAt,
      endedAt: this.#clock.now(),
      failed: error,
      attributes: {
        [names.operation]: operations.call,
        [names.toolName]: call.toolName,
        [names.toolType]: "function",
        [names.toolCallId]: call.callId,
        [names.step]: step,
        [names.errorType]: error ? (Failed.safeParse(value).data?.error.code ?? "tool_failed") : undefined,
        [names.toolArguments]: this.#content(call.input),
        [names.toolResult]: this.#content(value),
      },
    });
  }

  /** Sends what there is, in the background. */
  flush(): void {
    if (this.isOn) this.#exporter.flush();
  }

  #add(run: RunRow, span: Omit<Span, "traceId">): void {
    const { id, workspaceId, config } = this.#agent();
    const common: Span["attributes"] = {
      [names.agentId]: id,
      [names.agentName]: config.name,
      [names.workspaceId]: workspaceId,
      [names.runId]: run.id,
    };
    this.#exporter.add({ ...span, traceId: traceIdOf(run.id), attributes: { ...common, ...span.attributes } });
  }

  #content(value: unknown): AttributeValue | undefined {
    if (this.#env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT !== "true") return undefined;
    return (JSON.stringify(value) ?? "null").slice(0, maxSpanContentCharacters);
  }
}

/** The result of a failed call. */
const Failed = z.object({ error: z.object({ code: z.string() }) });
