import { detailOf, sharedView } from "../memory/blocks/block-view.ts";
import { closeBlock, grantedIn, openBlock, viewInSpace } from "../memory/blocks/space-sharing.ts";
import { originAuthor } from "../transfer/origin.ts";
import type { Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

/** Blocks that the people of the agent's spaces may use. */
export const spaceBlocksArea: Area<
  "blockSpaces" | "openBlock" | "closeBlock" | "spaceBlocks" | "spaceBlock" | "editSpaceBlock" | "spaceBlockHistory"
> = {
  blockSpaces: ({ services }, label) => services.blockSpaces.of(services.blocks.get(label).id),
  openBlock: ({ services }, label, space) => openBlock(services, label, space),
  closeBlock: ({ services }, label, spaceId) => {
    closeBlock(services, label, spaceId);
    return null;
  },
  spaceBlocks: ({ services }, spaceId) => {
    const { id: agentId, config } = services.identity.get();
    const owner = { agentId, agentName: config.name };
    return services.blockSpaces.in(spaceId).map(({ row, permission }) => sharedView(row, permission, owner));
  },
  spaceBlock: async ({ services }, spaceId, label, version) => {
    grantedIn(services, spaceId, label);
    const read = await services.blocks.read(label, version);
    // The block may have been taken back while it was read.
    return detailOf(viewInSpace(services, spaceId, label), { ...read, version: version ?? read.row.version });
  },
  editSpaceBlock: ({ services }, label, edit, { spaceId, author, name, callId }) => {
    const { permission } = grantedIn(services, spaceId, label);
    return services.blocks.edit(label, { ...edit, callId, caller: { kind: "person", author, name, permission } });
  },
  spaceBlockHistory: ({ db, services }, spaceId, label, { limit, cursor }) => {
    grantedIn(services, spaceId, label);
    return page(
      services.blocks.history(label, cursorOf(cursor), limit + 1),
      limit,
      ({ version }) => version,
      (change) => ({ ...change, ...originAuthor(db, change.author) }),
    );
  },
};
