import * as z from "zod";

/**
 * Every refusal and failure of Colloquy, in one closed table: what HTTP answers, how a socket closes,
 * and whether trying again can help. The messages say what to do; nothing else maps codes to numbers.
 */
type ErrorKind = { status: number; title: string; retryable?: true; closeCode?: number };

const table = {
  invalid_json: { status: 400, title: "The body is not JSON" },
  invalid_request: { status: 400, title: "The request does not have the expected shape" },
  invalid_cursor: { status: 400, title: "The cursor is malformed" },
  delivery_expired: { status: 400, title: "The delivery's time is outside the window" },
  bad_frame: { status: 400, title: "The frame does not have the expected shape", closeCode: 4400 },
  unauthorized: { status: 401, title: "Credentials are missing or wrong" },
  token_expired: { status: 401, title: "The token has expired", closeCode: 4401 },
  foreign_origin: { status: 403, title: "A page of another origin asked with this session" },
  forbidden: { status: 403, title: "This caller may not do that", closeCode: 4403 },
  not_found: { status: 404, title: "There is no such thing here", closeCode: 4404 },
  method_not_allowed: { status: 405, title: "This address does not take that method" },
  upgrade_required: { status: 426, title: "This address speaks WebSocket" },
  conflict: { status: 409, title: "It conflicts with what is there" },
  signed_in: { status: 409, title: "This browser is signed in as somebody else" },
  name_taken: { status: 409, title: "The name is taken" },
  limit_reached: { status: 409, title: "A bound has been reached" },
  idempotency_in_progress: { status: 409, title: "The first request with this key is under way", retryable: true },
  approval_changed: { status: 409, title: "The arguments are not those that were shown" },
  gone: { status: 410, title: "It is over" },
  text_too_long: { status: 413, title: "The text is too long" },
  payload_too_large: { status: 413, title: "The body is too large" },
  idempotency_mismatch: { status: 422, title: "This key was used with another body" },
  acting_entity_required: { status: 422, title: "Say which entity acts" },
  unknown_reference: { status: 422, title: "Something named in the body does not exist" },
  not_repliable: { status: 422, title: "That message cannot be replied to" },
  answer_invalid: { status: 422, title: "The answer does not have the expected shape" },
  edit_refused: { status: 422, title: "The edit does not apply to the block as it is" },
  invalid_time: { status: 422, title: "The time that was given cannot be kept" },
  rate_limited: { status: 429, title: "Too many requests", retryable: true, closeCode: 4429 },
  internal: { status: 500, title: "Something went wrong here" },
  not_configured: { status: 501, title: "This deployment is not set up for it" },
  unavailable: { status: 503, title: "Not reachable at the moment", retryable: true, closeCode: 1013 },
  suspended: { status: 503, title: "The workspace is suspended", closeCode: 4503 },
  // The errors that a run ends with, or that a tool answers its model. They show in the runs API.
  model_misconfigured: { status: 422, title: "The agent's model cannot be set up" },
  model_rejected: { status: 502, title: "The model's provider refused the request" },
  model_unavailable: { status: 503, title: "The model's provider could not be reached", retryable: true },
  model_stalled: { status: 504, title: "The model stopped answering", retryable: true },
  model_nonsense: { status: 502, title: "The model's answer cannot be understood" },
  context_overflow: { status: 502, title: "The input is longer than the model takes" },
  guest_away: { status: 503, title: "No program thinks for this guest now", retryable: true },
  guest_failed: { status: 502, title: "The guest's program gave up" },
  budget_exhausted: { status: 429, title: "The agent's token budget is spent" },
  step_limit: { status: 429, title: "The run reached its limit of steps" },
  token_limit: { status: 429, title: "The run reached its limit of tokens" },
  time_limit: { status: 429, title: "The run reached its limit of minutes" },
  run_canceled: { status: 410, title: "The run was canceled" },
  interrupted: { status: 503, title: "The agent was interrupted", retryable: true },
  tool_unknown: { status: 422, title: "There is no such tool" },
  tool_input_invalid: { status: 422, title: "The tool's input does not have the expected shape" },
  approval_rejected: { status: 403, title: "A person rejected the tool call" },
  tool_failed: { status: 502, title: "The tool failed" },
  tool_timeout: { status: 504, title: "The tool did not answer in time" },
  tool_rule_broken: { status: 422, title: "A rule of the agent's tools was not kept" },
  tool_misconfigured: { status: 422, title: "The tool cannot be set up" },
  no_active_space: { status: 422, title: "No space is active: call enter_space first" },
  not_a_member: { status: 403, title: "The agent is not a member of that space" },
  skip_too_late: { status: 422, title: "skip is valid only as the first step's only call" },
  outcome_unknown: { status: 500, title: "Whether the call took effect is not known" },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof table;

export const errorCodes = Object.keys(table) as [ErrorCode, ...ErrorCode[]];

export const errorKind = (code: ErrorCode): ErrorKind => table[code];

/** Whether a run that stopped with this reason tries again later. One that was `interrupted` goes on at once. */
export const isPassing = (reason: string | undefined): boolean =>
  errorCodes.some((code) => code === reason && code !== "interrupted" && errorKind(code).retryable === true);

/** One thing wrong with an input: where (a path into it) and what. */
export type Issue = { path: string; message: string };

export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(errorCodes),
    detail: z.string(),
    issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    retryAfter: z.int().optional().describe("Seconds to wait before trying again, where that is known"),
  })
  .meta({ id: "Problem", description: "RFC 9457 problem document" });
export type Problem = z.infer<typeof Problem>;

type ErrorDetails = { issues?: Issue[]; cause?: unknown; retryAfterMs?: number | undefined };

/** The one error class. `detail` is for the caller: it says what to do, and never holds a secret or a stack. */
export class ColloquyError extends Error {
  readonly code: ErrorCode;
  readonly issues: Issue[] | undefined;
  /** How long to wait before it is tried again, where that is known. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, detail: string, options: ErrorDetails = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ColloquyError";
    this.code = code;
    this.issues = options.issues;
    this.retryAfterMs = options.retryAfterMs;
  }

  get retryable(): boolean {
    return errorKind(this.code).retryable === true;
  }
}

/** The refusal of a suspended workspace, and of all that is in it. */
export const suspendedError = (): ColloquyError =>
  new ColloquyError(
    "suspended",
    "The operator has suspended this workspace: it may be read, and nothing is taken until it is resumed. Ask who runs this deployment",
  );

export const problem = (code: ErrorCode, detail: string, issues?: Issue[], retryAfterMs?: number): Problem => ({
  type: `https://colloquy.dev/problems/${code}`,
  title: errorKind(code).title,
  status: errorKind(code).status,
  code,
  detail,
  ...(issues && issues.length > 0 ? { issues } : {}),
  ...(retryAfterMs === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(retryAfterMs / 1000)) }),
});

/** The answer of an actor's RPC. An expected refusal is a value, since a rejected RPC loses its class on the way. */
export type Outcome<T> = { ok: true; value: T } | { ok: false; problem: Problem };

export const ok = <T>(value: T): Outcome<T> => ({ ok: true, value });

export const refuse = (
  code: ErrorCode,
  detail: string,
  issues?: Issue[],
  retryAfterMs?: number,
): { ok: false; problem: Problem } => ({ ok: false, problem: problem(code, detail, issues, retryAfterMs) });

/** A thrown `ColloquyError` as the refusal that it stands for; anything else is thrown on. */
export const refusalOf = (error: unknown): { ok: false; problem: Problem } => {
  if (error instanceof ColloquyError) return refuse(error.code, error.message, error.issues, error.retryAfterMs);
  throw error;
};

/** Whether an object of the last release was asked for a method that it lacks. It is asked again, or as it was then (L14). */
export const isLacking = (error: unknown): boolean =>
  error instanceof Error && /^The RPC receiver does not implement (?:the method )?"/.test(error.message);

/** The value of an outcome, or its refusal thrown as a `ColloquyError`. */
export const unwrap = <T>(outcome: Outcome<T>): T => {
  if (outcome.ok) return outcome.value;
  const { code, detail, issues, retryAfter } = outcome.problem;
  const retryAfterMs = retryAfter === undefined ? undefined : retryAfter * 1000;
  throw new ColloquyError(code, detail, { retryAfterMs, ...(issues && { issues }) });
};

/** Runs `work` on the part of an input at `part`, which a refusal then names; a bound is of the `whole`. */
export const atPath = <T>(part: string, work: () => T, whole = part): T => {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    const path = error.code === "limit_reached" ? whole : part;
    // One with issues names the field itself.
    const place = error.issues ? `${path}.` : `${path}: `;
    const issues = error.issues?.map((issue) => ({ ...issue, path: `${path}.${issue.path}` }));
    throw new ColloquyError(error.code, place + error.message, { cause: error, ...(issues && { issues }) });
  }
};
