import { embedderIdOf, resolveEmbedder } from "../../../models/embedders/embedders.ts";
import type { Database } from "../../../shared/database.ts";
import type { Env } from "../../../shared/env.ts";
import { unwrap } from "../../../shared/errors.ts";
import type { Timers } from "../../../timers/timers.ts";
import type { Parts } from "../../run/parts.ts";
import { builtinNames } from "../../tools/registry.ts";
import { knownName } from "../../transfer/known-names.ts";
import { livedElsewhere } from "../../transfer/lived-elsewhere.ts";
import type { Archival } from "../archival.ts";
import { bookedEmbedder } from "./booked-embedder.ts";
import { Search } from "./search.ts";

type Needed = Pick<
  Parts,
  "clock" | "identity" | "spaces" | "journal" | "runs" | "ledger" | "blocks" | "transaction"
> & {
  archival: () => Archival;
  openSecret: (name: string) => Promise<string | undefined>;
};

/** A label may be used again: its versions begin anew, its times do not. */
const versionOf = ({ updatedAt, version }: { updatedAt: number; version: number }): number =>
  updatedAt * 1000 + (version % 1000);

/** The agent's search, over what its other parts keep. */
export const openSearch = (db: Database, env: Env, timers: Timers, parts: Needed): Search => {
  const { clock, identity, spaces, journal, runs, ledger, blocks, transaction, openSecret } = parts;
  const config = () => identity.get().config;
  return new Search(
    {
      clock,
      timers,
      transaction,
      agent: () => ({ id: identity.get().id, name: config().name }),
      spaces: () =>
        spaces.followed().map(({ id, cursor, snapshot }) => ({
          id,
          cursor,
          name: snapshot.name,
          memberName: (memberId) => snapshot.members.find((member) => member.id === memberId)?.name,
        })),
      knownName: (id) => knownName(db, id),
      livedElsewhere: () => livedElsewhere(db),
      journalAfter: (seq, limit) => {
        const rows = journal.after(seq, limit);
        const ids = new Map(
          runs.those([...new Set(rows.map(({ runOrdinal }) => runOrdinal))]).map((run) => [run.ordinal, run.id]),
        );
        return rows.map((row) => ({ ...row, runId: ids.get(row.runOrdinal) ?? "" }));
      },
      archivalAfter: (ordinal, limit) => parts.archival().after(ordinal, limit),
      blocks: {
        versions: () => blocks.list().map((row) => ({ label: row.label, version: versionOf(row) })),
        read: async (label) => {
          const row = blocks.find(label);
          if (!row) return undefined;
          const text = await blocks.wholeText(label);
          return { label, version: versionOf(row), description: row.description, text, updatedAt: row.updatedAt };
        },
      },
      isBuiltin: (toolName) => builtinNames.has(toolName),
      history: async (spaceId, after, limit) => {
        const { id, workspaceId } = identity.get();
        const answer = await env.SPACE.getByName(spaceId).history(workspaceId, id, { after, limit });
        if (!answer.ok && (answer.problem.code === "not_a_member" || answer.problem.code === "not_found")) return null;
        return unwrap(answer);
      },
      embedderId: () => embedderIdOf(config().embedder),
      embedder: async () => {
        const embedder = await resolveEmbedder(config().embedder, { env, openSecret });
        return embedder && bookedEmbedder(embedder, ledger, () => config().limits.maxTokensPerDay, clock.now);
      },
    },
    db,
  );
};
