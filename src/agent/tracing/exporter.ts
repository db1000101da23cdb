import type { Env } from "../../env.ts";
import { log } from "../../shared/log.ts";
import { maxBufferedSpans, spanExportTimeoutMs } from "../bounds.ts";
import { otlpOf, type Span } from "./otlp.ts";

/**
 * Sends spans to the operator's collector: OTLP over HTTP, as JSON.
 *
 * Invariants
 * 1. Nobody waits for it, and its failures stop nothing: spans that cannot be sent are lost, and the log says how many.
 * 2. At most `maxBufferedSpans` wait, and one request is under way.
 */
export class Exporter {
  readonly #env: Env;
  readonly #background: (work: Promise<unknown>) => void;
  #spans: Span[] = [];
  #lost = 0;
  #sending = false;

  constructor(env: Env, background: (work: Promise<unknown>) => void) {
    this.#env = env;
    this.#background = background;
  }

  add(span: Span): void {
    if (this.#spans.length < maxBufferedSpans) this.#spans.push(span);
    else this.#lost += 1;
  }

  /** Sends what waits, in the background. */
  flush(): void {
    if (this.#sending || this.#spans.length === 0) return;
    this.#sending = true;
    this.#background(this.#send());
  }

  async #send(): Promise<void> {
    while (this.#spans.length > 0) {
      const spans = this.#spans;
      const lost = this.#lost;
      this.#spans = [];
      this.#lost = 0;
      const why = await this.#post(spans);
      if (why !== undefined || lost > 0) {
        log.warn("spans.lost", {
          spans: lost + (why === undefined ? 0 : spans.length),
          why: why ?? "maxBufferedSpans",
        });
      }
    }
    this.#sending = false;
  }

  /** Why it failed, or nothing. */
  async #post(spans: Span[]): Promise<string | undefined> {
    const headers = headersOf(this.#env.OTEL_EXPORTER_OTLP_HEADERS ?? "");
    if (!headers) return "OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value";
    headers.set("content-type", "application/json");
    try {
      const answer = await fetch(`${this.#env.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, "")}/v1/traces`, {
        method: "POST",
        headers,
        body: JSON.stringify(otlpOf(this.#env.OTEL_SERVICE_NAME ?? "colloquy", spans)),
        redirect: "manual",
        signal: AbortSignal.timeout(spanExportTimeoutMs),
      });
      await answer.body?.cancel();
      return answer.ok ? undefined : `the collector answered ${answer.status}`;
    } catch (error) {
      return String(error);
    }
  }
}

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
