import { createHash } from "node:crypto";

export type AttributeValue = string | number | boolean | string[];

/** Something that a run did, from its start to its end, in milliseconds since the epoch. */
export type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: "internal" | "client";
  startedAt: number;
  endedAt: number;
  attributes: Record<string, AttributeValue | undefined>;
  failed: boolean;
};

const hexId = (text: string, bytes: number): string =>
  createHash("sha256")
    .update(text)
    .digest("hex")
    .slice(0, 2 * bytes);

/** A run is one trace. Ids follow from what they are of: a run that was cut goes on in the same trace. */
export const traceIdOf = (runId: string): string => hexId(runId, 16);
export const spanIdOf = (...path: (string | number)[]): string => hexId(path.join("/"), 8);
