import * as z from "zod";
import type { Env } from "../env/env.ts";
import type { LineEvent } from "../protocol/line.ts";
import type { PersonDelivery } from "../protocol/person-rpc.ts";
import type { Principal } from "../protocol/principal.ts";
import { systemClock } from "../shared/clock.ts";
import { hasSchema, openDatabase } from "../shared/database.ts";
import { createAuthenticatedSockets, credentialName, credentialsUntil } from "../sockets/authenticated-sockets.ts";
import { createRateWindow, type RateWindow } from "../sockets/rate-window.ts";
import { createJobs } from "../timers/jobs.ts";
import { createTimers } from "../timers/timers.ts";
import { lineProofAnswerMs, lineProofLeadMs, lineProofMs, lineWindowMs, maxLineFrames } from "./bounds.ts";
import { createDevices } from "./devices.ts";
import { createKnownSpaces } from "./known-spaces.ts";
import { createNotifications } from "./notifications.ts";
import { createPeople } from "./people.ts";
import { createPushes } from "./pushes.ts";
import { createPushing } from "./pushing.ts";
import { createSubscriptions } from "./subscriptions.ts";

export const linesTimer = "lines";

/** `lookedAt`: when the line said last that its page is looked at; left out: it is not. */
const Data = z.object({ entityId: z.string(), lookedAt: z.number().optional() });

/** Whether a line may carry what is said in confidential spaces. A session that another made for the person is not the person's own (C19). */
export const readsConfidential = (principal: Principal): boolean =>
  principal.kind === "key" || principal.impersonatedBy === undefined;

type OfSpace = Pick<PersonDelivery, "spaceId" | "confidential">;

/** The parts of a person over their database. The modules beside this one act on them. */
export const createServices = (ctx: DurableObjectState, env: Env, forgot: () => void) => {
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
  const people = createPeople(db, () => hasSchema(ctx.storage));
  const waitUntil = (work: Promise<void>): void => ctx.waitUntil(work);
  const jobs = createJobs({ db, timers, clock, waitUntil, object: ctx.id.toString() });
  const devices = createDevices(db, clock);
  const [pushes, notifications] = [createPushes(db, clock), createNotifications(db)];
  const rates = new WeakMap<WebSocket, RateWindow>();

  return {
    ...{ env, clock, db, timers, jobs, sockets, people, spaces, notifications, devices, pushes },
    pushing: createPushing({ env, db, clock, jobs, people, devices, pushes, notifications, forgot, object: ctx }),
    subscriptions: createSubscriptions(env.SPACE),
    /** Lines that are being opened: they count as open for what spaces are told. */
    opening: new Set<symbol>(),

    /** When the client of a line pinged last; 0 where it has not. */
    pingedAt: (socket: WebSocket): number => ctx.getWebSocketAutoResponseTimestamp(socket)?.getTime() ?? 0,

    ratesOf(socket: WebSocket): RateWindow {
      const known = rates.get(socket) ?? createRateWindow(maxLineFrames, lineWindowMs);
      rates.set(socket, known);
      return known;
    },

    /** Changes what is known of a space, in a transaction, and tells the lines what is new. `confidential`: also of one that is unknown. */
    change({ spaceId, confidential }: OfSpace, work: () => LineEvent[]): void {
      const before = spaces.find(spaceId);
      const events = db.transaction(work);
      const isConfidential = confidential ?? (spaces.find(spaceId) ?? before)?.summary.confidential;
      for (const event of events) {
        sockets.broadcast(JSON.stringify(event), ({ principal }) => !isConfidential || readsConfidential(principal));
      }
    },
  };
};

export type PersonServices = ReturnType<typeof createServices>;
