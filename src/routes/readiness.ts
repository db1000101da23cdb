import * as z from "zod";
import type { Env } from "../env/env.ts";
import { systemClock } from "../shared/clock.ts";
import type { Outcome } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { Resource } from "./route.ts";

/** How long an object may take to answer. */
const probeMs = 2000;
/** How long an answer is given again: asking often costs nothing more. */
const keptMs = 5000;

/** Names an object of each class that was never created: it says so, and stores nothing. */
const probe = "readyz";
const nobody = { kind: "key", workspaceId: probe, keyId: probe } as const;
const probes: Record<string, (env: Env) => Promise<Outcome<unknown>>> = {
  workspace: ({ WORKSPACE }) => WORKSPACE.getByName(probe).describe(),
  space: ({ SPACE }) => SPACE.getByName(probe).describe(nobody),
  agent: ({ AGENT }) => AGENT.getByName(probe).describe(probe),
  endpoint: ({ ENDPOINT }) => ENDPOINT.getByName(probe).forgetAnswers(probe),
};

const Readiness = z.object({
  ready: z.boolean(),
  checkedAt: z.iso.datetime(),
  kinds: z.record(z.string(), z.object({ ready: z.boolean(), ms: z.number() })),
});
type Readiness = z.infer<typeof Readiness>;

const check = async (env: Env): Promise<Readiness> => {
  const now = systemClock.now();
  const asked = Object.entries(probes).map(async ([kind, ask]) => {
    const ready = await withTimeout(probeMs, ask(env)).then(
      (answer) => !answer.ok && answer.problem.code === "not_found",
      (error: unknown) => {
        log.warn("probe.failed", { kind, reason: String(error) });
        return false;
      },
    );
    return [kind, { ready, ms: systemClock.now() - now }] as const;
  });
  const kinds = Object.fromEntries(await Promise.all(asked));
  const ready = Object.values(kinds).every((kind) => kind.ready);
  return { ready, checkedAt: new Date(now).toISOString(), kinds };
};

let last: { answer: Readiness; until: number } | undefined;

export const readiness = new Resource("Deployment");

const content = { "application/json": { schema: Readiness } };
readiness.route("GET /readyz", {
  summary: "Whether each kind of object answers",
  description: `One object of each kind is asked, for at most ${probeMs} ms. An answer is given again for ${keptMs / 1000} s.`,
  access: "public",
  responses: {
    200: { description: "All do, and how long each took", content },
    503: { description: "Not all do", content },
  },
  handle: async ({ context: { env } }) => {
    const now = systemClock.now();
    if (!last || last.until <= now) {
      // A request that comes during the check gets the last answer.
      if (last) last.until = now + probeMs;
      last = { answer: await check(env), until: systemClock.now() + keptMs };
    }
    return Response.json(last.answer, { status: last.answer.ready ? 200 : 503 });
  },
});
