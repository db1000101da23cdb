import type { Outcome } from "../shared/errors.ts";
import type { Agent } from "./agent.ts";
import type { ExportedHead, ExportedRow, ImportReport, RowKind } from "./exported-agent.ts";

/** Where an export ends: later rows are not in it, however long it is read. */
export type ExportBounds = {
  at: number;
  journal: number;
  run: number;
  window: number;
  archival: number;
  /**
   * The cycle that was under way and had acted: it is remembered, its open calls answered as those of a canceled run.
   * `undone`: nothing can have come of the call; any other may be done (R3).
   */
  cut?: { run: number; open: { step: number; callId: string; toolName: string; undone?: true }[] };
};

/** Where the next page of an export begins: after this row of a kind. `lines` counts the lines before it. */
export type ExportPlace = { bounds: ExportBounds; kind: RowKind; after: string | number | null; lines: number };

/** Whole lines of the document; `next` is null on the last page. */
export type ExportPage = { text: string; next: ExportPlace | null };

/** An import that is under way: `token` tells it from another one into the same object. */
export type ImportName = { workspaceId: string; token: string };

/** A row, and where it stands in the document: refusals name it. */
export type ImportedRow = ExportedRow & { at: string };

/**
 * Export and import of an agent. An import is staged in the new agent's own object, which
 * answers `not_found` to everybody until it is complete; one that nobody goes on with is deleted by a timer.
 */
export interface TransferRpc {
  /** The first page without a place. */
  exportPage(workspaceId: string, from: ExportPlace | null): Promise<Outcome<ExportPage>>;

  /** `there`: the agent was made by an earlier try. `idempotency_in_progress` while another import is under way. */
  beginImport(id: string, name: ImportName): Promise<Outcome<"begun" | "there">>;
  /** Takes rows that were parsed by their schemas: all of them or none. */
  importRows(name: ImportName, rows: ImportedRow[]): Promise<Outcome<null>>;
  /** All is there: checks that it fits together. From here on the workspace's directory decides whether it counts. */
  prepareImport(name: ImportName, head: ExportedHead): Promise<Outcome<null>>;
  /** The directory knows the agent: it begins to be. Again, it answers the same. */
  completeImport(workspaceId: string): Promise<Outcome<{ agent: Agent; report: ImportReport }>>;
  dropImport(name: ImportName): Promise<Outcome<null>>;
}
