/** A request with an `Idempotency-Key`, and its caller. */
export type RequestName = { principal: string; key: string };
/** With the answer to give again, where it was done before. */
export type BegunRequest = { replay?: { status: number; body: string } };

/** A workspace's methods about repeated requests. */
export interface RequestMethods {
  /** `Idempotency-Key`: begin, then end with what was answered. A begun one that never ended is free after 60 s. */
  beginRequest(input: RequestName & { bodyHash: string }): BegunRequest;
  /** Makes kept answers `gone` that tell of what is deleted at this path. The path has no `/v1`. */
  forgetAnswers(path: string): null;
  endRequest(input: RequestName & ({ status: number; body: string } | { abandon: true })): null;
}
