import { waitUntil } from "cloudflare:workers";
import { closeCodes, pingText, pongText } from "../protocol/events.ts";
import { type GuestEnd, GuestFrame } from "../protocol/guest.ts";
import { ColloquyError, problem } from "../shared/errors.ts";
import { issuesOf } from "../shared/issues.ts";
import { log } from "../shared/log.ts";
import type { AskedAgent } from "./http-context.ts";

/**
 * One socket for all that a guest's program does: each frame is one request of the routes, and its answer has its `id`. It
 * is the worker's own, so no object is kept awake by a program that only waits for the next run.
 *
 * Invariants
 * 1. Its credentials are looked at every `proofMs`, before each act, and before a run is handed over. Once they do not hold, it
 *    closes, and nothing more is done (S5, L7).
 * 2. A frame that makes no sense is answered by an error, and the socket stays open.
 * 3. A speech whose socket closes before its end breaks off: it is not said.
 */
const proofMs = 1000;
/** How long an agent is asked to wait at a time. A run that comes for a program that left meanwhile waits for its lease. */
const claimSeconds = 20;
/** Frames that wait for their answers, and what one may hold, in characters. */
const maxUnderWay = 64;
const maxFrameCharacters = 512 * 1024;

type Answer = object;
type Speech = { write(line: object): void; end(): void };

/**
 * All throw what ends the socket: `holds` once the caller's credentials do not hold any more, `reads` once they may not read in the
 * confidential space that the socket is for. `prove` is both for a request, and counts it.
 */
type Proofs = Record<"prove" | "holds" | "reads", () => Promise<void>>;

export const serveGuest = (socket: WebSocket, agent: AskedAgent, { prove, holds, reads }: Proofs): void => {
  const underWay = new Set<string>();
  const speeches = new Map<string, Speech>();
  let isOpen = true;

  const send = (frame: object): void => {
    if (isOpen) socket.send(JSON.stringify(frame));
  };
  const refuse = (id: string | undefined, error: unknown): void => {
    const known = error instanceof ColloquyError ? error : new ColloquyError("internal", "Something went wrong here.");
    if (known !== error) log.error("guest.frame-failed", error);
    const { type: _, ...refusal } = problem(known.code, known.message, known.issues, known.retryAfterMs);
    send({ type: "error", ...(id !== undefined && { id }), ...refusal });
  };
  const close = (code: number, reason: string): void => {
    if (isOpen) socket.close(code, reason);
    isOpen = false;
    clearInterval(proving);
    for (const { end } of speeches.values()) end();
  };
  const ended = (): void => close(closeCodes.tokenExpired, "these credentials do not hold any more");
  const proven = (): Promise<void> => prove().catch(ended);
  const proving = setInterval(() => waitUntil(holds().catch(ended)), proofMs);
  /** Acts begin in the order in which they came, each once it is proven. */
  let begun: Promise<unknown> = Promise.resolve();

  const claim = async (): Promise<Answer> => {
    while (isOpen) {
      await proven();
      const claimed = isOpen ? await agent.claimRun({ waitSeconds: claimSeconds }) : null;
      // A caller whose right has ended meanwhile does not get the run. The next claim gets it, once the lease is over.
      if (claimed) await Promise.all([holds(), reads()]).catch(ended);
      if (claimed) return { type: "claimed", ...claimed };
    }
    return {};
  };

  const speak = async ({ id, runId, key, lease }: Extract<GuestFrame, { type: "speech" }>): Promise<Answer> => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const written = (work: Promise<void>): void => void work.catch(() => undefined);
    speeches.set(id, {
      write: (line) => written(writer.write(new TextEncoder().encode(`${JSON.stringify(line)}\n`))),
      end: () => written(writer.close()),
    });
    try {
      return { type: "answer", ...(await agent.speakInRun(runId, { key, ...(lease && { lease }) }, readable)) };
    } finally {
      speeches.delete(id);
    }
  };

  const answerTo = async (frame: GuestFrame): Promise<Answer> => {
    switch (frame.type) {
      case "claim":
        return claim();
      case "call": {
        const { type: _, id: __, runId, ...call } = frame;
        return { type: "answer", ...(await agent.callInRun(runId, call)) };
      }
      case "speech":
        return speak(frame);
      case "speech.delta":
      case "speech.done":
        throw new ColloquyError("bad_frame", "there is no speech of this id: begin it by a frame of type speech");
      case "renew":
        return { type: "renewed", ...(await agent.renewClaim(frame.runId, frame.lease)) };
      default: {
        const { type: kind, id: _, runId, ...end } = frame;
        return { type: "ended", run: await agent.endRun(runId, { kind, ...end } as GuestEnd) };
      }
    }
  };

  const receive = async (text: unknown): Promise<void> => {
    if (text === pingText) return socket.send(pongText);
    const { frame, id, error } = frameIn(text);
    if (!frame) return refuse(id, error);
    const isAct = !["claim", "speech.delta", "speech.done"].includes(frame.type);
    const turn = begun.then(() => (isAct ? proven() : undefined));
    begun = turn;
    await turn;
    if (!isOpen) return;
    const speech = speeches.get(frame.id);
    if (frame.type === "speech.delta" && speech) return speech.write({ delta: frame.delta });
    if (frame.type === "speech.done" && speech) return speech.write({ done: true });
    if (underWay.has(frame.id) && !frame.type.startsWith("speech.")) {
      return refuse(frame.id, new ColloquyError("conflict", "a frame of this id waits for its answer: use another id"));
    }
    if (underWay.size >= maxUnderWay) {
      const message = `${maxUnderWay} frames wait for their answers (maxUnderWay): wait for some`;
      return refuse(frame.id, new ColloquyError("limit_reached", message));
    }
    underWay.add(frame.id);
    try {
      send({ id: frame.id, ...(await answerTo(frame)) });
    } catch (failure) {
      refuse(frame.id, failure);
    } finally {
      underWay.delete(frame.id);
    }
  };

  socket.accept();
  socket.addEventListener("message", ({ data }) => waitUntil(receive(data)));
  socket.addEventListener("close", () => close(1000, ""));
  socket.addEventListener("error", () => close(1011, ""));
};

type Read = { frame?: GuestFrame; id?: string | undefined; error?: ColloquyError };

const frameIn = (text: unknown): Read => {
  const shape = (issues?: ColloquyError["issues"], id?: string): Read => {
    const message = "each frame is one JSON object with a type and an id: see the page on guests";
    return { id, error: new ColloquyError("bad_frame", message, issues ? { issues } : {}) };
  };
  if (typeof text !== "string" || text.length > maxFrameCharacters) return shape();
  try {
    const json: unknown = JSON.parse(text);
    const parsed = GuestFrame.safeParse(json);
    if (parsed.success) return { frame: parsed.data };
    const id: unknown = typeof json === "object" && json !== null && "id" in json ? json.id : undefined;
    return shape(issuesOf(parsed.error), typeof id === "string" ? id.slice(0, 128) : undefined);
  } catch {
    return shape();
  }
};
