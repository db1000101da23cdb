import type { Env } from "../../../env.ts";
import type { Clock } from "../../../shared/clock.ts";
import type { Ids } from "../../../shared/ids.ts";
import type { Identity } from "../../identity.ts";
import type { Spaces } from "../../spaces.ts";
import type { BlockSubscriptions } from "./block-subscriptions.ts";
import type { Blocks } from "./blocks.ts";
import type { SharedBlocks } from "./shared-blocks.ts";
import type { Shares } from "./shares.ts";

/** Services for an agent's blocks, and for those shared with it. */
export type BlockServices = {
  env: Env;
  ids: Ids;
  clock: Clock;
  identity: Identity;
  spaces: Spaces;
  blocks: Blocks;
  shares: Shares;
  sharedBlocks: SharedBlocks;
  subscriptions: BlockSubscriptions;
};
