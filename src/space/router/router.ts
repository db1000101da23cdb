import { unseal } from "../../auth/sealing.ts";
import type { Env } from "../../env.ts";
import { askModel } from "../../models/ask-model.ts";
import { classifyFailure } from "../../models/failure.ts";
import type { RouterDecision } from "../../protocol/message.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { type Crashable, fault } from "../../shared/fault.ts";
import { log as logger } from "../../shared/log.ts";
import type { Jobs } from "../../timers/jobs.ts";
import {
  maxRouterAgents,
  maxRouterAnswerCharacters,
  maxRouterAsks,
  maxRouterHeld,
  maxRouterMessages,
  maxRouterTries,
  routerOutputTokens,
  routerTimeoutMs,
} from "../bounds.ts";
import { type Log, type LogRow, messageOf, type NewEvent } from "../log/log.ts";
import type { Members } from "../members.ts";
import type { Settings, SettingsRow } from "../settings.ts";
import { wakesIn } from "./answer.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { Decisions } from "./decisions.ts";
import { Descriptions } from "./descriptions.ts";
import { type RoutedAgent, routerPrompt } from "./prompt.ts";
import type { RouterLedger } from "./router-ledger.ts";

/**
 * Has the space's model decide which agents a message wakes that addresses nobody.
 *
 * Invariants
 * 1. The poster never waits for it; delivery does. Once it is a message's turn, that takes at most `routerRetryMs` and one
 *    more ask of `routerTimeoutMs`, unless the object crashes.
 * 2. A message is decided once, together with the event in the log that says so. A failure wakes nobody.
 * 3. While a message is undecided it has a job, since the transaction that stored it. After a crash it is asked about
 *    again, `maxRouterTries` times in all. An ask that took all its time is not repeated.
 * 4. Messages are asked about in the log's order, `maxRouterAsks` at a time. One that finds `maxRouterHeld` others undecided
 *    fails at once.
 */
const kind = "route";

type Append = (event: NewEvent) => LogRow;

type Surroundings = {
  ctx: Crashable;
  env: Env;
  jobs: Jobs;
  clock: Clock;
  settings: Settings;
  members: Members;
  log: Log;
  decisions: Decisions;
  ledger: RouterLedger;
  /** The one way into the log. */
  record: (write: (append: Append) => void) => void;
};

export class Router {
  readonly #around: Surroundings;
  readonly #descriptions: Descriptions;
  readonly #breaker = new CircuitBreaker();

  constructor(surroundings: Surroundings) {
    this.#around = surroundings;
    this.#descriptions = new Descriptions(surroundings.env.AGENT, surroundings.clock);
    surroundings.jobs.handle(kind, {
      atOnce: maxRouterAsks,
      run: ({ key, attempts }, signal) => this.#route(Number(key), attempts, signal),
    });
  }

  /** The message in this row waits for a decision. Belongs in the transaction that stores it. */
  hold(append: Append, row: LogRow): void {
    const { decisions, jobs, clock } = this.#around;
    const hasRoom = decisions.pending().length < maxRouterHeld;
    decisions.hold(row.seq);
    if (hasRoom) jobs.set({ kind, key: String(row.seq), dueAt: Math.max(clock.now(), this.#breaker.openUntil()) });
    else this.#decided(append, row, failed(noRoom()));
  }

  /** The space is over. What is undecided wakes nobody, and no event says so. Belongs in the transaction that ends it. */
  giveUp(): void {
    const { decisions, jobs, clock } = this.#around;
    const reason = new ColloquyError("gone", "The space was deleted");
    for (const seq of decisions.pending()) {
      decisions.decide(seq, { ...failed(reason), at: clock.now() });
      jobs.drop(kind, String(seq), reason);
    }
  }

  async #route(seq: number, attempts: number, signal: AbortSignal): Promise<number | undefined> {
    const { ctx, clock, decisions, log, record } = this.#around;
    const row = log.at(seq);
    const isUndecided = (): boolean => decisions.pending().includes(seq);
    // A crash came between the decision and the end of the job.
    if (!row || !isUndecided()) return undefined;
    const startedAt = clock.now();
    if (this.#breaker.openUntil() > startedAt) return this.#breaker.openUntil();
    const decision = attempts > maxRouterTries ? failed(interrupted()) : await this.#decide(row, signal);
    fault("space.before-decision", ctx);
    if (!decision) return this.#breaker.openUntil();
    // The space may have ended meanwhile.
    if (isUndecided()) record((append) => this.#decided(append, row, decision, startedAt));
    return undefined;
  }

  /** The decision, which may be a lasting failure. Undefined where the message is to be asked about again after a pause. */
  async #decide(row: LogRow, dropped: AbortSignal): Promise<RouterDecision | undefined> {
    const late = Promise.withResolvers<never>();
    const controller = new AbortController();
    const signal = AbortSignal.any([dropped, controller.signal]);
    const timer = setTimeout(() => {
      const error = new ColloquyError("model_stalled", `The router did not decide within ${routerTimeoutMs} ms`);
      late.reject(error);
      controller.abort(error);
    }, routerTimeoutMs);
    try {
      const agents = await Promise.race([this.#ask(row, signal), late.promise]);
      this.#breaker.close();
      return { outcome: agents.length > 0 ? "woke" : "nobody", agents };
    } catch (error) {
      return !signal.aborted && this.#asksAgain(row, error) ? undefined : failed(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whether the fault of an ask passes, and the message is to be asked about again then. */
  #asksAgain({ seq, frame }: LogRow, error: unknown): boolean {
    const now = this.#around.clock.now();
    const { code, terminal, retryAfterMs } = classifyFailure(error, now);
    const postedAt = Date.parse(messageOf(frame).createdAt);
    const again = !terminal && this.#breaker.opensFor(now, postedAt, retryAfterMs);
    if (again) logger.warn("router.rests", { seq, code, until: this.#breaker.openUntil() });
    return again;
  }

  async #ask(row: LogRow, signal: AbortSignal): Promise<string[]> {
    const { settings, members, log, ledger, clock, env } = this.#around;
    const space = settings.find();
    if (!space?.router) throw new ColloquyError("gone", "The space has no router any more");
    const config = space.router;
    const those = members.all().filter(({ type }) => type === "agent");
    const known = those.slice(0, maxRouterAgents).map(({ entityId: id, name }) => ({ id, name }));
    const messages = log.messages({ over: row.messageCount - maxRouterMessages, upTo: row.messageCount });
    const ids = known.map(({ id }) => id);
    const descriptions = await this.#descriptions.of(space.workspaceId, ids);
    signal.throwIfAborted();
    const agents: RoutedAgent[] = known.map((agent) => ({ ...agent, description: descriptions.get(agent.id) ?? "" }));
    const text = await askModel({
      env,
      openSecret: (name) => this.#openSecret(space, name, signal),
      config: config.model,
      prompt: routerPrompt({ space, instructions: config.instructions, agents, messages }),
      maxOutputTokens: routerOutputTokens,
      maxCharacters: { name: "maxRouterAnswerCharacters", characters: maxRouterAnswerCharacters },
      signal,
      reserve: (tokens) => {
        const reservation = ledger.reserve(clock.now(), tokens, config.maxTokensPerDay);
        if (reservation) return (billed) => ledger.settle(reservation, billed);
        throw new ColloquyError(
          "budget_exhausted",
          `The router's maxTokensPerDay (${config.maxTokensPerDay}) does not allow this call; the day ends at 00:00 UTC`,
        );
      },
    });
    const wakes = wakesIn(text, agents);
    if (wakes) return wakes;
    throw new ColloquyError("model_nonsense", 'The router\'s model did not answer JSON such as {"wake": []}');
  }

  /** A secret of the space's workspace, opened. Undefined where there is none of this name. */
  async #openSecret({ workspaceId }: SettingsRow, name: string, signal: AbortSignal): Promise<string | undefined> {
    const { env } = this.#around;
    const sealed = unwrap(await env.WORKSPACE.getByName(workspaceId).sealedSecrets())[name];
    signal.throwIfAborted();
    return sealed === undefined ? undefined : unseal(env.SIGNING_SECRET, workspaceId, name, sealed);
  }

  #decided(append: Append, { seq, frame }: LogRow, decision: RouterDecision, startedAt?: number): void {
    const { decisions, clock } = this.#around;
    const now = clock.now();
    const { id: messageId, spaceId } = messageOf(frame);
    decisions.decide(seq, { ...decision, at: now });
    append({ type: "message.routed", messageId, ...decision });
    const { outcome, agents, error } = decision;
    const fields = { spaceId, messageId, outcome, agents: agents.length, durationMs: now - (startedAt ?? now) };
    if (error) logger.warn("router.failed", { ...fields, code: error.code, reason: error.message });
    else logger.info("router.decided", fields);
  }
}

const interrupted = (): ColloquyError =>
  new ColloquyError("interrupted", `The router was cut off ${maxRouterTries} times (maxRouterTries)`);

const noRoom = (): ColloquyError =>
  new ColloquyError(
    "limit_reached",
    `The router has ${maxRouterHeld} messages to decide about, which is the most (maxRouterHeld): mention whom you mean`,
  );

const failed = (error: unknown): RouterDecision => {
  const { code, message } = classifyFailure(error);
  return { outcome: "failed", agents: [], error: { code, message } };
};
