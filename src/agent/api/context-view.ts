import type { ModelMessage } from "ai";
import { adapters } from "../../models/adapt.ts";
import type { ContextView } from "../../protocol/run.ts";
import { timeoutSignal } from "../../shared/timeouts.ts";
import { viewTimeoutMs } from "../bounds.ts";
import { ownerOf, type ShownBlock } from "../context/blocks.ts";
import { compose } from "../context/compose.ts";
import { limitsOf } from "../context/limits.ts";
import { prefixReuse } from "../context/prefix.ts";
import type { Snapshot } from "../context/snapshot.ts";
import type { ActiveRun } from "../context/timeline/snapshot.ts";
import { estimateText } from "../context/tokens.ts";
import type { InboxRow } from "../inbox/inbox.ts";
import type { InboxData } from "../records.ts";
import { nextEvent, triggerOf } from "../run/continuity/consciousness.ts";
import { type Composing, composingOf, partsWith } from "../run/composing.ts";
import { tellingsTo } from "../run/continuity/peer-updates.ts";
import { nextBatch, prepare } from "../run/continuity/prepare-cycle.ts";
import type { RunServices } from "../run/run-services.ts";
import { begunBy, gatherTimeline } from "../run/continuity/gather-timeline.ts";
import { toolsetOf } from "../tools/toolset.ts";

/** What would be composed, the blocks in it, and the events that it would begin with. */
type Next = { snapshot: Snapshot; blocks: ShownBlock[]; events: InboxRow[] };

/** Shown where nothing waits: a timeline's run needs something to begin with. */
const nothingWaits = {
  type: "service",
  serviceName: "(nothing waits)",
  payload: null,
  root: { id: "", kind: "service" },
} satisfies InboxData;

const nextTimeline = async (services: RunServices, composing: Composing, signal: AbortSignal): Promise<Next> => {
  const row = nextEvent(services);
  const events = row ? [row] : [];
  const ordinal = services.runs.nextOrdinal();
  const toolset = toolsetOf(services.identity.get().config, services.mcp.newestList());
  const common = { ...partsWith(services, toolset, composing), config: composing.config };
  const snapshot = await gatherTimeline(services, common, row?.data ?? nothingWaits, ordinal, signal);
  // The run that would come is among the active ones that it reads of.
  const itself: ActiveRun = {
    runId: services.ids.deriveOwned("run", snapshot.state.agentId, ordinal),
    status: "running",
    isThis: true,
    begunBy: row ? begunBy(services, triggerOf(events)) : { type: "service", name: nothingWaits.serviceName, text: "" },
  };
  const { shown: blocks } = snapshot.state.blocks ?? { shown: [] };
  return { snapshot: { ...snapshot, activeRuns: [...snapshot.activeRuns, itself] }, blocks, events };
};

const nextCycle = async (services: RunServices, composing: Composing, signal: AbortSignal): Promise<Next> => {
  const { rows: events } = nextBatch(services);
  const { window, told, blocks, withheld, ordinal, text } = prepare(services, events, services.runs.nextOrdinal());
  const before = {
    told: () => services.consciousness.toldBefore(window, ordinal),
    events: () => events.map(({ data }) => data),
  };
  const { tellings, dropped, blocks: others } = await tellingsTo(services, before, signal);
  const past = services.consciousness.past(window.firstRun, ordinal);
  const own: ModelMessage[] = [{ role: "user", content: text }, ...tellings.map(({ message }) => message)];
  const snapshot: Snapshot = {
    ...partsWith(services, window.toolset, composing),
    continuity: "consciousness",
    ...{ window, told, past, own, tellings },
    withheld: [...withheld, ...dropped],
  };
  return { snapshot, blocks: [...blocks, ...others], events };
};

/** How much of the newest run's last input the next one repeats; it was compared as it was journaled. */
const reuseOf = (
  services: RunServices,
  next: { instructions: string; messages: ModelMessage[] },
): { prefixReuse?: number } => {
  const newest = services.runs.newest();
  const before = newest ? services.consciousness.lastInput(newest) : null;
  return before ? { prefixReuse: prefixReuse(before, next) } : {};
};

const blockView = ({ key, label, type, text }: ShownBlock): ContextView["blocks"][number] => {
  const ownerId = ownerOf(key);
  return { label, type, ...(ownerId === undefined ? {} : { ownerId }), tokens: estimateText(text) };
};

/** What the next run's input would be, whether or not anything wakes it now. Writes nothing. */
export const contextView = async (services: RunServices): Promise<ContextView> => {
  const composing = composingOf(services);
  const isTimeline = composing.config.continuity === "timeline";
  const next = isTimeline ? nextTimeline : nextCycle;
  const { snapshot, blocks, events } = await next(services, composing, timeoutSignal(viewTimeoutMs));
  const { instructions, messages, tools, sections, tokens, dropped } = compose(snapshot);
  return {
    ...(events.length === 0 ? {} : { trigger: triggerOf(events) }),
    instructions,
    messages: adapters[composing.model.family](messages),
    tools: Object.keys(tools),
    blocks: blocks.map(blockView),
    sections,
    tokens,
    dropped,
    limits: limitsOf(composing.config),
    ...reuseOf(services, { instructions, messages }),
  };
};
