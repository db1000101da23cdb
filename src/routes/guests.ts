import * as z from "zod";
import {
  ClaimedRun,
  ClaimRun,
  CompleteRun,
  DeclaredTool,
  FailRun,
  GuestCall,
  GuestCallAnswer,
  GuestSpeech,
  RenewClaim,
  SkipRun,
  SpeechLine,
  thinksHere,
} from "../protocol/guest.ts";
import type { Principal } from "../protocol/principal.ts";
import { Run } from "../protocol/run.ts";
import { Timestamp } from "../protocol/text.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { admit, requireStill } from "./access.ts";
import { serveGuest } from "./guest-socket.ts";
import type { HttpContext } from "./http-context.ts";
import { askedSpace, requireReader } from "./mind-query.ts";
import { Resource } from "./route.ts";
import { streamQuery } from "./route-parts.ts";
import { requireUpgrade } from "./stream.ts";

/** A guest's program has the runs of its own agent. */
const requireOwn = (principal: Principal, agentId: string): void => {
  if (principal.kind === "key" || principal.entityId === agentId) return;
  throw new ColloquyError("forbidden", "This token is another agent's: a guest has its own runs alone.");
};

/** Refuses a caller who no longer reads the confidential space that they named (C19). */
const requireStillReads = async (context: HttpContext): Promise<void> => {
  const space = askedSpace(context.req.query());
  if (space !== undefined) await requireReader(context, space);
};

/** Refuses a caller who may have nothing of the agent any more: what they asked for took its time (L7). */
const requireCaller = (context: HttpContext): Promise<unknown> =>
  Promise.all([requireStill(context, "guest"), requireStillReads(context)]);

/** How long a speech goes on before its caller is looked at again. */
const proofMs = 1000;

/** The lines of a speech. They break off once its caller may say nothing here any more (S5). */
const whileAllowed = (context: HttpContext, lines: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> => {
  let provenAt = systemClock.now();
  const transform: Transformer<Uint8Array, Uint8Array>["transform"] = async (chunk, controller) => {
    if (systemClock.now() - provenAt >= proofMs) {
      const [proof] = await Promise.allSettled([requireCaller(context)]);
      if (proof.status === "rejected") return controller.terminate();
      provenAt = systemClock.now();
    }
    controller.enqueue(chunk);
  };
  return lines.pipeThrough(new TransformStream({ transform }));
};

/** Where a speech comes, word by word. */
export const speechPath = /^\/v1\/agents\/[^/]+\/runs\/[^/]+\/speech$/;

const OneRun = z.object({ run: Run });
const inRun = ["not_found", "conflict", "gone", "limit_reached"] as const;

/** For programs that think for guest agents: claim a run, act in it, end it. */
export const guests = new Resource("Guests");

guests.route("POST /v1/agents/{agentId}/claims", {
  summary: "Claim a run of a guest agent",
  description:
    "Waits up to `waitSeconds` for one. The claim holds for 60 s, and each call in the run renews it. Who is silent for longer loses the run to the next claim, which is told what was done in it.",
  access: "guest",
  mind: true,
  body: ClaimRun,
  responses: {
    200: { description: "The run", content: { "application/json": { schema: ClaimedRun } } },
    204: { description: "No run came in that time" },
  },
  problems: ["not_found", "conflict", "limit_reached"],
  handle: async ({ context, principal, params, agent, body }) => {
    requireOwn(principal, params.agentId);
    const claimed = await agent.claimRun(body);
    // A caller whose right has ended meanwhile does not get the run. The next claim gets it, once the lease is over.
    if (claimed) await requireCaller(context);
    return claimed ? context.json(claimed) : new Response(null, { status: 204 });
  },
});

guests.route("GET /v1/agents/{agentId}/toolset", {
  summary: "The tools of a guest agent",
  description: "As the next claim would tell them. Claims no run.",
  access: "guest",
  mind: true,
  answers: [z.object({ items: z.array(DeclaredTool) }), "The tools"],
  problems: ["not_found", "conflict"],
  handle: async ({ principal, params, agent }) => {
    requireOwn(principal, params.agentId);
    return { items: await agent.toolset() };
  },
});

guests.route("POST /v1/agents/{agentId}/runs/{runId}/calls", {
  summary: "Call a tool in a claimed run",
  description:
    "It is checked, executed, shown and journaled as a house agent's. The same `key` again is the same call, and answers what came of it.",
  access: "guest",
  mind: true,
  body: GuestCall,
  answers: [GuestCallAnswer, "The call, with its output"],
  problems: [...inRun, "idempotency_mismatch", "payload_too_large"],
  handle: async ({ context, principal, params, agent, body }) => {
    requireOwn(principal, params.agentId);
    const answer = await agent.callInRun(params.runId, body);
    await requireCaller(context);
    return answer;
  },
});

guests.route("POST /v1/agents/{agentId}/runs/{runId}/speech", {
  summary: "Say something in a claimed run, word by word",
  description:
    '`send_message`, of which people see the words grow. Each line of the body is `{"delta": "words"}`, the last one `{"done": true}`: what breaks off before it is not said.',
  access: "guest",
  mind: true,
  query: GuestSpeech,
  ownBody: { "application/x-ndjson": { schema: SpeechLine } },
  answers: [GuestCallAnswer, "The call, with its output"],
  problems: [...inRun, "idempotency_mismatch", "text_too_long", "interrupted"],
  handle: async ({ context, principal, params, agent, query }) => {
    requireOwn(principal, params.agentId);
    const lines = context.req.raw.body ?? new Blob([]).stream();
    return agent.speakInRun(params.runId, query, whileAllowed(context, lines));
  },
});

const ends = {
  complete: [CompleteRun, "Complete a claimed run", "Its `summary` is read by the agent's own later runs alone."],
  skip: [
    SkipRun,
    "End a claimed run in silence",
    "A `consciousness` skips by its run's first act, which leaves nothing of the run.",
  ],
  fail: [FailRun, "Give a claimed run up", "Its events are tried again, and are dead after five failures."],
} as const;

for (const kind of ["complete", "skip", "fail"] as const) {
  const [body, summary, description] = ends[kind];
  guests.route(`POST /v1/agents/{agentId}/runs/{runId}/${kind}`, {
    ...{ summary, description, body },
    access: "guest",
    mind: true,
    answers: [OneRun, "The run"],
    problems: [...inRun, "tool_rule_broken", "skip_too_late"],
    handle: async ({ principal, params, agent, body: end }) => {
      requireOwn(principal, params.agentId);
      return { run: await agent.endRun(params.runId, { kind, ...end } as Parameters<typeof agent.endRun>[1]) };
    },
  });
}

guests.route("POST /v1/agents/{agentId}/runs/{runId}/renew", {
  summary: "Keep a claimed run for 60 s more",
  description: "For a program that thinks for longer between two calls.",
  access: "guest",
  mind: true,
  body: RenewClaim,
  answers: [z.object({ leaseUntil: Timestamp }), "Until when it holds"],
  problems: [...inRun],
  handle: async ({ principal, params, agent, body }) => {
    requireOwn(principal, params.agentId);
    return agent.renewClaim(params.runId, body.lease);
  },
});

guests.route("GET /v1/agents/{agentId}/runtime", {
  summary: "All of it on one WebSocket",
  description:
    "Frames are JSON objects with `type` and `id`: `claim` (answered once there is a run), `call`, `speech` with `speech.delta` and `speech.done`, `complete`, `skip`, `fail`, `renew`, each with `runId` and the fields of its address. Answers have the same `id`: `claimed`, `answer`, `ended`, `renewed` or `error`.",
  access: "guestStream",
  mind: true,
  query: streamQuery,
  responses: { 101: { description: "The socket" } },
  problems: ["not_found", "conflict", "upgrade_required", "invalid_request"],
  handle: async ({ context, principal, params, agent }) => {
    const prove = async (): Promise<void> => {
      await admit(context, "guestStream", []);
      requireOwn(context.var.principal, params.agentId);
      await requireStillReads(context);
    };
    requireOwn(principal, params.agentId);
    const { config } = await agent.describe();
    if (config.runtime !== "guest") throw new ColloquyError("conflict", thinksHere);
    // A key that only reads is let in by the method.
    await prove();
    const holds = (): Promise<void> => requireStill(context, "guestStream");
    requireUpgrade(context, "claim by POST …/claims");
    const [client, server] = Object.values(new WebSocketPair());
    if (!client || !server) throw new Error("a WebSocketPair is two sockets");
    serveGuest(server, agent, { prove, holds, reads: () => requireStillReads(context) });
    return new Response(null, { status: 101, webSocket: client });
  },
});
