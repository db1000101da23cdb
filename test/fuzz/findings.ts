import type { TaskMeta } from "vitest";
import { vi } from "vitest";
import { errorCodes, errorKind } from "../../src/shared/errors.ts";
import { log } from "../../src/shared/log.ts";

/** What came of one kind of input: how many there were, how many of them were taken, and what is wrong with us. */
export type FuzzReport = { kind: string; inputs: number; taken: number; refused: number; findings: string[] };

declare module "vitest" {
  interface TaskMeta {
    fuzz?: FuzzReport;
  }
}

const maxFindings = 12;
const maxCharacters = 1500;

/** Counts the inputs of one kind, and keeps what should not be: one for each way in which it went wrong. */
export class Findings {
  readonly #found = new Map<string, string>();
  readonly #kind: string;
  readonly #meta: TaskMeta;
  inputs = 0;
  taken = 0;
  refused = 0;

  constructor(kind: string, meta: TaskMeta) {
    this.#kind = kind;
    this.#meta = meta;
  }

  /** `what` went wrong with `input`; the same again is not told again. */
  add(what: string, input: unknown, more = ""): void {
    if (this.#found.has(what) || this.#found.size >= maxFindings) return;
    const shown = typeof input === "string" ? input : JSON.stringify(input);
    this.#found.set(what, `${what}: ${shown.slice(0, maxCharacters)} ${more}`.trim());
  }

  /** Tells what came of it; answers what was found. */
  report(): string[] {
    const findings = [...this.#found.values()];
    const { inputs, taken, refused } = this;
    this.#meta.fuzz = { kind: this.#kind, inputs, taken, refused, findings };
    return findings;
  }
}

/** What the code logs as an error is one, whatever it answers. Empties what it gives. */
export const watchErrors = (): (() => string[]) => {
  const logged: string[] = [];
  vi.spyOn(log, "error").mockImplementation((event, error) => {
    logged.push(`${event}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  });
  return () => logged.splice(0);
};

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** What is wrong with a refusal's document; undefined where it is as promised. */
export const faultOfProblem = (document: unknown, status: number): string | undefined => {
  if (!isRecord(document)) return "a refusal is no document";
  const code = errorCodes.find((known) => known === document.code);
  if (code === undefined) return `the code ${String(document.code)} is not of the closed list`;
  if (errorKind(code).status !== status || document.status !== status) return `${code} is answered with ${status}`;
  if (typeof document.detail !== "string" || document.detail === "") return `${code} does not say why`;
  return undefined;
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** An operator suspended the workspace: that was an input too. */
export const isSuspended = (text: string): boolean => text.includes('"code":"suspended"');

/** What is wrong with an answer, whatever was asked: a failure, or a refusal that is no problem document. */
export const faultOfAnswer = ({ status, headers }: Response, text: string): string | undefined => {
  if (status === 503 && headers.get("retry-after") !== null) return undefined;
  if (status >= 500 && !(status === 503 && isSuspended(text))) return `answered ${status}`;
  if (status < 400) return undefined;
  if (headers.get("content-type") !== "application/problem+json") return "refused without a problem";
  return faultOfProblem(parsed(text), status);
};
