import * as z from "zod";
import type { Env } from "../env/env.ts";
import type { LineEvent } from "../protocol/line.ts";
import type { Principal } from "../protocol/principal.ts";
import { systemClock } from "../shared/clock.ts";
import { openDatabase } from "../shared/database.ts";
import { createAuthenticatedSockets, credentialName, credentialsUntil } from "../sockets/authenticated-sockets.ts";
import { createRateWindow, type RateWindow } from "../sockets/rate-window.ts";
import { createTimers } from "../timers/timers.ts";
import { lineProofAnswerMs, lineProofLeadMs, lineProofMs, lineWindowMs, maxLineFrames } from "./bounds.ts";
import { createKnownSpaces } from "./known-spaces.ts";
import { createNotifications } from "./notifications.ts";
import { createSubscriptions } from "./subscriptions.ts";

export const linesTimer = "lines";
/** Spaces that could not be asked how they stand are asked again. */
export const askTimer = "ask";

const Data = z.object({ entityId: z.string() });

/** Whether a line may carry what is said in confidential spaces. A session that another made for the person is not the person's own (C19). */
export const readsConfidential = (principal: Principal): boolean =>
  principal.kind === "key" || principal.impersonatedBy === undefined;

/** The parts of a person over their database. The modules beside this one act on them. */
export const createServices = (ctx: DurableObjectState, env: Env) => {
  const clock = systemClock;
  const db = openDatabase(ctx.storage);
  const timers = createTimers(db, ctx.storage, clock);
  const sockets = createAuthenticatedSockets({
    ctx,
    timers,
    clock,
    timer: linesTimer,
    data: Data,
    proofMs: lineProofMs,
    proofLeadMs: lineProofLeadMs,
    proofAnswerMs: lineProofAnswerMs,
    isTold: ({ kind }) => kind === "entity",
    proofName: ({ principal }) => credentialName(principal),
    // Under its name, by which the workspace reaches it when credentials end.
    prove: ({ principal, data }) =>
      credentialsUntil(env.WORKSPACE.getByName(principal.workspaceId), principal, data.entityId),
  });
  const spaces = createKnownSpaces(db);
  const rates = new WeakMap<WebSocket, RateWindow>();

  return {
    ...{ env, clock, db, timers, sockets },
    spaces,
    notifications: createNotifications(db),
    subscriptions: createSubscriptions(env.SPACE),
    /** Lines that are being opened: they count as open for what spaces are told. */
    opening: new Set<symbol>(),

    ratesOf(socket: WebSocket): RateWindow {
      const known = rates.get(socket) ?? createRateWindow(maxLineFrames, lineWindowMs);
      rates.set(socket, known);
      return known;
    },

    /** Changes what is known of a space, in a transaction, and tells the lines what is new. */
    change(spaceId: string, work: () => LineEvent[]): void {
      const before = spaces.find(spaceId);
      const events = db.transaction(work);
      const isConfidential = (spaces.find(spaceId) ?? before)?.summary.confidential === true;
      for (const event of events) {
        sockets.broadcast(JSON.stringify(event), ({ principal }) => !isConfidential || readsConfidential(principal));
      }
    },
  };
};

export type PersonServices = ReturnType<typeof createServices>;
