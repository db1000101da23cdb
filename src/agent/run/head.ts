import { renderInstructions } from "../context/instructions.ts";
import { composingOf } from "./composing.ts";
import { shownOwnBlocks } from "./known-blocks.ts";
import type { RunServices } from "./run-services.ts";
import type { Head } from "./windows.ts";

/**
 * The head of a consciousness' windows. Its own core blocks stand in the instructions, since they change rarely.
 * `shown`: its blocks, if they are known already.
 */
export const headOf = (
  services: RunServices,
  shown = shownOwnBlocks(services, composingOf(services).config, []).shown,
): Head => {
  const { id, config } = services.identity.get();
  return {
    blocks: Object.fromEntries(shown.filter(({ type }) => type === "core").map(({ key, text }) => [key, text])),
    render: (blocks) => renderInstructions(id, config, Object.values(blocks)),
  };
};

/** The head of a timeline's windows. It holds no blocks, since every run reads them anew. */
export const plainHeadOf = (services: RunServices): Head => {
  const { id, config } = services.identity.get();
  return { blocks: {}, render: () => renderInstructions(id, config) };
};
