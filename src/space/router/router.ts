import { ExpiringMap } from "../../auth/expiring-map.ts";
import { unsealFor } from "../../auth/sealing.ts";
import type { Env } from "../../env/env.ts";
import { askModel } from "../../models/ask-model.ts";
import { classifyFailure, withoutQuote } from "../../models/failure.ts";
import type { RouterDecision } from "../../protocol/message.ts";
import type { SecretUse } from "../../protocol/secret.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { type Crashable, fault } from "../../shared/fault.ts";
import { log as logger } from "../../shared/log.ts";
import { settledWithin, unlessAborted } from "../../shared/timeouts.ts";
import type { Jobs } from "../../timers/jobs.ts";
import {
  describeWaitMs,
  descriptionsKeptMs,
  maxRouterAgents,
  maxRouterAnswerCharacters,
  maxRouterAsks,
  maxRouterHeld,
  maxRouterMessages,
  maxRouterTries,
  routerOutputTokens,
  routerTimeoutMs,
  suspendedLookMs,
} from "../bounds.ts";
import { type Append, type Log, type LogRow, messageOf } from "../log/log.ts";
import type { Members } from "../members.ts";
import type { Settings } from "../settings.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { Decisions } from "./decisions.ts";
import { routerPrompt, wakesIn } from "./prompt.ts";
import { createRouterLease } from "./router-lease.ts";
import type { RouterLedger } from "./router-ledger.ts";

const kind = "route";

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
  /** A secret of the workspace goes there. */
  noteSecretUsed: (name: string, use: SecretUse) => void;
};

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
export const createRouter = (surroundings: Surroundings) => {
  const { ctx, env, jobs, clock, settings, members, log, decisions, ledger, record, noteSecretUsed } = surroundings;
  const breaker = new CircuitBreaker();
  const lease = createRouterLease({ env, clock, settings, ledger });
  /** The agents' own descriptions, by id. */
  const descriptions = new ExpiringMap<string>(descriptionsKeptMs, maxRouterAgents, clock);

  const decided = (append: Append, { seq, frame }: LogRow, decision: RouterDecision, startedAt?: number): void => {
    const now = clock.now();
    const { id: messageId, spaceId } = messageOf(frame);
    decisions.decide(seq, { ...decision, at: now });
    append({ type: "message.routed", messageId, ...decision });
    const { outcome, agents, error } = decision;
    const fields = { spaceId, messageId, outcome, agents: agents.length, durationMs: now - (startedAt ?? now) };
    // Its reason may hold the words of a provider, who was told what is said (C19).
    if (error) logger.warn("router.failed", { ...fields, code: error.code });
    else logger.info("router.decided", fields);
  };

  /** Asks the agents whose descriptions are not known. Those that do not answer in time have none. */
  const describe = async (workspaceId: string, ids: string[]): Promise<void> => {
    const ask = async (id: string): Promise<void> => {
      const described = await env.AGENT.getByName(id).describe(workspaceId);
      if (described.ok) descriptions.set(id, described.value.config.description);
    };
    const missing = ids.filter((id) => descriptions.get(id) === undefined);
    if (missing.length > 0) await settledWithin(describeWaitMs, Promise.allSettled(missing.map(ask)));
  };

  const ask = async (row: LogRow, signal: AbortSignal): Promise<string[]> => {
    const space = settings.find();
    if (!space?.router) throw new ColloquyError("gone", "The space has no router any more");
    const { workspaceId } = space;
    const { model, instructions, maxTokensPerDay } = space.router;
    const those = members.all().filter(({ type }) => type === "agent");
    const known = those.slice(0, maxRouterAgents).map(({ entityId: id, name }) => ({ id, name }));
    const messages = log.messages({ over: row.messageCount - maxRouterMessages, upTo: row.messageCount });
    const ids = known.map(({ id }) => id);
    await describe(workspaceId, ids);
    signal.throwIfAborted();
    const agents = known.map((agent) => ({ ...agent, description: descriptions.get(agent.id) ?? "" }));
    const text = await askModel({
      env,
      unsealSecret: async (name, use) => {
        const secrets = unwrap(await env.WORKSPACE.getByName(workspaceId).sealedSecrets());
        const sealed = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
        signal.throwIfAborted();
        if (sealed === undefined) return undefined;
        const opened = await unsealFor(env, workspaceId, name, sealed, { ...use, agentId: undefined });
        noteSecretUsed(name, use);
        return opened;
      },
      config: model,
      prompt: routerPrompt({ space, instructions, agents, messages }),
      maxOutputTokens: routerOutputTokens,
      maxCharacters: { name: "maxRouterAnswerCharacters", characters: maxRouterAnswerCharacters },
      signal,
      reserve: (tokens) =>
        lease(tokens, () => {
          const settle = ledger.reserve(clock.now(), tokens, maxTokensPerDay);
          if (settle) return settle;
          throw new ColloquyError(
            "budget_exhausted",
            `The router's maxTokensPerDay (${maxTokensPerDay}) does not allow this call; the day ends at 00:00 UTC`,
          );
        }),
    });
    const wakes = wakesIn(text, agents);
    if (wakes) return wakes;
    throw new ColloquyError("model_nonsense", 'The router\'s model did not answer JSON such as {"wake": []}');
  };

  /** Whether the fault of an ask passes, and the message is to be asked about again then. */
  const asksAgain = ({ seq, frame }: LogRow, error: unknown): boolean => {
    const now = clock.now();
    const { code, terminal, retryAfterMs } = classifyFailure(error, now);
    const postedAt = Date.parse(messageOf(frame).createdAt);
    const again = !terminal && breaker.opensFor(now, postedAt, retryAfterMs);
    if (again) logger.warn("router.rests", { seq, code, until: breaker.openUntil() });
    return again;
  };

  /** The decision, which may be a lasting failure. Undefined where the message is to be asked about again after a pause. */
  const decide = async (row: LogRow, dropped: AbortSignal): Promise<RouterDecision | undefined> => {
    const late = new AbortController();
    const error = new ColloquyError("model_stalled", `The router did not decide within ${routerTimeoutMs} ms`);
    const timer = setTimeout(() => late.abort(error), routerTimeoutMs);
    const signal = AbortSignal.any([dropped, late.signal]);
    try {
      const agents = await unlessAborted(signal, ask(row, signal));
      if (breaker.openUntil() > clock.now()) jobs.hurry(kind);
      breaker.close();
      return { outcome: agents.length > 0 ? "woke" : "nobody", agents };
    } catch (error) {
      return !signal.aborted && asksAgain(row, error) ? undefined : failed(error);
    } finally {
      clearTimeout(timer);
    }
  };

  const route = async (seq: number, attempts: number, signal: AbortSignal): Promise<number | undefined> => {
    const row = log.at(seq);
    const isUndecided = (): boolean => decisions.pending().includes(seq);
    // A crash came between the decision and the end of the job.
    if (!row || !isUndecided()) return undefined;
    const startedAt = clock.now();
    if (settings.find()?.suspended) return startedAt + suspendedLookMs;
    if (breaker.openUntil() > startedAt) return breaker.openUntil();
    // Nobody is woken by what was deleted.
    if (row.routing === null) {
      record((append) => decided(append, row, { outcome: "nobody", agents: [] }));
      return undefined;
    }
    const decision = attempts > maxRouterTries ? failed(interrupted()) : await decide(row, signal);
    fault("space.before-decision", ctx);
    if (!decision) return breaker.openUntil();
    // The space may have ended meanwhile.
    if (isUndecided()) record((append) => decided(append, row, decision, startedAt));
    return undefined;
  };

  jobs.handle(kind, {
    atOnce: maxRouterAsks,
    run: ({ key, attempts }, signal) => route(Number(key), attempts, signal),
  });

  return {
    /** The message in this row waits for a decision. Belongs in the transaction that stores it. */
    hold(append: Append, row: LogRow): void {
      const hasRoom = decisions.pending().length < maxRouterHeld;
      decisions.hold(row.seq);
      if (hasRoom) jobs.set({ kind, key: String(row.seq), dueAt: Math.max(clock.now(), breaker.openUntil()) });
      else decided(append, row, failed(noRoom()));
    },

    /** The workspace goes on after a suspension. */
    resume: (): void => jobs.hurry(kind),

    /** Decides in a transaction that waiting messages wake nobody. `append` writes an event of each decision. */
    giveUp(reason: ColloquyError, append?: Append): void {
      for (const seq of decisions.pending()) {
        const row = append && log.at(seq);
        if (row) decided(append, row, failed(reason));
        else decisions.decide(seq, { ...failed(reason), at: clock.now() });
        jobs.drop(kind, String(seq), reason);
      }
    },
  };
};

const interrupted = (): ColloquyError =>
  new ColloquyError("interrupted", `The router was cut off ${maxRouterTries} times (maxRouterTries)`);

const noRoom = (): ColloquyError =>
  new ColloquyError(
    "limit_reached",
    `The router has ${maxRouterHeld} messages to decide about, which is the most (maxRouterHeld): mention whom you mean`,
  );

/** A decision is told for ever: a provider's own words may quote messages that are edited or deleted later (L1). */
const failed = (error: unknown): RouterDecision => {
  const { code, message } = classifyFailure(error);
  return { outcome: "failed", agents: [], error: { code, message: withoutQuote(message) } };
};
