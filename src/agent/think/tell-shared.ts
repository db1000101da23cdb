import { renderStateChanges, toldBlocks } from "../context/consciousness/state.ts";
import type { RunRow } from "../runs.ts";
import { composingOf } from "./composing.ts";
import { shownSharedBlocks } from "./known-blocks.ts";
import type { Parts } from "./parts.ts";

/** In what a run was told, beside its own blocks. */
const section = "SHARED BLOCKS";

/**
 * A living agent reads the blocks that others share with it as its cycle begins: those that changed since its last
 * cycle, in a row of the journal, so that a replay reads the same (R3). Their owners are asked once a run.
 */
export const tellShared = async (parts: Parts, run: RunRow, signal: AbortSignal): Promise<void> => {
  if (run.continuity !== "consciousness" || run.told[section] !== undefined) return;
  const window = parts.consciousness.window(run.windowId);
  const before = (window && parts.consciousness.toldBefore(window, run.ordinal)?.[section]) ?? {};
  if (parts.sharedBlocks.list().length === 0 && Object.keys(before).length === 0) return;
  const events = parts.inbox.rows(run.events).map(({ data }) => data);
  const { shown } = await shownSharedBlocks(parts, composingOf(parts).config, events, signal);
  signal.throwIfAborted();
  const now = toldBlocks(shown);
  const changes = renderStateChanges({ BLOCKS: before }, { BLOCKS: now }, shown);
  parts.transaction(() => {
    if (changes !== null) {
      parts.journal.append({
        runOrdinal: run.ordinal,
        step: 0,
        kind: "preview",
        content: { role: "user", content: changes },
      });
    }
    run.told = { ...run.told, [section]: now };
    parts.runs.update(run.ordinal, { told: run.told });
  });
};
