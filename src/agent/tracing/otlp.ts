import { names } from "./names.ts";
import type { AttributeValue, Span } from "./span.ts";

/** Spans as OTLP's JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. */
type Value =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: Value[] } };

const spanKinds = { internal: 1, client: 3 } as const;
const failedStatus = 2;
const nanosecondsPerMillisecond = 1_000_000n;

const otlpValue = (value: AttributeValue): Value => {
  if (Array.isArray(value)) return { arrayValue: { values: value.map(otlpValue) } };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "string") return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};

const attributesOf = (attributes: Span["attributes"]) =>
  Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: otlpValue(value) }]));

const nanoseconds = (milliseconds: number): string =>
  String(BigInt(Math.round(milliseconds)) * nanosecondsPerMillisecond);

export const otlpOf = (serviceName: string, spans: Span[]): object => ({
  resourceSpans: [
    {
      resource: { attributes: attributesOf({ [names.serviceName]: serviceName }) },
      scopeSpans: [
        {
          scope: { name: "colloquy" },
          spans: spans.map(({ startedAt, endedAt, kind, attributes, failed, ...ids }) => ({
            ...ids,
            kind: spanKinds[kind],
            startTimeUnixNano: nanoseconds(startedAt),
            endTimeUnixNano: nanoseconds(endedAt),
            attributes: attributesOf(attributes),
            status: failed ? { code: failedStatus } : {},
          })),
        },
      ],
    },
  ],
});
