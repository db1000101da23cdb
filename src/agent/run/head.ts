import { renderInstructions } from "../context/instructions.ts";
import { composingOf } from "./composing.ts";
import { shownOwnBlocks } from "./known-blocks.ts";
import type { RunServices } from "./run-services.ts";
import type { Head } from "./windows.ts";

/**
 * What a consciousness' instructions are made of: its own core blocks stand in them, where they change rarely. `shown`:
 * its blocks, where they are known already.
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

/** A timeline's have none: it reads its blocks anew with every run. */
export const plainHeadOf = (services: RunServices): Head => {
  const { id, config } = services.identity.get();
  return { blocks: {}, render: () => renderInstructions(id, config) };
};
