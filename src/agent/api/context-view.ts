import type { ModelMessage } from "ai";
import { adapters } from "../../models/adapt.ts";
import type { ContextView } from "../../protocol/run.ts";
import { timeoutSignal } from "../../shared/timeouts.ts";
import { viewTimeoutMs } from "../bounds.ts";
import { ownerOf, type ShownBlock } from "../context/blocks.ts";
import { compose } from "../context/compose.ts";
import { prefixReuse } from "../context/prefix.ts";
import { estimateText } from "../context/tokens.ts";
import { triggerOf } from "../inbox/batch.ts";
import { composingOf } from "../run/composing.ts";
import { continuityOf } from "../run/continuity/continuities.ts";
import type { RunServices } from "../run/run-services.ts";

/** How much of the newest run's last input the next one repeats; it was compared as it was journaled. */
const reuseOf = (
  services: RunServices,
  next: { instructions: string; messages: ModelMessage[] },
): { prefixReuse?: number } => {
  const newest = services.runs.newest();
  const before = newest ? services.windows.lastInput(newest) : null;
  return before ? { prefixReuse: prefixReuse(before, next) } : {};
};

const blockView = ({ key, label, type, text }: ShownBlock): ContextView["blocks"][number] => {
  const ownerId = ownerOf(key);
  return { label, type, ...(ownerId === undefined ? {} : { ownerId }), tokens: estimateText(text) };
};

/** The next run's input as it would be now, even if nothing wakes the agent. Writes nothing. */
export const contextView = async (services: RunServices): Promise<ContextView> => {
  const composing = composingOf(services);
  const continuity = continuityOf(composing.config);
  const { snapshot, blocks, events } = await continuity.next(services, timeoutSignal(viewTimeoutMs));
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
    limits: composing.limits,
    ...reuseOf(services, { instructions, messages }),
  };
};
