import { signStandard } from "../auth/webhooks/standard.ts";
import type { ToldEvent } from "../protocol/endpoint-rpc.ts";
import type { Clock } from "../shared/clock.ts";
import { fetchOutgoing } from "../shared/fetch-outgoing.ts";
import { settledWithin, withinTime } from "../shared/timeouts.ts";
import { answerMs, answerTextMs, disableAfterMs, maxAnswerBytes, maxBatchEvents } from "./bounds.ts";

/** The pauses before a delivery is tried again. The last one is repeated. */
const pausesMs = [5000, 60_000, 10 * 60_000, 3_600_000, 3 * 3_600_000, 12 * 3_600_000];

/**
 * When a delivery is tried again that failed at `now`: for the `failures`-th time in a row, and first at `since`. Undefined
 * where its server has had its time. The last try is when that ends.
 */
export const retryAt = (failures: number, since: number, now: number): number | undefined => {
  const end = since + disableAfterMs;
  if (now >= end) return undefined;
  const pauseMs = pausesMs[Math.min(failures, pausesMs.length) - 1] ?? 0;
  return Math.min(now + pauseMs, end);
};

/** What goes out in one request. `id`: the same whenever just these events do. */
export type Envelope = { id: string; type: string; events: ToldEvent[]; body: string };

const eventOf = ({ id, type, timestamp, data }: ToldEvent): string => {
  const head = JSON.stringify({ id, type, ...(timestamp !== undefined && { timestamp }) });
  return `${head.slice(0, -1)},"data":${data}}`;
};

/** One envelope for each event, or for up to `maxBatchEvents` of them. In order. */
export const envelopesOf = (events: ToldEvent[], isBatch: boolean): Envelope[] => {
  if (!isBatch)
    return events.map((event) => ({ id: event.id, type: event.type, events: [event], body: eventOf(event) }));
  return Array.from({ length: Math.ceil(events.length / maxBatchEvents) }, (_, index) => {
    const part = events.slice(index * maxBatchEvents, (index + 1) * maxBatchEvents);
    const id = `${part[0]?.id}-${part.at(-1)?.id}`;
    return { id, type: "batch", events: part, body: `{"type":"batch","data":[${part.map(eventOf).join(",")}]}` };
  });
};

/** What came of one request. `error`: why there is no 2xx. */
export type Sent = { isDelivered: boolean; ms: number; status?: number; answer?: string; error?: string };

/** How an answer begins. The rest is not read; nor is what comes late. */
const beginningOf = async ({ body, headers }: Response): Promise<string> => {
  if (!body || headers.get("content-length") === "0") return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  const read = async (): Promise<void> => {
    while (bytes < maxAnswerBytes) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value.subarray(0, maxAnswerBytes - bytes), { stream: true });
      bytes += value.byteLength;
    }
  };
  await settledWithin(answerTextMs, read());
  void settledWithin(0, reader.cancel());
  return text;
};

type Target = { url: string; secrets: string[]; allowLoopback: boolean };

/** Sends it once, signed as Standard Webhooks. It throws nothing: whatever goes wrong is told. */
export const send = async (
  { id, body }: Pick<Envelope, "id" | "body">,
  { url, secrets, allowLoopback }: Target,
  { clock, fetch }: { clock: Clock; fetch: typeof globalThis.fetch },
): Promise<Sent> => {
  const begun = clock.now();
  const signed = signStandard(secrets, id, begun, body);
  const headers = Object.entries({ ...signed, "content-type": "application/json", "user-agent": "Colloquy" });
  const failed = (error: string, status?: number): Sent => ({
    ...{ isDelivered: false, ms: clock.now() - begun, error },
    ...(status !== undefined && { status }),
  });
  try {
    const told = await withinTime(answerMs, (signal) =>
      fetchOutgoing({ method: "POST", url, headers, body }, { fetch, allowLoopback, signal, isDirect: true }),
    );
    if (!told.ok) return failed(`It could not be asked: ${told.reason}`);
    const { status, ok } = told.response;
    const ms = clock.now() - begun;
    const answer = await beginningOf(told.response);
    if (ok) return { isDelivered: true, ms, status, answer };
    const why = status >= 300 && status < 400 ? "It redirects, which is not followed" : `It answered ${status}`;
    return { ...failed(why, status), ms, answer };
  } catch {
    return failed(`It did not answer within ${answerMs / 1000} s`);
  }
};
