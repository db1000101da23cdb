import type { UsageRow } from "../../protocol/usage.ts";
import { isoTime } from "../../shared/clock.ts";
import { maxAgentBytes } from "../bounds.ts";
import type { Identity } from "../identity.ts";
import { mindOf } from "../identity.ts";
import type { Ledger } from "../ledger.ts";
import type { Runs } from "../runs.ts";
import { unasked } from "../tokens.ts";

/** Runs that are counted at a time. */
const runsAtOnce = 500;

/**
 * The use that this mind tells its workspace: its ledger's tokens, and the runs that it began. The tokens of
 * compartments are in the open mind's ledger; they tell their runs themselves.
 */
export const usageOf = (identity: Identity, ledger: Ledger, runs: Runs, bytes: () => number) => ({
  bytes,
  bound: {
    name: "maxAgentBytes",
    bytes: maxAgentBytes,
    what: "This mind of the agent",
    remedy: "delete archival entries, blocks, or spaces that it was in, or make a new agent",
  },

  self: () => {
    const agent = identity.find();
    return agent && { workspaceId: agent.workspaceId, reporter: mindOf(agent) };
  },

  tokens: (): UsageRow[] =>
    ledger.used().flatMap(({ day, of, tokens }): UsageRow[] => {
      if (of === unasked) return [];
      if (of === null) return [[day, "all", identity.get().id, tokens]];
      return [[day, of.startsWith("spc_") ? "space" : "person", of, tokens]];
    }),

  count: (after: number): { upTo: number; rows: UsageRow[] } | undefined => {
    const { id, createdAt } = identity.get();
    const begun = runs.begunAfter(after, createdAt, runsAtOnce);
    const last = begun.at(-1);
    if (!last) return undefined;
    const counts = new Map<string, number>();
    for (const { person, trigger, startedAt } of begun) {
      const day = isoTime(startedAt).slice(0, 10);
      const places = [`all ${id}`, person && `person ${person}`, trigger.spaceId && `space ${trigger.spaceId}`];
      for (const place of places) if (place) counts.set(`${day} ${place}`, (counts.get(`${day} ${place}`) ?? 0) + 1);
    }
    const rows = [...counts].map(([key, count]): UsageRow => {
      const [day = "", kind, subject = ""] = key.split(" ");
      return [day, kind === "person" || kind === "space" ? kind : "all", subject, count];
    });
    return { upTo: last.ordinal, rows };
  },
});
