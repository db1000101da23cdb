import { askModel } from "../../models/ask-model.ts";
import { classifyFailure } from "../../models/failure.ts";
import type { RouterDecision } from "../../protocol/message.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Env } from "../../shared/env.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { fault } from "../../shared/fault.ts";
import { log as logger } from "../../shared/log.ts";
import type { Timers } from "../../timers/timers.ts";
import {
  deadmanMs,
  maxRouterAgents,
  maxRouterAnswerCharacters,
  maxRouterAsks,
  maxRouterHeld,
  maxRouterMessages,
  maxRouterTries,
  routerOutputTokens,
  routerTimeoutMs,
} from "../bounds.ts";
import { type Log, type LogRow, messageOf, type NewEvent } from "../log.ts";
import type { Members } from "../members.ts";
import type { Settings } from "../settings.ts";
import { wakesIn } from "./answer.ts";
import type { Decisions } from "./decisions.ts";
import { Descriptions } from "./descriptions.ts";
import { openSecret } from "./open-secret.ts";
import { Patience } from "./patience.ts";
import { type RoutedAgent, routerPrompt } from "./prompt.ts";
import type { RouterLedger } from "./router-ledger.ts";

/**
 * Has the space's model decide which agents a message wakes that addresses nobody.
 *
 * Invariants
 * 1. The poster never waits for it; delivery does. From a message's turn on that is no longer than `routerPatienceMs` and
 *    one more ask of `routerTimeoutMs`, unless the object crashes.
 * 2. A message is decided once, together with the event in the log that says so; what fails wakes nobody.
 * 3. While a message is undecided the timer `route` is set, since the transaction that stored it; so after a crash it
 *    is asked about again without any outside call, `maxRouterTries` times in all. The same timer ends a rest that a
 *    passing fault of the model began (`patience.ts`); an ask that took all its time is not repeated.
 * 4. Messages are asked about in the log's order, `maxRouterAsks` at a time. Of `maxRouterHeld` each has its turn; one
 *    that finds as many undecided before it fails at once.
 */
export const routeTimer = "route";

type Surroundings = {
  ctx: Pick<DurableObjectState, "waitUntil" | "abort"> & { storage: Pick<DurableObjectStorage, "sync"> };
  env: Env;
  timers: Timers;
  clock: Clock;
  settings: Settings;
  members: Members;
  log: Log;
  decisions: Decisions;
  ledger: RouterLedger;
  /** The one way into the log. */
  record: (write: (append: (event: NewEvent) => LogRow) => void) => void;
};

export class Router {
  readonly #around: Surroundings;
  readonly #descriptions: Descriptions;
  readonly #running = new Map<number, AbortController>();
  readonly #patience = new Patience();

  constructor(surroundings: Surroundings) {
    this.#around = surroundings;
    this.#descriptions = new Descriptions(surroundings.env.AGENT, surroundings.clock);
  }

  /** The message at `seq` waits for a decision. Belongs in the transaction that stores it. */
  hold(seq: number): void {
    const { decisions, timers, clock } = this.#around;
    decisions.hold(seq);
    timers.setNoLater(routeTimer, clock.now() + deadmanMs);
  }

  /** Asks about the messages that are undecided and not asked about yet, as many as may be now. */
  wake(): void {
    const { decisions, timers, clock, ctx } = this.#around;
    const restsUntil = this.#patience.restsUntil();
    const rests = restsUntil > clock.now();
    const pending = decisions.pending();
    for (const [before, seq] of pending.entries()) {
      const hasNoRoom = before >= maxRouterHeld;
      const waits = rests || this.#running.size >= maxRouterAsks;
      if (this.#running.has(seq) || (waits && !hasNoRoom)) continue;
      const controller = new AbortController();
      this.#running.set(seq, controller);
      ctx.waitUntil(this.#route(seq, controller, hasNoRoom));
    }
    if (rests && pending.length > 0) timers.setNoLater(routeTimer, restsUntil);
  }

  /** The timer `route` went off. */
  onTimer(): void {
    const { decisions, timers, clock } = this.#around;
    if (decisions.pending().length === 0) return;
    timers.set(routeTimer, clock.now() + deadmanMs);
    this.wake();
  }

  /** The space is over: what is undecided wakes nobody, and no event says so. Belongs in the transaction that ends it. */
  giveUp(): void {
    const { decisions, timers, clock } = this.#around;
    const reason = new ColloquyError("gone", "The space was deleted");
    for (const seq of decisions.pending()) {
      decisions.decide(seq, { ...failed(reason), at: clock.now() });
      this.#running.get(seq)?.abort(reason);
    }
    timers.clear(routeTimer);
  }

  async #route(seq: number, controller: AbortController, hasNoRoom: boolean): Promise<void> {
    const { ctx, clock, decisions } = this.#around;
    const startedAt = clock.now();
    try {
      const decision = hasNoRoom ? failed(noRoom()) : await this.#decide(seq, controller);
      fault("space.before-decision", ctx);
      if (decision) this.#store(seq, decision, startedAt);
      else decisions.putOff(seq);
      this.#running.delete(seq);
      this.wake();
    } catch (error) {
      logger.error("router.broke", error, { seq });
    } finally {
      this.#running.delete(seq);
    }
  }

  /** What is to become of the message, a lasting failure too; undefined where it is to be asked about again after a rest. */
  async #decide(seq: number, controller: AbortController): Promise<RouterDecision | undefined> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const error = new ColloquyError("model_stalled", `The router did not decide within ${routerTimeoutMs} ms`);
      late.reject(error);
      controller.abort(error);
    }, routerTimeoutMs);
    try {
      const agents = await Promise.race([this.#ask(seq, controller.signal), late.promise]);
      this.#patience.answered();
      return { outcome: agents.length > 0 ? "woke" : "nobody", agents };
    } catch (error) {
      return !controller.signal.aborted && this.#isLeft(seq, error) ? undefined : failed(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whether what an ask ended with passes, and the message is to be asked about again then. */
  #isLeft(seq: number, error: unknown): boolean {
    const { clock, log } = this.#around;
    const { code, terminal, retryAfterMs } = classifyFailure(error, clock.now());
    const row = log.at(seq);
    // `interrupted` says that it was tried often enough.
    if (terminal || code === "interrupted" || !row) return false;
    const postedAt = Date.parse(messageOf(row.frame).createdAt);
    const isLeft = this.#patience.isLeftAfterFault(clock.now(), postedAt, retryAfterMs);
    if (isLeft) logger.warn("router.rests", { seq, code, until: this.#patience.restsUntil() });
    return isLeft;
  }

  async #ask(seq: number, signal: AbortSignal): Promise<string[]> {
    const { settings, members, log, decisions, ledger, clock, env } = this.#around;
    const space = settings.find();
    const row = log.at(seq);
    if (!space || !row) throw new Error(`router: there is no message at ${seq}`);
    if (decisions.begin(seq) > maxRouterTries) {
      throw new ColloquyError("interrupted", `The router was cut off ${maxRouterTries} times (maxRouterTries)`);
    }
    if (!space.router) throw new ColloquyError("gone", "The space has no router any more");
    const config = space.router;
    const those = members.all().filter(({ type }) => type === "agent");
    const known = those.slice(0, maxRouterAgents).map(({ entityId: id, name }) => ({ id, name }));
    const messages = log.messages({ over: row.messageCount - maxRouterMessages, upTo: row.messageCount });
    const descriptions = await this.#descriptions.of(
      space.workspaceId,
      known.map(({ id }) => id),
    );
    signal.throwIfAborted();
    const agents: RoutedAgent[] = known.map((agent) => ({ ...agent, description: descriptions.get(agent.id) ?? "" }));
    const prompt = routerPrompt({ space, instructions: config.instructions, agents, messages });
    const text = await askModel({
      env,
      openSecret: (name) => openSecret(env, space.workspaceId, name, signal),
      config: config.model,
      prompt,
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

  #store(seq: number, decision: RouterDecision, startedAt: number): void {
    const { decisions, timers, clock, log, record } = this.#around;
    const row = log.at(seq);
    // Whoever was first has decided: the space's end, or a try before this one.
    if (!row || !decisions.pending().includes(seq)) return;
    const { id: messageId, spaceId } = messageOf(row.frame);
    record((append) => {
      decisions.decide(seq, { ...decision, at: clock.now() });
      append({ type: "message.routed", messageId, ...decision });
    });
    if (decisions.pending().length === 0) timers.clear(routeTimer);
    const { outcome, agents, error } = decision;
    const fields = { spaceId, messageId, outcome, agents: agents.length, durationMs: clock.now() - startedAt };
    if (error) logger.warn("router.failed", { ...fields, code: error.code, reason: error.message });
    else logger.info("router.decided", fields);
  }
}

const noRoom = (): ColloquyError =>
  new ColloquyError(
    "limit_reached",
    `The router has ${maxRouterHeld} messages to decide about, which is the most (maxRouterHeld): mention whom you mean`,
  );

const failed = (error: unknown): RouterDecision => {
  const { code, message } = classifyFailure(error);
  return { outcome: "failed", agents: [], error: { code, message } };
};
