import { adapters } from "../../models/adapt.ts";
import type { ContextView } from "../../protocol/run.ts";
import { timeoutSignal } from "../../shared/timeouts.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { viewTimeoutMs } from "../bounds.ts";
import { ownerOf, type ShownBlock } from "../context/blocks.ts";
import { compose } from "../context/compose.ts";
import { estimateText } from "../context/tokens.ts";
import { triggerOf } from "../inbox/batch.ts";
import { composingOf } from "../run/composing.ts";
import { continuityOf } from "../run/continuity/continuities.ts";
import type { RunServices } from "../run/run-services.ts";

const blockView = ({ key, label, type, text }: ShownBlock): ContextView["blocks"][number] => {
  const ownerId = ownerOf(key);
  return { label, type, ...(ownerId === undefined ? {} : { ownerId }), tokens: estimateText(text) };
};

/** The next run's input as it would be now, even if nothing wakes the agent. Writes nothing. */
export const contextView = async (services: RunServices): Promise<ContextView> => {
  const { config, model, limits } = composingOf(services);
  const { snapshot, blocks, events } = await continuityOf(config).next(services, timeoutSignal(viewTimeoutMs));
  const { instructions, messages, tools, sections, tokens, dropped } = compose(snapshot);
  const newest = services.runs.newest();
  return {
    ...{ instructions, sections, tokens, dropped, limits },
    messages: adapters[model.family](messages),
    tools: Object.keys(tools),
    blocks: blocks.map(blockView),
    ...withoutNulls({
      trigger: events.length === 0 ? null : triggerOf(events),
      prefixReuse: newest ? services.windows.reuse(newest, { instructions, messages }) : null,
    }),
  };
};
